//! Answers a request: groups of samples are read on blocking threads and come back as they are ready.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use futures_util::Stream;
use loader_core::{Error, ErrorKind, Fetched, Lane, Result, Sample};
use tokio::{
    runtime::Handle,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::Sleep,
};

use crate::rows::Rows;

/// What is to be read.
pub(crate) struct Work {
    pub(crate) rows: Rows,
    /// The row of each target, or why there is none.
    pub(crate) targets: Vec<Result<u32>>,
    pub(crate) parts: Option<Arc<[String]>>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) group_samples: usize,
}

type Answer = (usize, Result<Sample>);

/// Starts reading. Dropping the stream stops it after the samples that are being read.
pub(crate) fn start(work: Work) -> Answers {
    // Unbounded: it never holds more than the request asked for, and a full channel would hold a thread of the pool.
    let (sender, receiver) = unbounded_channel();
    let count = work.targets.len();
    let mut found = Vec::with_capacity(count);
    for (target, row) in work.targets.into_iter().enumerate() {
        match row {
            Ok(row) => found.push((target, row)),
            Err(error) => drop(sender.send((target, Err(error)))),
        }
    }
    found.sort_by_key(|(_, row)| work.rows.place(*row as usize));
    match Handle::try_current() {
        Ok(runtime) => {
            for group in found.chunks(work.group_samples) {
                let group = Group {
                    rows: work.rows.clone(),
                    targets: group.to_vec(),
                    parts: work.parts.clone(),
                    deadline: work.deadline,
                    answers: sender.clone(),
                };
                drop(runtime.spawn_blocking(move || group.read()));
            }
        }
        Err(_) => {
            for (target, _) in found {
                drop(sender.send((target, Err(no_runtime()))));
            }
        }
    }
    let has_clock = Handle::try_current().is_ok();
    let timer = work
        .deadline
        .filter(|_| has_clock)
        .map(|deadline| Box::pin(tokio::time::sleep_until(deadline.into())));
    Answers {
        receiver,
        open: vec![true; count],
        missing: count,
        timer,
        is_late: false,
    }
}

/// Runs what blocks on a thread that may block.
///
/// # Errors
/// [`ErrorKind::Usage`] outside a runtime, [`ErrorKind::Cancelled`] where it ends before the work has.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let Ok(runtime) = Handle::try_current() else {
        return Err(no_runtime());
    };
    let done = runtime.spawn_blocking(work).await;
    done.map_err(|_| stopped())
}

fn no_runtime() -> Error {
    Error::new(
        ErrorKind::Usage,
        "a folder is read on a tokio runtime, and this thread has none",
    )
}

fn stopped() -> Error {
    Error::new(ErrorKind::Cancelled, "the runtime stopped reading")
}

/// Samples that one thread reads one after another.
struct Group {
    rows: Rows,
    targets: Vec<(usize, u32)>,
    parts: Option<Arc<[String]>>,
    deadline: Option<Instant>,
    answers: UnboundedSender<Answer>,
}

impl Group {
    fn read(self) {
        for (target, row) in &self.targets {
            if self.answers.is_closed() {
                return;
            }
            let row = *row as usize;
            let outcome = if is_past(self.deadline) {
                Err(too_late().at(self.rows.path(row)))
            } else {
                self.rows.read(row, self.parts.as_deref())
            };
            if self.answers.send((*target, outcome)).is_err() {
                return;
            }
        }
    }
}

/// The outcomes of a request, in completion order.
pub(crate) struct Answers {
    receiver: UnboundedReceiver<Answer>,
    open: Vec<bool>,
    missing: usize,
    timer: Option<Pin<Box<Sleep>>>,
    is_late: bool,
}

impl Answers {
    fn answer(&mut self, target: usize, outcome: Result<Sample>) -> Poll<Option<Fetched>> {
        self.open[target] = false;
        self.missing -= 1;
        Poll::Ready(Some(Fetched {
            target,
            lane: Lane(0),
            outcome,
        }))
    }

    fn answer_open(&mut self, error: &Error) -> Poll<Option<Fetched>> {
        match self.open.iter().position(|is_open| *is_open) {
            Some(target) => self.answer(target, Err(error.clone())),
            None => Poll::Ready(None),
        }
    }
}

impl Stream for Answers {
    type Item = Fetched;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Fetched>> {
        if self.missing == 0 {
            return Poll::Ready(None);
        }
        match self.receiver.poll_recv(context) {
            Poll::Ready(Some((target, outcome))) if self.open[target] => {
                return self.answer(target, outcome);
            }
            // The threads are gone though targets are open: the runtime is shutting down.
            Poll::Ready(None) => {
                return self.answer_open(&stopped());
            }
            // What came too late was answered already.
            Poll::Ready(Some(_)) | Poll::Pending => {}
        }
        self.is_late |= self
            .timer
            .as_mut()
            .is_some_and(|timer| timer.as_mut().poll(context).is_ready());
        if self.is_late {
            self.answer_open(&too_late())
        } else {
            Poll::Pending
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.missing, Some(self.missing))
    }
}

/// The runtime's clock: in production the machine's, in tests one that can be stopped.
fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| tokio::time::Instant::now().into_std() >= deadline)
}

fn too_late() -> Error {
    Error::new(ErrorKind::Timeout, "no answer before the deadline")
}
