//! What belongs to one process: after a fork the child must neither use nor tear down what the parent's threads run.

use std::{mem, process};

use farhaul::{Error, ErrorKind, Result};

/// A value with threads or locks behind it. In a forked child it cannot be reached, and dropping it there leaks it, because
/// the threads that its destructor would wait for exist in the parent alone.
#[derive(Debug)]
pub(crate) struct OfProcess<T> {
    value: Option<T>,
    owner: u32,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: Some(value),
            owner: process::id(),
        }
    }

    /// The value, in the process that made it.
    pub(crate) fn get(&self) -> Result<&T> {
        self.value
            .as_ref()
            .filter(|_| self.is_own())
            .ok_or_else(forked)
    }

    fn is_own(&self) -> bool {
        self.owner == process::id()
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if !self.is_own() {
            mem::forget(self.value.take());
        }
    }
}

fn forked() -> Error {
    Error::new(
        ErrorKind::Usage,
        "this was started before the process forked and runs in the parent alone",
    )
    .hint("start a new iteration in the child: iter(loader)")
}
