//! Opening what the arguments name, so that Ctrl-C ends it at once: a listing or a lock may take long.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use loader_core::{Error, ErrorKind, Result, Source};

use super::output::note;
use crate::{
    dataset::Dataset, destination::Destination, options::OpenOptions, registry, runtime::no_thread,
    task::Cancel,
};

/// Time between two looks at whether to stop.
const PATIENCE: Duration = Duration::from_millis(50);

pub(super) fn data(uri: &OsStr, cancel: &Cancel) -> Result<Dataset> {
    let uri = uri.to_owned();
    let data = interruptible(cancel, move || match uri.to_str() {
        Some(uri) => registry::open(uri, &OpenOptions::default()),
        None => registry::open_at(Path::new(&uri), &OpenOptions::default()),
    })?;
    for warning in data.warnings() {
        note(&format!("warning: {warning}"));
    }
    Ok(data)
}

pub(super) fn source(
    uri: &OsStr,
    options: OpenOptions,
    cancel: &Cancel,
) -> Result<Box<dyn Source>> {
    let uri = uri.to_owned();
    interruptible(cancel, move || match uri.to_str() {
        Some(uri) => registry::open_source(uri, &options),
        None => registry::open_source_at(Path::new(&uri), &options),
    })
}

pub(super) fn destination(uri: &OsStr, cancel: &Cancel) -> Result<Destination> {
    let uri: OsString = uri.to_owned();
    interruptible(cancel, move || match uri.to_str() {
        Some(uri) => registry::create(uri, &OpenOptions::default()),
        None => registry::create_at(Path::new(&uri), &OpenOptions::default()),
    })
}

/// Does the work on a thread of its own, which is left alone once nobody wants it any more: the process ends soon.
fn interruptible<T: Send + 'static>(
    cancel: &Cancel,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let run = move || {
        // Nobody waits any more after a Ctrl-C.
        let _ = sender.send(work());
    };
    thread::Builder::new()
        .name("farhaul-open".into())
        .spawn(run)
        .map_err(no_thread)?;
    loop {
        cancel.check()?;
        match receiver.recv_timeout(PATIENCE) {
            Ok(opened) => return opened,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new(
                    ErrorKind::Internal,
                    "opening broke down before it had an answer",
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_given_up_when_it_is_cancelled() {
        let cancel = Cancel::default();
        let canceller = cancel.clone();
        let (started, running) = mpsc::channel();
        thread::spawn(move || {
            running.recv().unwrap();
            canceller.cancel();
        });
        let endless = move || {
            started.send(()).unwrap();
            loop {
                thread::park();
            }
        };
        assert_eq!(
            interruptible::<()>(&cancel, endless).unwrap_err().kind(),
            ErrorKind::Cancelled
        );
    }

    #[test]
    fn work_that_breaks_down_is_an_error() {
        let error = interruptible::<()>(&Cancel::default(), || panic!("on purpose")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
}
