//! A store with several lanes, each with a latency and a mood of its own.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{
    StreamExt,
    future::{Either, pending, select},
    stream::{self, BoxStream},
};
use loader_core::{
    Capability, Catalog, Error, ErrorKind, FetchRequest, Fetched, Lane, Result, Row, SampleKey,
    Store, Summary,
};
use tokio::time::{Instant, sleep, sleep_until};

use crate::request::one_target;

/// How a lane behaves from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneScript {
    /// Time from a request to the answer for its first target.
    pub latency: Duration,
    /// Time between the answers for one request.
    pub spacing: Duration,
    /// What the lane answers with.
    pub mood: Mood,
}

/// What a lane answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Samples.
    Healthy,
    /// An error of this kind for each target.
    Failing(ErrorKind),
    /// Nothing, ever: only a deadline ends the wait.
    Silent,
}

impl LaneScript {
    /// A healthy lane that answers all targets of a request at once, after `latency`.
    pub fn healthy(latency: Duration) -> Self {
        Self {
            latency,
            spacing: Duration::ZERO,
            mood: Mood::Healthy,
        }
    }
}

/// What a lane has done so far, in targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneCounts {
    /// Targets that it was asked for.
    pub asked: u64,
    /// Targets that it answered, with a sample or an error.
    pub answered: u64,
    /// Targets whose stream was dropped before they were answered.
    pub cancelled: u64,
}

impl LaneCounts {
    /// Targets that are still out.
    pub fn under_way(self) -> u64 {
        self.asked - self.answered - self.cancelled
    }
}

/// A store whose answers come over lanes: it uses the lane that a request names, keeps away from the one it says to avoid,
/// and takes turns otherwise.
///
/// A lane that does not exist is answered with [`ErrorKind::Usage`]. Deadlines hold even on a silent lane.
#[derive(Clone)]
pub struct LanedStore(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    lanes: Mutex<Vec<(LaneScript, LaneCounts)>>,
    turn: AtomicU64,
}

impl LanedStore {
    /// Puts lanes in front of a store.
    ///
    /// # Panics
    /// Without any lane, or with more than 65,535.
    pub fn new(store: Arc<dyn Store>, lanes: impl IntoIterator<Item = LaneScript>) -> Self {
        let lanes: Vec<_> = lanes
            .into_iter()
            .map(|script| (script, LaneCounts::default()))
            .collect();
        assert!(
            (1..=usize::from(u16::MAX)).contains(&lanes.len()),
            "a store has at least one lane"
        );
        Self(Arc::new(Inner {
            store,
            lanes: Mutex::new(lanes),
            turn: AtomicU64::new(0),
        }))
    }

    /// Changes a lane for the targets that are asked for from now on.
    ///
    /// # Panics
    /// Where there is no such lane.
    pub fn set(&self, lane: Lane, script: LaneScript) {
        self.0.with_lane(lane, |slot| slot.0 = script);
    }

    /// What a lane has done so far.
    ///
    /// # Panics
    /// Where there is no such lane.
    pub fn counts(&self, lane: Lane) -> LaneCounts {
        self.0.with_lane(lane, |slot| slot.1)
    }
}

impl Inner {
    fn with_lane<T>(
        &self,
        lane: Lane,
        visit: impl FnOnce(&mut (LaneScript, LaneCounts)) -> T,
    ) -> T {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        visit(&mut lanes[usize::from(lane.0)])
    }

    fn lane_count(&self) -> u16 {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        u16::try_from(lanes.len()).expect("checked when it was made")
    }

    fn choose(&self, request: &FetchRequest) -> Result<Lane> {
        let count = self.lane_count();
        if let Some(lane) = request.lane {
            return if lane.0 < count {
                Ok(lane)
            } else {
                Err(Error::new(
                    ErrorKind::Usage,
                    format!("lane {} of a store that has {count}", lane.0),
                ))
            };
        }
        let turn = || {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % u64::from(count);
            Lane(u16::try_from(turn).expect("below a u16"))
        };
        let lane = turn();
        // With two turns in a row one of the lanes is another one, unless there is only one.
        Ok(if request.avoid == Some(lane) {
            turn()
        } else {
            lane
        })
    }

    async fn answer(self: Arc<Self>, lane: Lane, request: FetchRequest, target: usize) -> Fetched {
        let script = self.with_lane(lane, |slot| {
            slot.1.asked += 1;
            slot.0
        });
        let mut under_way = UnderWay {
            inner: Arc::clone(&self),
            lane,
            answered: false,
        };
        let place = u32::try_from(target).unwrap_or(u32::MAX);
        let work = Box::pin(async {
            sleep(script.latency + script.spacing * place).await;
            match script.mood {
                Mood::Silent => pending().await,
                Mood::Failing(kind) => Err(Error::new(kind, "the lane fails on cue")),
                Mood::Healthy => {
                    let mut stream = self.store.fetch(one_target(&request, target));
                    let lost = || Error::new(ErrorKind::Unavailable, "the store gave no answer");
                    stream
                        .next()
                        .await
                        .map_or_else(|| Err(lost()), |fetched| fetched.outcome)
                }
            }
        });
        let deadline = Box::pin(async {
            match request.deadline {
                Some(deadline) => sleep_until(Instant::from_std(deadline)).await,
                None => pending().await,
            }
        });
        let outcome = match select(deadline, work).await {
            Either::Left(_) => Err(Error::new(
                ErrorKind::Timeout,
                "no answer before the deadline",
            )),
            Either::Right((outcome, _)) => outcome,
        };
        under_way.answered = true;
        Fetched {
            target,
            lane,
            outcome: outcome.map_err(|error| error.during("fetch").in_store(&self.store)),
        }
    }
}

/// Counts a target as answered or cancelled, whichever way its future ends.
struct UnderWay {
    inner: Arc<Inner>,
    lane: Lane,
    answered: bool,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.inner.with_lane(self.lane, |slot| {
            if self.answered {
                slot.1.answered += 1;
            } else {
                slot.1.cancelled += 1;
            }
        });
    }
}

#[async_trait]
impl Store for LanedStore {
    fn capability(&self) -> Capability {
        let mut capability = self.0.store.capability();
        capability.lanes = self.0.lane_count();
        capability.local = false;
        capability
    }

    fn summary(&self) -> Summary {
        self.0.store.summary()
    }

    async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        self.0.store.catalog().await
    }

    fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched> {
        let count = request.targets.len();
        match self.0.choose(&request) {
            Ok(lane) => {
                let inner = Arc::clone(&self.0);
                let answer = move |target| Arc::clone(&inner).answer(lane, request.clone(), target);
                stream::iter(0..count)
                    .map(answer)
                    .buffer_unordered(count.max(1))
                    .boxed()
            }
            Err(error) => {
                let lane = request.lane.unwrap_or_default();
                let answer = move |target| Fetched {
                    target,
                    lane,
                    outcome: Err(error.clone()),
                };
                stream::iter(0..count).map(answer).boxed()
            }
        }
    }

    fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
        self.0.store.keys()
    }

    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
        self.0.store.metadata()
    }
}

impl fmt::Display for LanedStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.store, out)
    }
}

impl fmt::Debug for LanedStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LanedStore")
            .field("store", &self.0.store)
            .field("lanes", &self.0.lanes)
            .finish_non_exhaustive()
    }
}
