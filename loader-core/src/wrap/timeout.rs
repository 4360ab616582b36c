//! No fetch takes longer than so long.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{FutureExt, Stream, StreamExt, stream::BoxStream};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, Sleep, sleep_until};

use super::owed::{Answers, Owed, missing};
use crate::{
    catalog::{Catalog, Summary},
    error::{Error, ErrorKind, Result},
    identity::SampleKey,
    sample::Row,
    store::{Capability, FetchRequest, Fetched, Store},
};

/// How long a fetch may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TimeoutConfig {
    /// Time from the first poll of a fetch to its last answer; default 30 s. More of it delays the retry of what is lost,
    /// less of it gives up what a slow link would still have brought.
    pub request: Duration,
}

impl Default for TimeoutConfig {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(30),
        }
    }
}

/// A store that answers every target in time: what is missing at the deadline is answered with
/// [`ErrorKind::Timeout`], and late answers are dropped with the stream that would have brought them.
///
/// The deadline is the request's own or the configured time from the first poll, whichever is earlier; the store inside is
/// told.
#[derive(Debug, Clone)]
pub struct Timeout {
    inner: Arc<dyn Store>,
    config: TimeoutConfig,
}

impl Timeout {
    /// Wraps a store.
    pub fn new(inner: Arc<dyn Store>, config: TimeoutConfig) -> Self {
        Self { inner, config }
    }
}

#[async_trait]
impl Store for Timeout {
    fn capability(&self) -> Capability {
        self.inner.capability()
    }

    fn summary(&self) -> Summary {
        self.inner.summary()
    }

    async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        self.inner.catalog().await
    }

    fn fetch(&self, mut request: FetchRequest) -> BoxStream<'static, Fetched> {
        let this = self.clone();
        let start = async move {
            let own = Instant::now().checked_add(this.config.request);
            let given = request.deadline.map(Instant::from_std);
            let deadline = own.into_iter().chain(given).min();
            request.deadline = deadline.map(Instant::into_std);
            let targets = request.targets.len();
            let inner = Answers::new(this.inner.fetch(request), targets, ());
            let timer = deadline.map(|deadline| Box::pin(sleep_until(deadline)));
            InTime {
                inner: Some(inner),
                timer,
                owed: Owed::new(targets),
                store: this.inner,
            }
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

impl fmt::Display for Timeout {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, out)
    }
}

struct InTime {
    inner: Option<Answers<()>>,
    timer: Option<Pin<Box<Sleep>>>,
    owed: Owed,
    store: Arc<dyn Store>,
}

impl Stream for InTime {
    type Item = Fetched;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Fetched>> {
        let this = &mut *self;
        // The timer comes first, or a store that always has something to say would never be cut off.
        let late = this
            .timer
            .as_mut()
            .is_some_and(|timer| timer.as_mut().poll(context).is_ready());
        if late {
            (this.inner, this.timer) = (None, None);
        }
        let Some(inner) = &mut this.inner else {
            return Poll::Ready(this.owed.take().map(|target| {
                let error = Error::new(ErrorKind::Timeout, "no answer before the deadline");
                missing(target, error.in_store(&this.store))
            }));
        };
        let answer = inner.poll_next_unpin(context);
        if let Poll::Ready(Some(fetched)) = &answer {
            this.owed.settle(fetched.target);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::time::sleep;

    use super::*;
    use crate::wrap::owed::tests::{MadeUp, outcomes, request};

    const SECOND: Duration = Duration::from_secs(1);

    fn config(request: Duration) -> TimeoutConfig {
        TimeoutConfig { request }
    }

    /// Answers target `n` after `n` seconds and never ends.
    fn one_a_second(
        _: FetchRequest,
        right: BoxStream<'static, Fetched>,
    ) -> BoxStream<'static, Fetched> {
        right
            .then(|fetched| async {
                sleep(SECOND * u32::from(fetched.target > 0)).await;
                fetched
            })
            .chain(stream::pending())
            .boxed()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_missing_at_the_deadline_is_answered_with_timeout() {
        let store = Timeout::new(MadeUp::new(4, one_a_second), config(SECOND * 3 / 2));
        let start = Instant::now();
        let late = Err(ErrorKind::Timeout);
        assert_eq!(
            outcomes(store.fetch(request(&store, 0..4))).await,
            [Ok(100), Ok(100), late, late]
        );
        // Timers of the runtime tick in whole milliseconds.
        assert!(start.elapsed() < SECOND * 3 / 2 + Duration::from_millis(5));
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_deadline_counts_and_the_store_is_told() {
        let seen = |request: FetchRequest, _: BoxStream<'static, Fetched>| {
            let deadline = Instant::from_std(request.deadline.unwrap());
            assert_eq!(deadline - Instant::now(), SECOND);
            stream::pending().boxed()
        };
        let store = Timeout::new(MadeUp::new(1, seen), config(SECOND * 9));
        let mut request = request(&store, 0..1);
        request.deadline = Some((Instant::now() + SECOND).into_std());
        assert_eq!(
            outcomes(store.fetch(request)).await,
            [Err(ErrorKind::Timeout)]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_always_has_something_to_say_is_cut_off_too() {
        let chatter = |_: FetchRequest, right: BoxStream<'static, Fetched>| {
            let again = || missing(0, Error::new(ErrorKind::Io, "x"));
            right
                .take(1)
                .chain(stream::repeat_with(again).then(|fetched| async {
                    tokio::time::advance(Duration::from_millis(1)).await;
                    fetched
                }))
                .boxed()
        };
        let store = Timeout::new(MadeUp::new(2, chatter), config(SECOND));
        assert_eq!(
            outcomes(store.fetch(request(&store, 0..2))).await,
            [Ok(100), Err(ErrorKind::Timeout)]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn time_runs_from_the_first_poll() {
        let store = Timeout::new(MadeUp::new(1, |_, right| right), config(SECOND));
        let stream = store.fetch(request(&store, 0..1));
        sleep(SECOND * 5).await;
        assert_eq!(outcomes(stream).await, [Ok(100)]);
    }
}
