//! Far ends for the clauses: what is asked for is what comes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use loader_core::{Error, ErrorKind, Result};

use crate::{credit::Responder, random::Random};

/// Answers the bytes of a number; several requests in one call are written one after another.
pub(super) fn answer(number: u64, bytes: usize) -> Bytes {
    let mut answer = number.to_le_bytes().to_vec();
    answer.extend(Random::new(number).bytes(bytes));
    answer.truncate(bytes);
    answer.into()
}

/// A far end that sends the request back as its one answer.
pub(super) fn echo() -> Responder {
    Arc::new(|request| stream::iter([Ok(request)]).boxed())
}

/// What a far end saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Answers that were pulled out of it.
    pub(super) produced: AtomicU64,
    /// Calls whose answers it has stopped making, for whatever reason.
    pub(super) ended: AtomicU64,
}

struct Ended(Arc<Seen>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// A far end that makes `count` answers of `bytes` bytes, then ends as `last` says.
pub(super) fn produce(count: u64, bytes: usize, last: Last) -> (Responder, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let shared = Arc::clone(&seen);
    let responder = move |_: Bytes| -> BoxStream<'static, Result<Bytes>> {
        let ended = Ended(Arc::clone(&shared));
        let error = Error::new(ErrorKind::Unavailable, "the peer breaks off");
        let made = stream::iter(0..count).map(Ok);
        let rest = match last {
            Last::End => stream::empty().boxed(),
            Last::Hang => stream::pending().boxed(),
            Last::BreakOff => stream::iter([Err(error)]).boxed(),
        };
        // The guard is part of the outermost stream, so that it goes when the whole stream goes and no sooner.
        let answer = move |made: Result<u64>| {
            ended.0.produced.fetch_add(1, Ordering::SeqCst);
            made.map(|number| answer(number, bytes))
        };
        made.chain(rest).map(answer).boxed()
    };
    (Arc::new(responder), seen)
}

/// How a far end ends a call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Last {
    /// After its last answer.
    End,
    /// Not at all.
    Hang,
    /// With an error.
    BreakOff,
}
