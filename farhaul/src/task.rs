//! What every long task takes and gives: progress, cancellation, and a report that is there even where it failed.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use loader_core::{Error, ErrorKind, Result};

/// Is told how far a task is. Calls come from one thread at a time and should return at once.
pub trait Progress: Sync {
    /// A step begins, with its name and the number of samples where that is known.
    fn started(&self, step: &'static str, samples: Option<u64>);
    /// So many more samples and payload bytes are done.
    fn advanced(&self, samples: u64, bytes: u64);
    /// Something may be a mistake though the task goes on. Comes at any time.
    fn warned(&self, warning: &str);
    /// The step is over, well or not.
    fn finished(&self);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn started(&self, _: &'static str, _: Option<u64>) {}
    fn advanced(&self, _: u64, _: u64) {}
    fn warned(&self, _: &str) {}
    fn finished(&self) {}
}

/// Stops tasks from another thread or a signal handler. Clones stop the same tasks.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks the tasks to stop; they do within the time of a request.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// True once somebody asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// The flag itself, for signal handlers that can only set one.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            Err(Error::new(ErrorKind::Cancelled, "stopped by the caller"))
        } else {
            Ok(())
        }
    }
}

/// What a task did, and why it ended early if it did.
#[derive(Debug, Clone)]
#[must_use]
pub struct Outcome<R> {
    /// What was done, up to the error if there is one.
    pub report: R,
    /// Why the task ended early.
    pub error: Option<Error>,
}

impl<R> Outcome<R> {
    pub(crate) fn new(report: R, result: Result<()>, operation: &'static str) -> Self {
        Self {
            report,
            error: result.err().map(|error| error.during(operation)),
        }
    }

    /// Names the store in an error that names none.
    #[cfg(feature = "cli")]
    pub(crate) fn in_store(mut self, store: &str) -> Self {
        self.error = self.error.map(|error| error.in_store(store));
        self
    }

    /// The report of a task that came to its end.
    ///
    /// # Errors
    /// Why it did not.
    pub fn into_result(self) -> Result<R> {
        match self.error {
            None => Ok(self.report),
            Some(error) => Err(error),
        }
    }
}
