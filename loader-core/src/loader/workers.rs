//! The threads that decode: a few, kept for the life of a loader, fed from one queue.

use std::{fmt, panic::AssertUnwindSafe};

use rayon_core::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, ErrorKind, Result};

/// A fixed number of threads for work that would hold up I/O.
pub(crate) struct Workers {
    pool: ThreadPool,
}

impl Workers {
    pub(crate) fn new(threads: usize) -> Result<Self> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("farhaul-decode-{number}"))
            .build()
            .map_err(|cause| {
                Error::new(ErrorKind::Io, "cannot start the decoding threads").caused_by(cause)
            })?;
        Ok(Self { pool })
    }

    /// Runs a job some time soon, first come first served. The job must not panic: see [`catch`].
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.pool.spawn_fifo(job);
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Workers({})", self.pool.current_num_threads())
    }
}

/// Runs a decoder and turns a panic of it into an error of that sample.
pub(crate) fn catch<T>(job: impl FnOnce() -> Result<T>) -> Result<T> {
    // What is half-changed by a panic is the slot alone, and a slot without a sample is never shown.
    std::panic::catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::Malformed,
            "the decoder broke down on this sample",
        )
        .hint("please report it with the sample"))
    })
}
