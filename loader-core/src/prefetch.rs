//! The third of the three traits: how much to ask for, and when. Told and asked; it does nothing itself.

use std::{fmt::Debug, time::Instant};

use crate::store::Lane;

pub mod fixed;

/// How a request ended, as far as a policy cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The sample came.
    Delivered,
    /// It will not come: the sample itself is bad.
    Failed,
    /// The request failed and the position has to be issued again.
    Lost,
    /// It changes nothing: another copy came first, or is still out.
    Duplicate,
}

/// One request that ended.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// The position that it was for.
    pub position: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// When it was issued.
    pub started: Instant,
    /// The lane that it went over.
    pub lane: Lane,
    /// How it ended.
    pub arrival: Arrival,
}

/// A batch that the consumer took.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// Number of the batch, from 0.
    pub batch: u64,
    /// Bytes of payload that were in it.
    pub bytes: u64,
    /// Since when the consumer had been waiting for it; `None` if it was ready.
    pub waited_since: Option<Instant>,
}

/// What a policy wants done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Ask for a position; `None` leaves the lane to the store.
    Issue {
        /// The position to ask for.
        position: u64,
        /// The lane to use.
        lane: Option<Lane>,
    },
    /// Ask for a position a second time, elsewhere.
    Hedge {
        /// The position that is late.
        position: u64,
        /// The lane on which it is late.
        avoid: Lane,
    },
    /// Give up the requests for a position that are still out: a copy has come, or it is to be issued anew.
    Cancel {
        /// The position.
        position: u64,
    },
    /// Find out whether a lane answers again.
    Probe {
        /// The lane.
        lane: Lane,
    },
    /// Nothing before this moment; `None`: nothing until something is told.
    Wait {
        /// When to ask again.
        until: Option<Instant>,
    },
}

/// What a policy may look at when it is asked: the plan's future and what is held.
///
/// Positions are counted per rank from 0 in the order of the epoch (or of what is left of it after a resume), without gaps.
/// Batch `b` holds positions `b·batch_samples ..`; only the last batch is shorter.
#[derive(Clone, Copy)]
pub struct Outlook<'a> {
    /// Positions of this epoch.
    pub positions: u64,
    /// Positions in a batch.
    pub batch_samples: u64,
    /// The batch being filled, counted from 0: all before it have been handed to the consumer's queue.
    pub open_batch: u64,
    /// Batches that the consumer has taken.
    pub taken_batches: u64,
    /// How many batches ahead of the open one may be asked for: beyond it a sample could come too late for its place.
    pub horizon_batches: u64,
    /// Bytes held: in flight, unordered, ready and lent.
    pub held_bytes: u64,
    /// The budget for them, bytes.
    pub budget_bytes: u64,
    /// Expected payload size of a position, bytes.
    pub expected_bytes: &'a dyn Fn(u64) -> u64,
}

impl Debug for Outlook<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Outlook")
            .field("positions", &self.positions)
            .field("batch_samples", &self.batch_samples)
            .field("open_batch", &self.open_batch)
            .field("taken_batches", &self.taken_batches)
            .field("horizon_batches", &self.horizon_batches)
            .field("held_bytes", &self.held_bytes)
            .field("budget_bytes", &self.budget_bytes)
            .finish_non_exhaustive()
    }
}

impl Outlook<'_> {
    /// True where a position of so many bytes may be asked for now: it lies within the horizon and fits into the budget.
    ///
    /// What the consumer needs next is always admitted, or nothing would ever move again: the batch being filled, as long as no
    /// complete one waits. So what is held never exceeds the budget by more than a batch.
    pub fn admits(&self, position: u64, bytes: u64) -> bool {
        let batch = position / self.batch_samples.max(1);
        if batch <= self.open_batch && self.open_batch <= self.taken_batches {
            return true;
        }
        let within_horizon = batch.saturating_sub(self.open_batch) <= self.horizon_batches;
        within_horizon && self.held_bytes.saturating_add(bytes) <= self.budget_bytes
    }
}

/// A policy's figures for `stats()` and plots.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PrefetchSnapshot {
    /// Bytes that it wants to have in flight now.
    pub window_bytes: u64,
    /// Estimated delivery rate, bytes per second; 0 where it does not estimate one.
    pub rate_bytes_per_s: f64,
    /// Estimated latency of a request without queueing, ms; 0 where it does not estimate one.
    pub latency_ms: f64,
}

/// How much to ask for, and when: a pure state machine over a clock that others own.
///
/// # Contract
/// - No I/O, no clock, no spawning, no randomness but from a seed: the same calls give the same answers.
/// - It is asked [`next`](Self::next) after anything was told, and again until it answers `Wait`.
/// - Each position is issued once; again only after it was told that the request was
///   [`Arrival::Lost`], or after it cancelled it.
/// - It never issues what [`Outlook::admits`] refuses.
/// - A call takes O(1) time, amortised.
pub trait Prefetcher: Debug + Send {
    /// A request ended.
    fn completed(&mut self, now: Instant, completion: Completion);
    /// The consumer took a batch.
    fn taken(&mut self, now: Instant, taken: Taken);
    /// Bytes lent to the consumer grew or shrank: it keeps batches alive, or let them go.
    fn lent(&mut self, now: Instant, change_bytes: i64);
    /// A store said that it has too much to do; where it named a moment to come back, that is `until`.
    fn overloaded(&mut self, now: Instant, lane: Lane, until: Option<Instant>);
    /// What to do now.
    fn next(&mut self, now: Instant, outlook: &Outlook<'_>) -> Action;
    /// Figures to show.
    fn snapshot(&self) -> PrefetchSnapshot;
}
