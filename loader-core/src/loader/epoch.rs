//! The consumer's side of an epoch: batches one after another, and the ledger of what was handed over.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use tokio::{
    runtime::Handle,
    sync::mpsc::{UnboundedSender, unbounded_channel},
    task::AbortHandle,
};

use crate::{
    collate::{Collate, Failure},
    error::Result,
    loader::{
        config::LoaderConfig,
        engine::{Counters, Engine, Parts},
        held::{Held, Lease},
        ready::{ConsumerEvent, Found, Ready, ReadyQueue},
        state::State,
        stats::{Stats, Waits},
        workers::Workers,
    },
    prefetch::{Prefetcher, Taken},
    store::Store,
};

/// More failures than this are counted but not listed.
const FAILURES_LISTED: usize = 10_000;

/// A batch that was handed over.
#[derive(Debug)]
pub struct Delivered<B> {
    /// What the collation made.
    pub batch: B,
    /// Samples in it.
    pub samples: u64,
    /// Payload bytes of them.
    pub payload_bytes: u64,
    /// Samples that were meant for it and failed.
    pub failures: Vec<Failure>,
    /// Its memory counts against the budget until this is dropped: keep it as long as the batch.
    pub lease: Lease,
}

/// What [`Epoch::next_within`] found.
#[derive(Debug)]
pub enum Step<B> {
    /// The next batch.
    Batch(Delivered<B>),
    /// Nothing yet: ask again.
    Pending,
    /// The epoch is over.
    End,
}

/// One pass over what an epoch has left.
///
/// # Cancellation
/// Dropping it gives up all requests; what was handed over stays in the loader's state.
pub struct Epoch<B> {
    queue: Arc<ReadyQueue<B>>,
    events: UnboundedSender<ConsumerEvent>,
    held: Arc<Held>,
    progress: Arc<Mutex<Progress>>,
    engine: AbortHandle,
    handed: u64,
    handed_at: Option<Instant>,
}

impl<B> Epoch<B> {
    /// Waits up to `patience` for the next batch, so that a caller can look after signals in between.
    ///
    /// # Errors
    /// What ended the epoch; asking again gives the same error. Batches that were complete before it come first.
    pub fn next_within(&mut self, patience: Duration) -> Result<Step<B>> {
        if let Some(since) = self.handed_at.take() {
            self.progress().consumer += since.elapsed();
        }
        let found = self.queue.take(patience);
        self.progress().waits = self.queue.waits();
        match found {
            Found::Batch(ready, waited_since) => {
                Ok(Step::Batch(self.hand_over(ready, waited_since)))
            }
            Found::Nothing => Ok(Step::Pending),
            Found::End => {
                self.progress().end();
                Ok(Step::End)
            }
            Found::Failed(error) => {
                let failures = self.queue.left_behind();
                let mut progress = self.progress();
                progress.unsettled_failures += failures.len() as u64;
                progress.list(&failures);
                progress.end();
                Err(error)
            }
        }
    }

    fn hand_over(&mut self, ready: Ready<B>, waited_since: Option<Instant>) -> Delivered<B> {
        let now = Instant::now();
        let taken = Taken {
            batch: self.handed,
            bytes: ready.payload_bytes,
            waited_since,
        };
        self.handed += 1;
        self.handed_at = Some(now);
        self.progress().record(&ready, now);
        // After its last batch the engine is gone; nobody needs to know then.
        let _ = self.events.send(ConsumerEvent::Taken(taken));
        let lease = Lease::new(
            ready.held_bytes,
            Arc::clone(&self.held),
            self.events.clone(),
        );
        lease.announce();
        let Ready {
            batch,
            samples,
            payload_bytes,
            failures,
            ..
        } = ready;
        Delivered {
            batch,
            samples,
            payload_bytes,
            failures,
            lease,
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> Iterator for Epoch<B> {
    type Item = Result<Delivered<B>>;

    /// Waits for the next batch as long as it takes; after an error the epoch is over.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_within(Duration::from_hours(1)) {
                Ok(Step::Batch(delivered)) => return Some(Ok(delivered)),
                Ok(Step::Pending) => {}
                Ok(Step::End) => return None,
                Err(error) => {
                    // An iterator that repeats its error would make `for` loops endless.
                    self.queue.close();
                    return Some(Err(error));
                }
            }
        }
    }
}

impl<B> Drop for Epoch<B> {
    fn drop(&mut self) {
        self.engine.abort();
        self.progress().end();
    }
}

impl<B> fmt::Debug for Epoch<B> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Epoch")
            .field("handed", &self.handed)
            .finish_non_exhaustive()
    }
}

/// What an epoch is started from.
pub(super) struct Ingredients<C: Collate> {
    pub(super) store: Arc<dyn Store>,
    pub(super) collate: Arc<C>,
    pub(super) config: LoaderConfig,
    pub(super) workers: Arc<Workers>,
    pub(super) policy: Box<dyn Prefetcher>,
}

impl<C: Collate> Ingredients<C> {
    pub(super) fn start(self, progress: Arc<Mutex<Progress>>, runtime: &Handle) -> Epoch<C::Batch> {
        let queue = Arc::new(ReadyQueue::default());
        let held = Arc::new(Held::default());
        let counters = Arc::new(Counters::default());
        let (events, engine_events) = unbounded_channel();
        let state = {
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            let ready = Arc::clone(&queue);
            progress.live = Some(Live {
                held: Arc::clone(&held),
                counters: Arc::clone(&counters),
                ready: Arc::new(move || ready.len()),
            });
            progress.state.clone()
        };
        let Self {
            store,
            collate,
            config,
            workers,
            policy,
        } = self;
        let parts = Parts {
            store,
            collate,
            config,
            state,
            workers,
            queue: Arc::clone(&queue),
            held: Arc::clone(&held),
            counters,
            events: engine_events,
        };
        let engine = runtime
            .spawn(Box::pin(Engine::new(parts, policy).run()))
            .abort_handle();
        Epoch {
            queue,
            events,
            held,
            progress,
            engine,
            handed: 0,
            handed_at: None,
        }
    }
}

/// What the engine lets others see while it runs.
#[derive(Clone)]
struct Live {
    held: Arc<Held>,
    counters: Arc<Counters>,
    ready: Arc<dyn Fn() -> usize + Send + Sync>,
}

/// The ledger of an epoch and its figures.
pub(super) struct Progress {
    pub(super) state: State,
    pub(super) failures: Vec<Failure>,
    /// Failures of samples that were not handed over: a resumed epoch meets them again, so the state does not count them.
    unsettled_failures: u64,
    begun: Instant,
    ended: Option<Instant>,
    first_batch: Option<Duration>,
    batches: u64,
    samples: u64,
    bytes: u64,
    waits: Waits,
    consumer: Duration,
    live: Option<Live>,
}

impl Progress {
    pub(super) fn new(state: State) -> Self {
        Self {
            state,
            failures: Vec::new(),
            unsettled_failures: 0,
            begun: Instant::now(),
            ended: None,
            first_batch: None,
            batches: 0,
            samples: 0,
            bytes: 0,
            waits: Waits::default(),
            consumer: Duration::ZERO,
            live: None,
        }
    }

    fn record<B>(&mut self, ready: &Ready<B>, now: Instant) {
        for &ordinal in &ready.ordinals {
            self.state.settled.insert(ordinal);
        }
        self.state.handed_batches += 1;
        self.state.failures += ready.failures.len() as u64;
        self.list(&ready.failures);
        self.first_batch.get_or_insert(now - self.begun);
        self.batches += 1;
        self.samples += ready.samples;
        self.bytes += ready.payload_bytes;
    }

    fn list(&mut self, failures: &[Failure]) {
        let room = FAILURES_LISTED.saturating_sub(self.failures.len());
        self.failures.extend(failures.iter().take(room).cloned());
    }

    fn end(&mut self) {
        self.ended.get_or_insert_with(Instant::now);
    }

    pub(super) fn stats(&self) -> Stats {
        let mut stats = Stats {
            epoch: self.state.epoch,
            batches: self.batches,
            samples: self.samples,
            bytes: self.bytes,
            failures: self.state.failures + self.unsettled_failures,
            first_batch: self.first_batch,
            waits: self.waits,
            consumer: self.consumer,
            ..Stats::default()
        };
        if let Some(live) = &self.live {
            stats.elapsed = self.ended.unwrap_or_else(Instant::now) - self.begun;
            stats.held_bytes = live.held.now();
            stats.held_bytes_max = live.held.peak();
            stats.retries = live.counters.retries.load(Relaxed);
            stats.hedges = live.counters.hedges.load(Relaxed);
            stats.window_bytes = live.counters.window_bytes.load(Relaxed);
            stats.window_bytes_max = live.counters.window_bytes_max.load(Relaxed);
            stats.ready_batches = (live.ready)();
        }
        stats
    }
}
