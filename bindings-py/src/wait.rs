//! Waiting without the GIL, in slices so short that Ctrl-C feels immediate.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use farhaul::{Error, ErrorKind, Result};
use pyo3::prelude::*;

use crate::error::raise;

/// How long Python's signal handlers may wait.
pub(crate) const SLICE: Duration = Duration::from_millis(50);
/// How long work that was told to stop may take to put its things in order.
const LAST_WORDS: Duration = Duration::from_secs(4);

/// Runs blocking work on a thread of its own and waits for it without the GIL.
///
/// A signal handler that raises ends the wait; the work then goes on to its end unseen, and its result is dropped.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    wait(py, &mut begin(work)?)
}

/// As [`interruptible`], but tells the work to stop and gives it a moment to do so.
pub(crate) fn stoppable<T: Send + 'static>(
    py: Python<'_>,
    stop: impl FnOnce(),
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let mut receiver = begin(work)?;
    wait(py, &mut receiver).inspect_err(|_| {
        stop();
        let receiver = &mut receiver;
        // What it says now is of no interest; an error that it raised itself ends this wait at once.
        py.detach(move || drop(receiver.recv_timeout(LAST_WORDS)));
    })
}

fn begin<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<Receiver<Result<T>>> {
    let (sender, receiver) = sync_channel(1);
    let run = move || {
        // Nobody listens any more where the wait was interrupted.
        let _ = sender.send(work());
    };
    thread::Builder::new()
        .name("farhaul-call".to_owned())
        .spawn(run)
        .map_err(|cause| raise(Error::io("cannot start a thread", cause)))?;
    Ok(receiver)
}

fn wait<T: Send>(py: Python<'_>, receiver: &mut Receiver<Result<T>>) -> PyResult<T> {
    loop {
        let receiver = &mut *receiver;
        match py.detach(move || receiver.recv_timeout(SLICE)) {
            Ok(outcome) => return outcome.map_err(raise),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                let error = Error::new(ErrorKind::Internal, "the work broke down");
                return Err(raise(error.hint("please report it")));
            }
        }
    }
}
