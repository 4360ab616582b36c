//! Waiting without the GIL, in slices so short that Ctrl-C feels immediate.

use std::{
    sync::mpsc::{RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use farhaul::{Error, ErrorKind, Result};
use pyo3::prelude::*;

use crate::error::raise;

/// How long Python's signal handlers may wait.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// Runs blocking work on a thread of its own and waits for it without the GIL.
///
/// A signal handler that raises ends the wait; the work then goes on to its end unseen, and its result is dropped.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = sync_channel(1);
    thread::Builder::new()
        .name("farhaul-call".to_owned())
        .spawn(move || {
            // Nobody listens any more where the wait was interrupted.
            let _ = sender.send(work());
        })
        .map_err(|cause| raise(Error::io("cannot start a thread", cause)))?;
    loop {
        let receiver = &mut receiver;
        match py.detach(move || receiver.recv_timeout(SLICE)) {
            Ok(outcome) => return outcome.map_err(raise),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(raise(
                    Error::new(ErrorKind::Internal, "the work broke down").hint("please report it"),
                ));
            }
        }
    }
}
