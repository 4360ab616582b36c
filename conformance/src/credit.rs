//! A transport within one process that grants credits, answers out of order, and counts.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};
use loader_core::{CallOptions, Error, ErrorKind, Result, Transport, TransportCapability};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::{Instant, sleep, timeout_at},
};

use crate::random::Random;

/// The far end of a call: a request in, its answers out. An `Err` says that the peer breaks the call off.
pub type Responder = Arc<dyn Fn(Bytes) -> BoxStream<'static, Result<Bytes>> + Send + Sync>;

/// What a call may hold where the caller leaves it to the transport, bytes.
const DEFAULT_CREDIT_BYTES: u64 = 1 << 20;

/// How the fake behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreditConfig {
    /// Its lanes; default 2, at least 1.
    pub lanes: u16,
    /// Time between two answers of a call; default none.
    pub spacing: Duration,
    /// How many answers are shuffled with each other; default 4. With 1 they come in order.
    pub shuffled: usize,
    /// Seed of the shuffling; default 0.
    pub seed: u64,
}

impl Default for CreditConfig {
    fn default() -> Self {
        Self {
            lanes: 2,
            spacing: Duration::ZERO,
            shuffled: 4,
            seed: 0,
        }
    }
}

/// What the calls of a transport did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallCounts {
    /// Calls whose stream was polled.
    pub calls: u64,
    /// Calls whose stream ended by itself.
    pub finished: u64,
    /// Calls whose stream was dropped before.
    pub cancelled: u64,
    /// The most bytes that any one call had under way.
    pub most_under_way: u64,
}

/// A transport whose far end is a [`Responder`] in the same process.
///
/// Its peer runs as a task, produces answers only while the call's bytes under way are below its credit, and stops when the
/// stream is dropped or the deadline passes.
#[derive(Clone)]
pub struct CreditTransport(Arc<Inner>);

struct Inner {
    responder: Responder,
    config: CreditConfig,
    calls: AtomicU64,
    finished: AtomicU64,
    cancelled: AtomicU64,
    most_under_way: AtomicU64,
}

impl CreditTransport {
    /// A transport to `responder`.
    pub fn new(responder: Responder, config: CreditConfig) -> Self {
        let zero = || AtomicU64::new(0);
        let (calls, finished, cancelled, most_under_way) = (zero(), zero(), zero(), zero());
        Self(Arc::new(Inner {
            responder,
            config,
            calls,
            finished,
            cancelled,
            most_under_way,
        }))
    }

    /// What its calls did so far.
    pub fn counts(&self) -> CallCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CallCounts {
            calls: count(&self.0.calls),
            finished: count(&self.0.finished),
            cancelled: count(&self.0.cancelled),
            most_under_way: count(&self.0.most_under_way),
        }
    }
}

/// Bytes that the peer has produced and the caller has not taken, and who waits for fewer.
#[derive(Debug)]
struct Flow {
    credit: u64,
    under_way: Mutex<u64>,
    taken: Notify,
}

impl Flow {
    fn change(&self, change: impl FnOnce(&mut u64)) -> u64 {
        let mut under_way = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        change(&mut under_way);
        *under_way
    }

    /// Waits until there is room. The size of the next answer is not known yet, so it may overshoot: by one answer.
    async fn room(&self) {
        while self.change(|_| ()) >= self.credit {
            self.taken.notified().await;
        }
    }

    fn take(&self, bytes: u64) {
        self.change(|under_way| *under_way -= bytes);
        // A permit is kept for a peer that has looked but not begun to wait.
        self.taken.notify_one();
    }
}

/// One call under way: dropping it stops the peer.
struct Call {
    inner: Arc<Inner>,
    flow: Arc<Flow>,
    answers: mpsc::UnboundedReceiver<Result<Bytes>>,
    peer: JoinHandle<()>,
    deadline: Option<Instant>,
    over: bool,
}

impl Inner {
    fn start(self: Arc<Self>, request: Bytes, options: CallOptions) -> Call {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let credit = if options.credit_bytes == 0 {
            DEFAULT_CREDIT_BYTES
        } else {
            options.credit_bytes
        };
        let flow = Arc::new(Flow {
            credit,
            under_way: Mutex::new(0),
            taken: Notify::new(),
        });
        let (sender, answers) = mpsc::unbounded_channel();
        let peer = Arc::clone(&self).answer(number, request, Arc::clone(&flow), sender);
        let deadline = options.deadline.map(Instant::from_std);
        Call {
            inner: self,
            flow,
            answers,
            peer: tokio::spawn(peer),
            deadline,
            over: false,
        }
    }

    /// The far end of a call.
    async fn answer(
        self: Arc<Self>,
        call: u64,
        request: Bytes,
        flow: Arc<Flow>,
        to: mpsc::UnboundedSender<Result<Bytes>>,
    ) {
        let mut random = Random::new(self.config.seed ^ call);
        let mut produced = (self.responder)(request);
        let mut held = Vec::new();
        let mut end = None;
        loop {
            while end.is_none() && held.len() < self.config.shuffled.max(1) {
                let next = if held.is_empty() {
                    flow.room().await;
                    Some(produced.next().await)
                } else if flow.change(|_| ()) < flow.credit {
                    // What is held back only to be shuffled must not wait for a far end that is silent.
                    produced.next().now_or_never()
                } else {
                    None
                };
                match next {
                    Some(Some(Ok(answer))) => {
                        let under_way = flow.change(|under_way| *under_way += answer.len() as u64);
                        self.most_under_way.fetch_max(under_way, Ordering::Relaxed);
                        held.push(answer);
                    }
                    Some(Some(Err(error))) => end = Some(Some(error)),
                    Some(None) => end = Some(None),
                    None => break,
                }
            }
            if held.is_empty() {
                break;
            }
            sleep(self.config.spacing).await;
            let answer = held.swap_remove(random.index(held.len()));
            if to.send(Ok(answer)).is_err() {
                return;
            }
        }
        if let Some(Some(error)) = end {
            // Nobody to hear it is nobody to be told.
            let _ = to.send(Err(error));
        }
    }
}

impl Call {
    async fn next(&mut self) -> Option<Result<Bytes>> {
        if self.over {
            return None;
        }
        let next = match self.deadline {
            Some(deadline) => timeout_at(deadline, self.answers.recv()).await,
            None => Ok(self.answers.recv().await),
        };
        let next = next.unwrap_or_else(|_| {
            Some(Err(Error::new(
                ErrorKind::Timeout,
                "no answer before the deadline",
            )))
        });
        match &next {
            Some(Ok(answer)) => self.flow.take(answer.len() as u64),
            Some(Err(_)) | None => self.end(),
        }
        next
    }

    fn end(&mut self) {
        self.over = true;
        self.peer.abort();
        self.inner.finished.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.peer.abort();
        if !self.over {
            self.inner.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Transport for CreditTransport {
    fn capability(&self) -> TransportCapability {
        let mut capability = TransportCapability::new("credit");
        capability.lanes = self.0.config.lanes.max(1);
        capability
    }

    fn call(&self, request: Bytes, options: CallOptions) -> BoxStream<'static, Result<Bytes>> {
        let lanes = self.capability().lanes;
        let refusal = if options.lane.is_some_and(|lane| lane.0 >= lanes) {
            Some(Error::new(
                ErrorKind::Usage,
                format!("no such lane: there are {lanes}"),
            ))
        } else if options
            .deadline
            .is_some_and(|deadline| Instant::from_std(deadline) <= Instant::now())
        {
            Some(Error::new(ErrorKind::Timeout, "the deadline has passed"))
        } else {
            None
        };
        if let Some(error) = refusal {
            return stream::iter([Err(error)]).boxed();
        }
        let inner = Arc::clone(&self.0);
        // The peer starts with the first poll: a stream that nobody polls costs nothing.
        let start = async move {
            let call = inner.start(request, options);
            stream::unfold(call, |mut call| async { Some((call.next().await?, call)) })
        };
        start.flatten_stream().boxed()
    }
}

impl fmt::Display for CreditTransport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("credit:")
    }
}

impl fmt::Debug for CreditTransport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CreditTransport")
            .field("config", &self.0.config)
            .field("counts", &self.counts())
            .finish()
    }
}
