//! What failed for a passing reason is asked for again.

use std::{collections::VecDeque, fmt, mem, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use self::purse::Purse;
use super::{meter::Counters, owed::Answers};
use crate::{
    catalog::{Catalog, Summary},
    error::{Error, Result},
    identity::SampleKey,
    sample::Row,
    store::{Capability, FetchRequest, Fetched, Lane, Store, Targets},
};

mod purse;

/// How often, how soon and how much is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RetryConfig {
    /// Attempts at a target in all; default 4, at least 1. More of them outlive longer troubles and report lasting ones later.
    pub attempts: u32,
    /// The longest wait before the second attempt; it doubles with each attempt; default 50 ms. More of it gives a store time
    /// to recover, less of it gets a lost sample sooner.
    pub first_delay: Duration,
    /// The longest wait before any attempt; default 5 s.
    pub longest_delay: Duration,
    /// Retries that are allowed for every 1,000 requests; default 100. More of them load a store that is already in trouble.
    pub retries_per_mille: u64,
    /// Retries that are saved up for a bad moment, and there from the start; default 10.
    pub spare_retries: u64,
    /// Seed of the waits, which are drawn evenly from nothing to the longest; default 0. Give each process another one.
    pub seed: u64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            attempts: 4,
            first_delay: Duration::from_millis(50),
            longest_delay: Duration::from_secs(5),
            retries_per_mille: 100,
            spare_retries: 10,
            seed: 0,
        }
    }
}

/// A store that asks again for what failed with a transient error, and only for that.
///
/// The targets of a request that failed are asked for together once its other answers are in. They keep to the lane that was
/// asked for; where the choice was the store's, they avoid the lane that failed. Nothing is tried again that would start after
/// the deadline, or when more than the allowed share of requests were retries of late: then the last error stands.
#[derive(Debug, Clone)]
pub struct Retry {
    inner: Arc<dyn Store>,
    config: RetryConfig,
    purse: Arc<Purse>,
    counters: Arc<Counters>,
}

impl Retry {
    /// Wraps a store. Clones share what they may retry; `counters` are told of each retry.
    pub fn new(inner: Arc<dyn Store>, config: RetryConfig, counters: Arc<Counters>) -> Self {
        Self {
            inner,
            purse: Arc::new(Purse::new(&config)),
            config,
            counters,
        }
    }

    /// How long to wait before the next attempt, when so many have failed; `None` where there must be no other.
    fn next_attempt(&self, failed_attempts: u32, deadline: Option<Instant>) -> Option<Duration> {
        if failed_attempts >= self.config.attempts {
            return None;
        }
        let doubled = 2u32.saturating_pow(failed_attempts.saturating_sub(1));
        let longest = self
            .config
            .first_delay
            .saturating_mul(doubled)
            .min(self.config.longest_delay);
        let delay = longest.mul_f64(self.purse.fraction());
        let in_time = deadline.is_none_or(|deadline| Instant::now() + delay < deadline);
        (in_time && self.purse.pay()).then_some(delay)
    }
}

#[async_trait]
impl Store for Retry {
    fn capability(&self) -> Capability {
        self.inner.capability()
    }

    fn summary(&self) -> Summary {
        self.inner.summary()
    }

    async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        self.purse.earn();
        for attempt in 1.. {
            match self.inner.catalog().await {
                Err(error) if error.is_transient() => match self.next_attempt(attempt, None) {
                    Some(delay) => sleep(delay).await,
                    None => return Err(error),
                },
                outcome => return outcome,
            }
        }
        unreachable!("the attempts end before the numbers do")
    }

    fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched> {
        self.purse.earn();
        let targets = request.targets.len();
        let course = Course {
            answers: Some(Answers::new(self.inner.fetch(request.clone()), targets, ())),
            target_of: (0..targets).collect(),
            request,
            attempts: 1,
            failed: VecDeque::new(),
            retry: self.clone(),
        };
        stream::unfold(course, |mut course| async {
            Some((course.next().await?, course))
        })
        .boxed()
    }

    fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
        self.inner.keys()
    }

    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
        self.inner.metadata()
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, out)
    }
}

/// One request on its way through its attempts.
struct Course {
    retry: Retry,
    request: FetchRequest,
    /// The answers of the attempt under way; `None` once there will be no other.
    answers: Option<Answers<()>>,
    /// For each target of the attempt, which target of the request it is.
    target_of: Vec<usize>,
    attempts: u32,
    failed: VecDeque<Fetched>,
}

impl Course {
    async fn next(&mut self) -> Option<Fetched> {
        loop {
            let Some(answers) = &mut self.answers else {
                return self.failed.pop_front();
            };
            match answers.next().await {
                Some(mut fetched) => {
                    fetched.target = self.target_of[fetched.target];
                    if !is_transient(&fetched) {
                        return Some(fetched);
                    }
                    self.failed.push_back(fetched);
                }
                None => self.answers = self.try_again().await,
            }
        }
    }

    async fn try_again(&mut self) -> Option<Answers<()>> {
        // The attempt that has ended is over before the wait begins: its permits are free for others.
        self.answers = None;
        let lane = self.failed.front()?.lane;
        let deadline = self.request.deadline.map(Instant::from_std);
        let delay = self.retry.next_attempt(self.attempts, deadline)?;
        sleep(delay).await;
        self.attempts += 1;
        self.target_of = mem::take(&mut self.failed)
            .into_iter()
            .map(|fetched| fetched.target)
            .collect();
        self.retry.counters.retried(self.target_of.len());
        let request = self.rest(lane);
        Some(Answers::new(
            self.retry.inner.fetch(request),
            self.target_of.len(),
            (),
        ))
    }

    /// The request for the targets that failed.
    fn rest(&self, failed_lane: Lane) -> FetchRequest {
        let mut rest = self.request.clone();
        rest.targets = match &self.request.targets {
            Targets::Rows { fingerprint, rows } => Targets::Rows {
                fingerprint: *fingerprint,
                rows: self.target_of.iter().map(|target| rows[*target]).collect(),
            },
            Targets::Keys(keys) => {
                Targets::Keys(self.target_of.iter().map(|target| keys[*target]).collect())
            }
        };
        let (part, whole) = (
            self.target_of.len() as u64,
            self.request.targets.len() as u64,
        );
        rest.expected_bytes = (rest.expected_bytes / whole.max(1)).saturating_mul(part);
        if rest.lane.is_none() && rest.avoid.is_none() && self.retry.capability().lanes > 1 {
            rest.avoid = Some(failed_lane);
        }
        rest
    }
}

fn is_transient(fetched: &Fetched) -> bool {
    fetched.outcome.as_ref().is_err_and(Error::is_transient)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    };

    use super::*;
    use crate::{
        error::ErrorKind,
        wrap::owed::tests::{MadeUp, outcomes, request},
    };

    const SECOND: Duration = Duration::from_secs(1);
    type Asked = Arc<Mutex<Vec<FetchRequest>>>;

    /// A store whose row `n` fails `n` times with `kind` before it comes, and a record of what it was asked for.
    fn flaky(samples: usize, kind: ErrorKind) -> (Arc<dyn Store>, Asked) {
        let asked = Asked::default();
        let store = {
            let asked = Arc::clone(&asked);
            let failures: Vec<_> = (0..).map(AtomicU32::new).take(samples).collect();
            let failures = Arc::new(failures);
            MadeUp::new(
                samples,
                move |request: FetchRequest, right: BoxStream<'static, Fetched>| {
                    asked.lock().unwrap().push(request.clone());
                    let Targets::Rows { rows, .. } = request.targets else {
                        panic!("rows were asked for")
                    };
                    let failures = Arc::clone(&failures);
                    let fail = move |mut fetched: Fetched| {
                        let left = &failures[usize::try_from(rows[fetched.target]).unwrap()];
                        if left
                            .try_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                                left.checked_sub(1)
                            })
                            .is_ok()
                        {
                            fetched.outcome = Err(Error::new(kind, "not yet"));
                        }
                        fetched
                    };
                    right.map(fail).boxed()
                },
            )
        };
        (store, asked)
    }

    fn rows_asked(asked: &Asked) -> Vec<Vec<u64>> {
        let rows = |request: &FetchRequest| match &request.targets {
            Targets::Rows { rows, .. } => rows.clone(),
            Targets::Keys(_) => panic!("rows were asked for"),
        };
        asked.lock().unwrap().iter().map(rows).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_failed_is_asked_for_again_until_the_attempts_are_used_up() {
        let (store, asked) = flaky(6, ErrorKind::Unavailable);
        let counters = Arc::new(Counters::default());
        let store = Retry::new(store, RetryConfig::default(), Arc::clone(&counters));
        let mut request = request(&store, 0..6);
        request.expected_bytes = 600;
        let lost = Err(ErrorKind::Unavailable);
        assert_eq!(
            outcomes(store.fetch(request)).await,
            [Ok(100), Ok(100), Ok(100), Ok(100), lost, lost]
        );
        assert_eq!(
            rows_asked(&asked),
            [
                vec![0, 1, 2, 3, 4, 5],
                vec![1, 2, 3, 4, 5],
                vec![2, 3, 4, 5],
                vec![3, 4, 5]
            ]
        );
        assert_eq!(asked.lock().unwrap()[3].expected_bytes, 300);
        assert_eq!(counters.snapshot().retries, 12);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lasting_error_is_handed_on_at_once() {
        let (store, asked) = flaky(2, ErrorKind::Corrupt);
        let store = Retry::new(store, RetryConfig::default(), Arc::default());
        assert_eq!(
            outcomes(store.fetch(request(&store, 0..2))).await,
            [Ok(100), Err(ErrorKind::Corrupt)]
        );
        assert_eq!(asked.lock().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_never_came_are_asked_for_again() {
        let calls = AtomicU32::new(0);
        let breaks_off = move |_: FetchRequest, right: BoxStream<'static, Fetched>| {
            let first = calls.fetch_add(1, Ordering::SeqCst) == 0;
            right.take(if first { 1 } else { 9 }).boxed()
        };
        let store = Retry::new(
            MadeUp::new(3, breaks_off),
            RetryConfig::default(),
            Arc::default(),
        );
        assert_eq!(
            outcomes(store.fetch(request(&store, 0..3))).await,
            [Ok(100); 3]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn retries_stay_below_their_share_of_the_requests() {
        let down = |_: FetchRequest, right: BoxStream<'static, Fetched>| {
            let fail = |mut fetched: Fetched| {
                fetched.outcome = Err(Error::new(ErrorKind::Overloaded, "busy"));
                fetched
            };
            right.map(fail).boxed()
        };
        let counters = Arc::new(Counters::default());
        let config = RetryConfig {
            attempts: u32::MAX,
            ..RetryConfig::default()
        };
        let store = Retry::new(MadeUp::new(1, down), config, Arc::clone(&counters));
        for _ in 0..1000 {
            assert_eq!(
                outcomes(store.fetch(request(&store, 0..1))).await,
                [Err(ErrorKind::Overloaded)]
            );
        }
        // A tenth of the requests and the ten that were saved up, less what the first one earned above a full purse.
        assert_eq!(counters.snapshot().retries, 109);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_tried_again_after_the_deadline() {
        let (store, asked) = flaky(100, ErrorKind::Unavailable);
        let config = RetryConfig {
            attempts: 50,
            spare_retries: 1000,
            first_delay: SECOND,
            longest_delay: SECOND,
            ..RetryConfig::default()
        };
        let store = Retry::new(store, config, Arc::default());
        let mut request = request(&store, 99..100);
        let start = Instant::now();
        request.deadline = Some((start + SECOND * 5).into_std());
        assert_eq!(
            outcomes(store.fetch(request)).await,
            [Err(ErrorKind::Unavailable)]
        );
        assert!(start.elapsed() < SECOND * 5);
        assert!((4..50).contains(&asked.lock().unwrap().len()));
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_the_longest_and_follow_the_seed() {
        let store = |seed| {
            let config = RetryConfig {
                attempts: 99,
                spare_retries: 99,
                seed,
                ..RetryConfig::default()
            };
            Retry::new(flaky(1, ErrorKind::Io).0, config, Arc::default())
        };
        let waits = |seed| {
            let store = store(seed);
            (1..20)
                .map(|attempt| store.next_attempt(attempt, None).unwrap())
                .collect::<Vec<_>>()
        };
        let drawn: Vec<_> = (0..200).map(waits).collect();
        for (attempt, longest) in [
            (0, 50),
            (1, 100),
            (2, 200),
            (6, 3200),
            (7, 5000),
            (18, 5000),
        ] {
            let most = drawn
                .iter()
                .map(|waits| waits[attempt].as_millis())
                .max()
                .unwrap();
            assert!(
                most <= longest && most > longest * 9 / 10,
                "attempt {attempt}: {most} ms"
            );
            let least = drawn
                .iter()
                .map(|waits| waits[attempt].as_millis())
                .min()
                .unwrap();
            assert!(least < longest / 10, "attempt {attempt}: {least} ms");
        }
        assert_eq!(waits(5), drawn[5]);
        assert_ne!(waits(5), drawn[6]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_retry_keeps_to_the_lane_that_was_asked_for() {
        let (store, asked) = flaky(2, ErrorKind::Unavailable);
        let store = Retry::new(store, RetryConfig::default(), Arc::default());
        let mut request = request(&store, 0..2);
        request.lane = Some(Lane(0));
        assert_eq!(outcomes(store.fetch(request)).await, [Ok(100); 2]);
        assert!(
            asked
                .lock()
                .unwrap()
                .iter()
                .all(|request| request.lane == Some(Lane(0)) && request.avoid.is_none())
        );
    }
}
