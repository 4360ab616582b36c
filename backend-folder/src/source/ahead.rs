//! Reads samples ahead on a few threads and hands them out in order; what is held is bounded in bytes.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use loader_core::{Error, ErrorKind, NewSample, Result};

use crate::failure;

/// What a sample takes besides its payload, bytes, about: path, parts and fields. A million labels weigh more by that than by
/// their bytes.
pub(super) const SAMPLE_BYTES: u64 = 512;

/// Samples that can be read by number, by any thread.
pub(crate) trait Jobs: Debug + Send + Sync + 'static {
    /// How many there are.
    fn len(&self) -> usize;
    /// The payload of one, bytes.
    fn nbytes(&self, job: usize) -> u64;
    /// Reads one; blocks.
    fn read(&self, job: usize) -> Result<NewSample>;
}

/// Hands out all jobs' samples in order. The threads start with the first call.
#[derive(Debug)]
pub(super) struct ReadAhead {
    shared: Arc<Shared>,
    threads: usize,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    jobs: Arc<dyn Jobs>,
    limit: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The next job that nobody reads yet.
    next: usize,
    /// The next job to hand out.
    wanted: usize,
    /// Bytes of the jobs between the two.
    held: u64,
    ready: BTreeMap<usize, Result<NewSample>>,
    working: usize,
    is_over: bool,
}

impl ReadAhead {
    pub(super) fn new(jobs: Arc<dyn Jobs>, threads: usize, limit: u64) -> Self {
        let threads = threads.clamp(1, 64).min(jobs.len());
        let shared = Shared {
            jobs,
            limit,
            state: Mutex::default(),
            changed: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
            threads,
            workers: Vec::new(),
        }
    }

    pub(super) fn next_sample(&mut self) -> Option<Result<NewSample>> {
        if self.workers.is_empty()
            && self.threads > 0
            && let Err(error) = self.start()
        {
            return Some(Err(error));
        }
        let mut state = self.shared.state();
        while state.wanted < self.shared.jobs.len() {
            let wanted = state.wanted;
            if let Some(sample) = state.ready.remove(&wanted) {
                state.wanted += 1;
                state.held -= self.shared.held_by(wanted);
                self.shared.changed.notify_all();
                return Some(sample);
            }
            if state.working == 0 {
                state.wanted = self.shared.jobs.len();
                return Some(Err(Error::new(
                    ErrorKind::Internal,
                    "a reading thread stopped",
                )));
            }
            state = self
                .shared
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Starts as many threads as the system gives: an error where that is none, and then there are no samples.
    fn start(&mut self) -> Result<()> {
        self.shared.state().working = self.threads;
        while self.workers.len() < self.threads {
            let shared = Arc::clone(&self.shared);
            match thread::Builder::new().spawn(move || shared.work()) {
                Ok(worker) => self.workers.push(worker),
                Err(error) => {
                    let mut state = self.shared.state();
                    state.working -= self.threads - self.workers.len();
                    self.threads = self.workers.len();
                    if self.threads == 0 {
                        state.wanted = self.shared.jobs.len();
                        return Err(failure::no_thread(error));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
        for worker in self.workers.drain(..) {
            drop(worker.join());
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held_by(&self, job: usize) -> u64 {
        self.jobs.nbytes(job).saturating_add(SAMPLE_BYTES)
    }

    fn work(&self) {
        let _leaves = Leaves(self);
        while let Some(job) = self.claim() {
            let sample = self.jobs.read(job);
            self.state().ready.insert(job, sample);
            self.changed.notify_all();
        }
    }

    fn claim(&self) -> Option<usize> {
        let mut state = self.state();
        loop {
            if state.is_over || state.next == self.jobs.len() {
                return None;
            }
            let nbytes = self.held_by(state.next);
            // With nothing held the next one is always let in, however large: it is the one that is wanted.
            if state.held == 0 || state.held.saturating_add(nbytes) <= self.limit {
                state.held += nbytes;
                state.next += 1;
                return Some(state.next - 1);
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Says that a thread is gone, also where it panics: nobody waits for it for ever.
struct Leaves<'a>(&'a Shared);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.state().working -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU64, Ordering},
        time::Duration,
    };

    use bytes::Bytes;
    use loader_core::{Fields, Part};

    use super::*;

    #[derive(Debug, Default)]
    struct Numbers {
        read: AtomicU64,
    }

    impl Jobs for Numbers {
        fn len(&self) -> usize {
            100
        }

        fn nbytes(&self, _: usize) -> u64 {
            10
        }

        fn read(&self, job: usize) -> Result<NewSample> {
            self.read.fetch_add(1, Ordering::SeqCst);
            assert_ne!(job, 99, "the last one panics");
            let parts = Part::sequence([("txt", 0)]);
            Ok(NewSample {
                path: job.to_string().into(),
                label: 0,
                parts,
                payload: Bytes::new(),
                fields: Fields::new(),
            })
        }
    }

    #[test]
    fn samples_come_in_order_and_no_more_are_held_than_allowed() {
        let jobs = Arc::new(Numbers::default());
        let limit = 5 * (10 + SAMPLE_BYTES);
        let mut ahead = ReadAhead::new(Arc::clone(&jobs) as Arc<dyn Jobs>, 4, limit);
        for job in 0..20 {
            assert_eq!(
                ahead.next_sample().unwrap().unwrap().path.to_string(),
                job.to_string()
            );
        }
        thread::sleep(Duration::from_millis(50));
        assert!(jobs.read.load(Ordering::SeqCst) <= 25);
    }

    #[test]
    fn a_thread_that_panics_is_an_error_and_no_hang() {
        let mut ahead = ReadAhead::new(Arc::new(Numbers::default()), 1, 1 << 20);
        let last = std::iter::from_fn(|| ahead.next_sample()).last().unwrap();
        assert_eq!(last.unwrap_err().kind(), ErrorKind::Internal);
        assert!(ahead.next_sample().is_none());
    }
}
