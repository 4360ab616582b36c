//! No more requests and bytes under way than a store, or the memory, can bear.

use std::{fmt, future::pending, sync::Arc};

use async_trait::async_trait;
use futures_util::{
    FutureExt, StreamExt,
    future::{Either, select},
    stream::{self, BoxStream},
};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

use super::owed::{Answers, missing};
use crate::{
    catalog::{Catalog, Summary},
    error::{Error, ErrorKind, Result},
    identity::SampleKey,
    sample::Row,
    store::{Capability, FetchRequest, Fetched, Store},
};

/// Semaphores count in 32 bits: bytes are counted in units of this many, which reaches to 4 TiB.
const UNIT_BYTES: u64 = 1024;

/// What may be under way at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LimitConfig {
    /// Fetches under way; default 64, at least 1. More of them hide more latency and load the store more.
    pub requests_in_flight: usize,
    /// Payload bytes expected by the fetches under way; default 256 MiB, at least 1 KiB. More of them fill a longer link and
    /// take as much memory.
    pub bytes_in_flight: u64,
}

impl Default for LimitConfig {
    fn default() -> Self {
        Self {
            requests_in_flight: 64,
            bytes_in_flight: 256 << 20,
        }
    }
}

/// A store that is asked for so much at once and no more; the rest waits its turn, first come, first served.
///
/// A fetch joins the queue when it is first polled and counts from when it starts until its last answer is out or it is
/// dropped. One that expects more bytes than the limit waits until it is alone. A fetch that says nothing of its bytes counts as
/// so many samples of mean size. While it waits its deadline holds.
#[derive(Debug, Clone)]
pub struct Limit {
    inner: Arc<dyn Store>,
    /// One waiter at a time takes from the two others, or those that wait for bytes would be overtaken.
    turnstile: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    units: Arc<Semaphore>,
    most_units: u32,
    mean_bytes: u64,
}

type Permits = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Limit {
    /// Wraps a store. Clones share the limit.
    pub fn new(inner: Arc<dyn Store>, config: &LimitConfig) -> Self {
        let most_units = u32::try_from(config.bytes_in_flight / UNIT_BYTES)
            .unwrap_or(u32::MAX)
            .max(1);
        let requests = config.requests_in_flight.clamp(1, Semaphore::MAX_PERMITS);
        let mean_bytes = inner.summary().mean_bytes();
        Self {
            inner,
            turnstile: Arc::new(Semaphore::new(1)),
            requests: Arc::new(Semaphore::new(requests)),
            units: Arc::new(Semaphore::new(
                (most_units as usize).min(Semaphore::MAX_PERMITS),
            )),
            most_units,
            mean_bytes,
        }
    }

    fn units(&self, request: &FetchRequest) -> u32 {
        let bytes = match request.expected_bytes {
            0 => self.mean_bytes.saturating_mul(request.targets.len() as u64),
            bytes => bytes,
        };
        u32::try_from(bytes.div_ceil(UNIT_BYTES))
            .unwrap_or(u32::MAX)
            .min(self.most_units)
    }

    async fn admit(&self, units: u32) -> Permits {
        const OPEN: &str = "these semaphores are never closed";
        let turn = self.turnstile.acquire().await.expect(OPEN);
        let request = Arc::clone(&self.requests)
            .acquire_owned()
            .await
            .expect(OPEN);
        let units = Arc::clone(&self.units)
            .acquire_many_owned(units)
            .await
            .expect(OPEN);
        drop(turn);
        (request, units)
    }
}

#[async_trait]
impl Store for Limit {
    fn capability(&self) -> Capability {
        self.inner.capability()
    }

    fn summary(&self) -> Summary {
        self.inner.summary()
    }

    async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        self.inner.catalog().await
    }

    fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched> {
        let this = self.clone();
        let start = async move {
            let targets = request.targets.len();
            let deadline = request.deadline.map(Instant::from_std);
            let late = Box::pin(async move {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => pending().await,
                }
            });
            let admitted = Box::pin(this.admit(this.units(&request)));
            let permits = match select(admitted, late).await {
                Either::Left((permits, _)) => permits,
                Either::Right(_) => {
                    let message = "the deadline passed before it was this request's turn";
                    let error = Error::new(ErrorKind::Timeout, message).in_store(&this.inner);
                    return stream::iter(0..targets)
                        .map(move |target| missing(target, error.clone()))
                        .boxed();
                }
            };
            Answers::new(this.inner.fetch(request), targets, permits).boxed()
        };
        start.flatten_stream().boxed()
    }

    fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
        self.inner.keys()
    }

    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
        self.inner.metadata()
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, out)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Mutex,
            atomic::{AtomicU64, Ordering},
        },
        time::Duration,
    };

    use tokio::{task::JoinSet, time::sleep};

    use super::*;
    use crate::wrap::owed::tests::{MadeUp, outcomes, request};

    const SECOND: Duration = Duration::from_secs(1);

    /// What a slow store saw of the fetches that reached it.
    #[derive(Debug, Default)]
    struct Seen {
        requests: AtomicU64,
        most_requests: AtomicU64,
        bytes: AtomicU64,
        most_bytes: AtomicU64,
        order: Mutex<Vec<u64>>,
    }

    struct Under(Arc<Seen>, u64);

    impl Drop for Under {
        fn drop(&mut self) {
            self.0.requests.fetch_sub(1, Ordering::SeqCst);
            self.0.bytes.fetch_sub(self.1, Ordering::SeqCst);
        }
    }

    fn limited(requests_in_flight: usize, bytes_in_flight: u64) -> (Limit, Arc<Seen>) {
        let seen = Arc::new(Seen::default());
        let slow = {
            let seen = Arc::clone(&seen);
            move |request: FetchRequest, right: BoxStream<'static, Fetched>| {
                let bytes = request.expected_bytes;
                let under = Under(Arc::clone(&seen), bytes);
                seen.order.lock().unwrap().push(bytes);
                let requests = seen.requests.fetch_add(1, Ordering::SeqCst) + 1;
                seen.most_requests.fetch_max(requests, Ordering::SeqCst);
                let bytes = seen.bytes.fetch_add(bytes, Ordering::SeqCst) + bytes;
                seen.most_bytes.fetch_max(bytes, Ordering::SeqCst);
                let slow = right.then(move |fetched| {
                    let _ = &under;
                    async {
                        sleep(SECOND).await;
                        fetched
                    }
                });
                slow.boxed()
            }
        };
        let config = LimitConfig {
            requests_in_flight,
            bytes_in_flight,
        };
        (Limit::new(MadeUp::new(1, slow), &config), seen)
    }

    fn start(tasks: &mut JoinSet<Vec<Result<u64, ErrorKind>>>, store: &Limit, expected_bytes: u64) {
        let mut request = request(store, 0..1);
        request.expected_bytes = expected_bytes;
        let stream = store.fetch(request);
        tasks.spawn(outcomes(stream));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_and_bytes_stay_below_their_limits_and_all_are_answered() {
        let (store, seen) = limited(3, 10 << 10);
        let mut tasks = JoinSet::new();
        for number in 0..40 {
            start(&mut tasks, &store, (number % 7) << 10);
        }
        while let Some(outcomes) = tasks.join_next().await {
            assert_eq!(outcomes.unwrap(), [Ok(100)]);
        }
        assert_eq!(seen.most_requests.load(Ordering::SeqCst), 3);
        assert!(seen.most_bytes.load(Ordering::SeqCst) <= 10 << 10);
        assert_eq!(
            (
                seen.requests.load(Ordering::SeqCst),
                seen.bytes.load(Ordering::SeqCst)
            ),
            (0, 0)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn small_requests_do_not_overtake_a_large_one() {
        let (store, seen) = limited(8, 10 << 10);
        let sizes = [6 << 10, 9 << 10, 1 << 10, 1 << 10, 50 << 10, 1 << 10];
        let mut tasks = JoinSet::new();
        for size in sizes {
            start(&mut tasks, &store, size);
            tokio::task::yield_now().await;
        }
        tasks.join_all().await;
        assert_eq!(*seen.order.lock().unwrap(), sizes);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_stream_gives_back_its_permits_and_its_place() {
        let (store, seen) = limited(1, 1 << 20);
        let mut first = store.fetch(request(&store, 0..1));
        let mut second = store.fetch(request(&store, 0..1));
        let third = store.fetch(request(&store, 0..1));
        // The first is under way, the second waits in the queue before the third.
        assert!(first.next().now_or_never().is_none());
        assert!(second.next().now_or_never().is_none());
        drop(second);
        drop(first);
        assert_eq!(outcomes(third).await, [Ok(100)]);
        assert_eq!(seen.order.lock().unwrap().len(), 2);
        assert_eq!(store.requests.available_permits(), 1);
        assert_eq!(store.units.available_permits(), 1024);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_answer_frees_the_permits_though_the_stream_is_kept() {
        let (store, _) = limited(1, 1 << 20);
        let mut kept = store.fetch(request(&store, 0..1));
        assert!(kept.next().await.is_some());
        assert_eq!(
            outcomes(store.fetch(request(&store, 0..1))).await,
            [Ok(100)]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_holds_while_a_request_waits() {
        let (store, seen) = limited(1, 1 << 20);
        let mut first = store.fetch(request(&store, 0..1));
        assert!(first.next().now_or_never().is_none());
        let mut second = request(&store, 0..1);
        second.deadline = Some((Instant::now() + SECOND / 2).into_std());
        assert_eq!(
            outcomes(store.fetch(second)).await,
            [Err(ErrorKind::Timeout)]
        );
        assert_eq!(seen.order.lock().unwrap().len(), 1);
    }
}
