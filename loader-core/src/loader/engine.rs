//! The driver of one epoch: asks the policy, sends requests, places what arrives, hands on what is complete.
//!
//! One task owns all of it, so nothing here is locked. It talks to three parties by channels alone: the store (streams of
//! answers), the worker threads (finished slots) and the consumer (a queue of ready batches one way, events the other).

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::{
    assembly::{Assembly, Spot},
    requests::{Requests, Target},
};
use crate::{
    catalog::Catalog,
    collate::{Collate, Failure, Tag},
    error::{Error, ErrorKind, Result},
    loader::{
        config::{LoaderConfig, OnError},
        held::Held,
        plan::Plan,
        positions::Gaps,
        ready::{ConsumerEvent, ReadyQueue},
        reorder::{Place, Reorder},
        state::State,
        stats::Cause,
        workers::Workers,
    },
    prefetch::{Action, Outlook, Prefetcher},
    sample::Sample,
    store::{Lane, Store},
};

mod arrivals;
mod assembly;
mod failures;
mod requests;

/// What the consumer's side may read while the engine runs.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) retries: AtomicU64,
    pub(crate) hedges: AtomicU64,
    pub(crate) window_bytes: AtomicU64,
    pub(crate) window_bytes_max: AtomicU64,
}

/// What an engine is made of.
pub(crate) struct Parts<C: Collate> {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) collate: Arc<C>,
    pub(crate) config: LoaderConfig,
    pub(crate) state: State,
    pub(crate) workers: Arc<Workers>,
    pub(crate) queue: Arc<ReadyQueue<C::Batch>>,
    pub(crate) held: Arc<Held>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) events: UnboundedReceiver<ConsumerEvent>,
}

/// Ends the queue whatever happens to the engine: without it a consumer would wait for ever when the runtime goes away, even
/// before the engine has run at all.
struct Farewell<B>(Arc<ReadyQueue<B>>);

impl<B> Drop for Farewell<B> {
    fn drop(&mut self) {
        let error = if std::thread::panicking() {
            Error::new(ErrorKind::Internal, "the loader broke down").hint("please report it")
        } else {
            Error::new(ErrorKind::Cancelled, "the loader was stopped")
        };
        // The reason given first stays: this changes nothing after a regular end.
        self.0.end(Err(error));
    }
}

/// A position that has been asked for and has not come.
struct Wanted {
    payload_bytes: u64,
    copies: u32,
}

/// A slot that a worker thread has dealt with.
struct Done<S> {
    spot: Spot,
    target: Target,
    slot: S,
    tag: Tag,
    payload_bytes: u64,
    outcome: Result<()>,
}

/// What the plan and the index know of a position.
struct Ahead {
    plan: Plan,
    /// Positions here are those that a resumed state has left, counted from 0; this leads to the plan's ordinals.
    left: Gaps,
    catalog: Option<Arc<dyn Catalog>>,
    mean_bytes: u64,
}

impl Ahead {
    fn ordinal(&self, position: u64) -> u64 {
        self.left.at(position)
    }

    fn in_epoch(&self, position: u64) -> u64 {
        self.plan.position(self.ordinal(position))
    }

    fn row(&self, position: u64) -> u64 {
        self.plan.row(self.in_epoch(position))
    }

    /// Payload size of a row; the mean until the index has arrived.
    fn payload_bytes(&self, row: u64) -> u64 {
        self.catalog
            .as_ref()
            .map_or(self.mean_bytes, |catalog| catalog.nbytes(row))
    }
}

pub(crate) struct Engine<C: Collate> {
    farewell: Farewell<C::Batch>,
    parts: Parts<C>,
    policy: Box<dyn Prefetcher>,
    ahead: Ahead,
    positions: u64,
    requests: Requests,
    reorder: Reorder,
    assembly: Assembly<C>,
    wanted: BTreeMap<u64, Wanted>,
    lost: HashMap<u64, u32>,
    arrived: HashMap<u64, Result<Sample>>,
    substitutes: HashMap<u64, Spot>,
    /// Failures of samples that are not settled yet.
    failing: HashMap<u64, Failure>,
    places: Vec<Place>,
    taken: u64,
    failures: u64,
    jobs_out: usize,
    done_sender: UnboundedSender<Done<C::Slot>>,
    done: UnboundedReceiver<Done<C::Slot>>,
    /// Bytes set aside for the slot of each position that is out or arrived and not in its slot.
    reserved: HashMap<u64, u64>,
    /// What filled slots took, in parts of what the collation had expected.
    slot_scale: f64,
}

impl<C: Collate> Engine<C> {
    pub(crate) fn new(parts: Parts<C>, policy: Box<dyn Prefetcher>) -> Self {
        let Parts {
            store,
            collate,
            config,
            state,
            ..
        } = &parts;
        let plan = state.plan();
        let positions = plan.ordinals().saturating_sub(state.settled.len());
        let requests = Requests::new(Arc::clone(store), config.parts.clone().map(Into::into));
        let reorder = Reorder::new(
            config.order,
            positions,
            config.batch_samples,
            config.horizon_batches(),
        );
        let assembly = Assembly::new(Arc::clone(collate), plan.clone(), state.handed_batches);
        let (done_sender, done) = unbounded_channel();
        let mean_bytes = store.summary().mean_bytes();
        Self {
            farewell: Farewell(Arc::clone(&parts.queue)),
            ahead: Ahead {
                plan,
                left: state.settled.gaps(),
                catalog: None,
                mean_bytes,
            },
            failures: state.failures,
            policy,
            positions,
            requests,
            reorder,
            assembly,
            wanted: BTreeMap::new(),
            lost: HashMap::new(),
            arrived: HashMap::new(),
            substitutes: HashMap::new(),
            failing: HashMap::new(),
            places: Vec::new(),
            taken: 0,
            jobs_out: 0,
            done_sender,
            done,
            reserved: HashMap::new(),
            slot_scale: 1.0,
            parts,
        }
    }

    /// Runs the epoch to its end; what came of it is the last thing in the queue.
    ///
    /// # Cancellation
    /// Dropping the future gives up all requests and tells the consumer.
    pub(crate) async fn run(mut self) {
        let outcome = self.drive().await;
        let mut failures = self.assembly.failures();
        failures.extend(self.failing.drain().map(|(_, failure)| failure));
        failures.sort_by_key(|failure| failure.position);
        let outcome = outcome.map_err(|error| error.in_store(&self.parts.store));
        self.farewell.0.end_with(outcome, failures);
    }

    async fn drive(&mut self) -> Result<()> {
        let mut catalog = {
            let store = Arc::clone(&self.parts.store);
            Box::pin(async move { store.catalog().await })
        };
        // Sizes and labels are at hand for a local store; over a distance batches start with the mean size instead.
        if self.parts.store.capability().local || self.parts.config.on_error == OnError::Substitute
        {
            self.ahead.catalog = Some(catalog.as_mut().await?);
        }
        let mut answers = Vec::new();
        loop {
            while let Some(ready) = self.assembly.complete()? {
                self.parts.queue.push(ready);
            }
            if self.assembly.is_finished() {
                return Ok(());
            }
            let now = Instant::now();
            let wake = self.act(now);
            self.requests.send(now);
            self.blame();
            let sleep = async {
                match wake {
                    Some(moment) => tokio::time::sleep_until(moment.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.requests.answers(&mut answers) => {}
                Some(done) = self.done.recv() => self.finished(done)?,
                Some(event) = self.parts.events.recv() => self.told(event),
                rows = &mut catalog, if self.ahead.catalog.is_none() => self.ahead.catalog = Some(rows?),
                () = sleep => {}
            }
            for answer in answers.drain(..) {
                self.answered(answer)?;
            }
            while let Ok(done) = self.done.try_recv() {
                self.finished(done)?;
            }
            while let Ok(event) = self.parts.events.try_recv() {
                self.told(event);
            }
        }
    }

    /// Does what the policy wants until it waits; returns when to ask it again.
    fn act(&mut self, now: Instant) -> Option<Instant> {
        let wake = loop {
            let expected = |position| {
                let payload_bytes = self.ahead.payload_bytes(self.ahead.row(position));
                payload_bytes
                    + scaled(
                        self.parts.collate.slot_bytes(payload_bytes),
                        self.slot_scale,
                    )
            };
            let outlook = Outlook {
                positions: self.positions,
                batch_samples: self.parts.config.batch_samples,
                open_batch: self.reorder.open_batch(),
                taken_batches: self.taken,
                horizon_batches: self.parts.config.horizon_batches(),
                held_bytes: self.parts.held.now(),
                budget_bytes: self.parts.config.memory_bytes,
                expected_bytes: &expected,
            };
            match self.policy.next(now, &outlook) {
                Action::Issue { position, lane } => self.issue(position, lane),
                Action::Hedge { position, avoid } => self.hedge(position, None, Some(avoid)),
                Action::Probe { lane } => {
                    if let Some(&position) = self.wanted.keys().next() {
                        self.hedge(position, Some(lane), None);
                    }
                }
                Action::Cancel { position } => self.cancel(position),
                Action::Wait { until } => break until,
            }
        };
        let window = self.policy.snapshot().window_bytes;
        self.parts.counters.window_bytes.store(window, Relaxed);
        self.parts
            .counters
            .window_bytes_max
            .fetch_max(window, Relaxed);
        wake
    }

    fn issue(&mut self, position: u64, lane: Option<Lane>) {
        let row = self.ahead.row(position);
        let payload_bytes = self.ahead.payload_bytes(row);
        let slot_bytes = scaled(
            self.parts.collate.slot_bytes(payload_bytes),
            self.slot_scale,
        );
        self.parts.held.add(payload_bytes + slot_bytes);
        self.reserved.insert(position, slot_bytes);
        self.wanted.insert(
            position,
            Wanted {
                payload_bytes,
                copies: 1,
            },
        );
        self.requests.queue(Target {
            position,
            row,
            substitute: 0,
            bytes: payload_bytes,
            lane,
            avoid: None,
        });
    }

    /// Gives up the requests for a position; one that has not come may then be issued anew.
    fn cancel(&mut self, position: u64) {
        self.requests.cancel(position);
        if let Some(wanted) = self.wanted.remove(&position) {
            self.parts.held.remove(wanted.payload_bytes);
            self.release(position);
        }
    }

    /// Gives back what was set aside for the slot of a position.
    fn release(&mut self, position: u64) {
        self.parts
            .held
            .remove(self.reserved.remove(&position).unwrap_or(0));
    }

    fn hedge(&mut self, position: u64, lane: Option<Lane>, avoid: Option<Lane>) {
        let Some(wanted) = self.wanted.get_mut(&position) else {
            return;
        };
        wanted.copies += 1;
        self.parts.counters.hedges.fetch_add(1, Relaxed);
        let row = self.ahead.row(position);
        self.requests.queue_first(Target {
            position,
            row,
            substitute: 0,
            bytes: wanted.payload_bytes,
            lane,
            avoid,
        });
    }

    fn told(&mut self, event: ConsumerEvent) {
        let now = Instant::now();
        match event {
            ConsumerEvent::Taken(taken) => {
                self.taken += 1;
                self.policy.taken(now, taken);
            }
            ConsumerEvent::Lent(change_bytes) => self.policy.lent(now, change_bytes),
        }
    }

    /// Says what a consumer that waits now waits for.
    fn blame(&self) {
        let decoders_are_busy = self.jobs_out >= self.parts.config.threads;
        let cause = match self.parts.store.capability().local {
            _ if decoders_are_busy || (self.jobs_out > 0 && self.requests.is_idle()) => {
                Cause::Decode
            }
            true => Cause::Store,
            false => Cause::Link,
        };
        self.parts.queue.blame(cause);
    }
}

fn scaled(bytes: u64, scale: f64) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate of a size; the cast saturates"
    )]
    let scaled = (bytes as f64 * scale) as u64;
    scaled
}
