//! Where the engine puts complete batches and the consumer waits for them.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    collate::Failure,
    error::Error,
    loader::stats::{Cause, Waits},
    prefetch::Taken,
};

/// What the consumer tells the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ConsumerEvent {
    Taken(Taken),
    Lent(i64),
}

/// A complete batch on its way to the consumer.
#[derive(Debug)]
pub(crate) struct Ready<B> {
    pub(crate) batch: B,
    /// Ordinals that are settled once this is handed over.
    pub(crate) ordinals: Vec<u64>,
    pub(crate) samples: u64,
    pub(crate) payload_bytes: u64,
    /// Bytes that stay held until the consumer lets go.
    pub(crate) held_bytes: u64,
    pub(crate) failures: Vec<Failure>,
}

/// What the consumer finds.
pub(crate) enum Found<B> {
    Batch(Ready<B>, Option<Instant>),
    Nothing,
    End,
    Failed(Error),
}

#[derive(Debug)]
struct Inner<B> {
    batches: VecDeque<Ready<B>>,
    end: Option<Result<(), Error>>,
    failures: Vec<Failure>,
    cause: Cause,
    waits: Waits,
}

/// A queue of complete batches; bounded by the byte budget, not by itself.
#[derive(Debug)]
pub(crate) struct ReadyQueue<B> {
    inner: Mutex<Inner<B>>,
    arrived: Condvar,
}

impl<B> Default for ReadyQueue<B> {
    fn default() -> Self {
        let inner = Inner {
            batches: VecDeque::new(),
            end: None,
            failures: Vec::new(),
            cause: Cause::Store,
            waits: Waits::default(),
        };
        Self {
            inner: Mutex::new(inner),
            arrived: Condvar::new(),
        }
    }
}

impl<B> ReadyQueue<B> {
    pub(crate) fn push(&self, ready: Ready<B>) {
        self.lock().batches.push_back(ready);
        self.arrived.notify_one();
    }

    /// Says that nothing more will come, and why. The first reason given stays.
    pub(crate) fn end(&self, outcome: Result<(), Error>) {
        self.end_with(outcome, Vec::new());
    }

    /// Ends as well, with the failures of samples whose batches will never be complete.
    pub(crate) fn end_with(&self, outcome: Result<(), Error>, failures: Vec<Failure>) {
        let mut inner = self.lock();
        if inner.end.is_none() {
            inner.end = Some(outcome);
            inner.failures = failures;
        }
        drop(inner);
        self.arrived.notify_all();
    }

    /// The failures that the end left behind, once.
    pub(crate) fn left_behind(&self) -> Vec<Failure> {
        std::mem::take(&mut self.lock().failures)
    }

    /// Makes whatever the end was a clean one, after its error was seen.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.batches.clear();
        inner.end = Some(Ok(()));
    }

    /// Says what a consumer that waits now waits for.
    pub(crate) fn blame(&self, cause: Cause) {
        let mut inner = self.lock();
        if inner.cause != cause {
            inner.cause = cause;
            // A waiting consumer books the time so far under the old cause.
            drop(inner);
            self.arrived.notify_one();
        }
    }

    pub(crate) fn waits(&self) -> Waits {
        self.lock().waits
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().batches.len()
    }

    /// Waits up to `patience` for the next batch.
    pub(crate) fn take(&self, patience: Duration) -> Found<B> {
        let mut inner = self.lock();
        let begun = Instant::now();
        let mut booked = begun;
        let mut waited = false;
        loop {
            if let Some(ready) = inner.batches.pop_front() {
                return Found::Batch(ready, waited.then_some(begun));
            }
            match &inner.end {
                Some(Ok(())) => return Found::End,
                // The error stays, so that asking again does not look like a clean end.
                Some(Err(error)) => return Found::Failed(error.clone()),
                None => {}
            }
            let Some(left) = patience
                .checked_sub(begun.elapsed())
                .filter(|left| !left.is_zero())
            else {
                return Found::Nothing;
            };
            waited = true;
            let cause = inner.cause;
            inner = self
                .arrived
                .wait_timeout(inner, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            let now = Instant::now();
            inner.waits.add(cause, now - booked);
            booked = now;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<B>> {
        // A panic elsewhere must not become one here: the data are valid after every statement.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
