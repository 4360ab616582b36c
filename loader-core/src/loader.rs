//! A loader: epochs of batches from any store, in any order, resumable, within a byte budget.
//!
//! ```text
//! Plan ─► Prefetcher ─► requests ─► Reorder ─► collate ─► ReadyQueue ─► Epoch (the consumer)
//!              ▲── completions ──────┘                        │
//!              └── taken, lent ◄──────────────────────────────┘  and the state: what was handed over
//! ```

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::runtime::Handle;

use crate::{
    collate::{Collate, Failure},
    error::Result,
    loader::{
        config::{LoaderConfig, Prefetch},
        epoch::{Epoch, Progress},
        positions::Positions,
        state::{State, Subject},
        stats::Stats,
        workers::Workers,
    },
    prefetch::{Prefetcher, fixed::Fixed},
    store::Store,
};

pub mod config;
mod engine;
pub mod epoch;
mod held;
pub mod permutation;
pub mod plan;
pub mod positions;
mod ready;
pub mod reorder;
pub mod state;
pub mod stats;
mod workers;

pub use held::Lease;

/// Makes the policy of an epoch.
type PolicyMaker = Box<dyn Fn() -> Box<dyn Prefetcher> + Send + Sync>;

/// Makes epochs of batches. Threads start with the first epoch and stay for all.
pub struct Loader<C: Collate> {
    store: Arc<dyn Store>,
    collate: Arc<C>,
    config: LoaderConfig,
    runtime: Handle,
    policy: PolicyMaker,
    workers: Option<Arc<Workers>>,
    progress: Arc<Mutex<Progress>>,
    /// The state that the next epoch starts from.
    next: State,
}

impl<C: Collate> Loader<C> {
    /// A loader over a store; nothing is fetched before [`start`](Self::start).
    ///
    /// `runtime` drives the fetches; it must be multi-threaded and outlive the epochs.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Usage`] for options that make no sense.
    pub fn new(
        store: Arc<dyn Store>,
        collate: C,
        config: LoaderConfig,
        runtime: Handle,
    ) -> Result<Self> {
        config.check()?;
        let next = fresh(&*store, &config, 0);
        let progress = Arc::new(Mutex::new(Progress::new(next.clone())));
        Ok(Self {
            store,
            collate: Arc::new(collate),
            policy: policy(&config.prefetch),
            config,
            runtime,
            workers: None,
            progress,
            next,
        })
    }

    /// Lets a policy of the caller's own decide how much is fetched ahead: `maker` makes one for each epoch.
    #[must_use]
    pub fn with_prefetcher(
        mut self,
        maker: impl Fn() -> Box<dyn Prefetcher> + Send + Sync + 'static,
    ) -> Self {
        self.policy = Box::new(maker);
        self
    }

    /// Batches of a whole epoch: exact, and the same on every rank.
    pub fn batches(&self) -> u64 {
        fresh(&*self.store, &self.config, 0).plan().batches()
    }

    /// Batches that the next [`start`](Self::start) will give: fewer than an epoch's after a resume.
    pub fn batches_left(&self) -> u64 {
        self.next.plan().batches() - self.next.handed_batches
    }

    /// The epoch that the next [`start`](Self::start) begins or continues.
    pub fn epoch(&self) -> u64 {
        self.next.epoch
    }

    /// The options.
    pub fn config(&self) -> &LoaderConfig {
        &self.config
    }

    /// Makes the next [`start`](Self::start) begin this epoch from its first batch; the state says so at once.
    pub fn set_epoch(&mut self, epoch: u64) {
        self.begin_with(fresh(&*self.store, &self.config, epoch));
    }

    /// Starts the next epoch, or the rest of one after [`load_state`](Self::load_state). An epoch that still runs ends as if
    /// it had been dropped.
    ///
    /// # Errors
    /// Where the decoding threads cannot be started.
    pub fn start(&mut self) -> Result<Epoch<C::Batch>> {
        let workers = match &self.workers {
            Some(workers) => Arc::clone(workers),
            None => Arc::clone(
                self.workers
                    .insert(Arc::new(Workers::new(self.config.threads)?)),
            ),
        };
        let state = self.next.clone();
        self.next = fresh(&*self.store, &self.config, state.epoch + 1);
        // The epoch before, if the consumer still has it, keeps its own progress: it no longer speaks for this loader.
        self.progress = Arc::new(Mutex::new(Progress::new(state)));
        let engine = epoch::Ingredients {
            store: Arc::clone(&self.store),
            collate: Arc::clone(&self.collate),
            config: self.config.clone(),
            workers,
            policy: (self.policy)(),
        };
        Ok(engine.start(Arc::clone(&self.progress), &self.runtime))
    }

    /// Where this loader stands: what was handed over so far, nothing that was only prefetched.
    pub fn state(&self) -> State {
        self.progress().state.clone()
    }

    /// Makes the next [`start`](Self::start) continue from a saved state: with the exact remainder of its epoch, or with the
    /// epoch after it where it is complete. Seed and shuffling are the state's.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Incompatible`] for another data set, or where ranks or batch size differ and the state is not merged.
    pub fn load_state(&mut self, state: &State) -> Result<()> {
        let summary = self.store.summary();
        let state = state.dealt(summary.fingerprint, summary.samples, self.config.deal())?;
        self.config.seed = state.seed;
        self.config.shuffle = state.shuffle;
        self.begin_with(if state.is_complete() {
            fresh(&*self.store, &self.config, state.epoch + 1)
        } else {
            state
        });
        Ok(())
    }

    /// Figures of the epoch that runs or ran last.
    pub fn stats(&self) -> Stats {
        self.progress().stats()
    }

    /// Samples that failed in the epoch that runs or ran last; the first 10,000 of them.
    pub fn failures(&self) -> Vec<Failure> {
        self.progress().failures.clone()
    }

    fn begin_with(&mut self, state: State) {
        self.progress = Arc::new(Mutex::new(Progress::new(state.clone())));
        self.next = state;
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Collate> fmt::Debug for Loader<C> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Loader")
            .field("store", &self.store)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

fn fresh(store: &dyn Store, config: &LoaderConfig, epoch: u64) -> State {
    let summary = store.summary();
    let subject = Subject {
        fingerprint: summary.fingerprint,
        samples: summary.samples,
        seed: config.seed,
        epoch,
        shuffle: config.shuffle,
        order: config.order,
    };
    State::new(subject, config.deal(), Positions::default())
}

fn policy(prefetch: &Prefetch) -> PolicyMaker {
    match prefetch.clone() {
        Prefetch::Fixed(config) => Box::new(move || Box::new(Fixed::new(config.clone()))),
    }
}
