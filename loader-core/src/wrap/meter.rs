//! What a store did: counts, and how long its answers took.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream::BoxStream};
use tokio::time::Instant;

use super::owed::Answers;
use crate::{
    catalog::{Catalog, Summary},
    error::Result,
    identity::SampleKey,
    sample::Row,
    store::{Capability, FetchRequest, Fetched, Store},
};

/// Four buckets for every power of two of microseconds: a quantile is right within a quarter.
const BUCKETS: usize = 4 * 40;

/// Counts that several wrappers add to at once, without a lock.
#[derive(Debug)]
pub struct Counters {
    requests: AtomicU64,
    samples: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
    retries: AtomicU64,
    cancelled: AtomicU64,
    latency: [AtomicU64; BUCKETS],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            requests: AtomicU64::default(),
            samples: AtomicU64::default(),
            bytes: AtomicU64::default(),
            failures: AtomicU64::default(),
            retries: AtomicU64::default(),
            cancelled: AtomicU64::default(),
            latency: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }
}

impl Counters {
    pub(super) fn retried(&self, targets: usize) {
        self.retries.fetch_add(targets as u64, Ordering::Relaxed);
    }

    fn answered(&self, fetched: &Fetched, latency: Duration) {
        match &fetched.outcome {
            Ok(sample) => {
                self.samples.fetch_add(1, Ordering::Relaxed);
                self.bytes
                    .fetch_add(sample.payload.len() as u64, Ordering::Relaxed);
            }
            Err(_) => drop(self.failures.fetch_add(1, Ordering::Relaxed)),
        }
        self.latency[bucket(latency)].fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted so far. Counts that are made meanwhile may be in one figure and not yet in another.
    pub fn snapshot(&self) -> Metered {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Metered {
            requests: count(&self.requests),
            samples: count(&self.samples),
            bytes: count(&self.bytes),
            failures: count(&self.failures),
            retries: count(&self.retries),
            cancelled: count(&self.cancelled),
            latency: Latency(self.latency.iter().map(count).collect()),
        }
    }
}

/// What a store did up to a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Metered {
    /// Fetches.
    pub requests: u64,
    /// Samples delivered.
    pub samples: u64,
    /// Payload bytes of the samples delivered.
    pub bytes: u64,
    /// Targets answered with an error, after all retries.
    pub failures: u64,
    /// Targets asked for again; one that is asked for three times counts twice.
    pub retries: u64,
    /// Targets whose stream was dropped before they were answered.
    pub cancelled: u64,
    /// Time from a fetch to each of its answers, good or bad.
    pub latency: Latency,
}

/// How long answers took: a histogram whose buckets are a quarter of a power of two wide.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latency(Vec<u64>);

impl Latency {
    /// Answers that were timed.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The time within which so many of 1,000 answers came (500 is the median), rounded up by at most a quarter;
    /// `None` where there were no answers.
    pub fn per_mille(&self, per_mille: u64) -> Option<Duration> {
        let rank = (self.count() * per_mille.min(1000)).div_ceil(1000).max(1);
        let mut seen = 0;
        let bucket = self.0.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(upper_edge(bucket))
    }
}

/// A store that counts what passes through it.
#[derive(Debug, Clone)]
pub struct Meter {
    inner: Arc<dyn Store>,
    counters: Arc<Counters>,
}

impl Meter {
    /// Wraps a store. Counters can be shared: with a [`Retry`](super::retry::Retry) inside, which counts its retries, and
    /// with other stores of the same kind.
    pub fn new(inner: Arc<dyn Store>, counters: Arc<Counters>) -> Self {
        Self { inner, counters }
    }

    /// What was counted so far.
    pub fn snapshot(&self) -> Metered {
        self.counters.snapshot()
    }
}

/// Counts what is still owed when a stream goes away.
struct Unanswered {
    counters: Arc<Counters>,
    count: u64,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.counters
            .cancelled
            .fetch_add(self.count, Ordering::Relaxed);
    }
}

#[async_trait]
impl Store for Meter {
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
        let start = Instant::now();
        let targets = request.targets.len();
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let mut unanswered = Unanswered {
            counters: Arc::clone(&self.counters),
            count: targets as u64,
        };
        let count = move |fetched: &Fetched| {
            unanswered.count -= 1;
            unanswered.counters.answered(fetched, start.elapsed());
        };
        Answers::new(self.inner.fetch(request), targets, ())
            .inspect(count)
            .boxed()
    }

    fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
        self.inner.keys()
    }

    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
        self.inner.metadata()
    }
}

impl fmt::Display for Meter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, out)
    }
}

/// Numbers below 4 have a bucket each; above, the two bits after the highest one choose among four.
fn bucket(latency: Duration) -> usize {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
    if micros < 4 {
        return usize::try_from(micros).expect("below 4");
    }
    let power = micros.ilog2();
    let quarter = (micros >> (power - 2)) & 3;
    let bucket = u64::from(power - 1) * 4 + quarter;
    usize::try_from(bucket)
        .expect("at most 4 · 63")
        .min(BUCKETS - 1)
}

/// The first time that is too long for a bucket.
fn upper_edge(bucket: usize) -> Duration {
    let next = bucket as u64 + 1;
    let micros = if next < 4 {
        next
    } else {
        (4 + next % 4) << (next / 4 - 1)
    };
    Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::time::sleep;

    use super::*;
    use crate::{
        error::{Error, ErrorKind},
        wrap::owed::tests::{MadeUp, outcomes, request},
    };

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn every_answer_is_counted_with_its_bytes_and_its_time() {
        let slow = |_: FetchRequest, right: BoxStream<'static, Fetched>| {
            let slow = right.then(|mut fetched| async {
                sleep(MILLISECOND * 10).await;
                if fetched.target == 2 {
                    fetched.outcome = Err(Error::new(ErrorKind::Corrupt, "x"));
                }
                fetched
            });
            slow.boxed()
        };
        let store = Meter::new(MadeUp::new(4, slow), Arc::default());
        outcomes(store.fetch(request(&store, 0..4))).await;
        let mut broken_off = store.fetch(request(&store, 0..4));
        assert!(broken_off.next().await.is_some());
        assert!(broken_off.next().now_or_never().is_none());
        drop(broken_off);
        let seen = store.snapshot();
        assert_eq!(
            (
                seen.requests,
                seen.samples,
                seen.bytes,
                seen.failures,
                seen.cancelled
            ),
            (2, 4, 400, 1, 3)
        );
        assert_eq!(seen.latency.count(), 5);
        let median = seen.latency.per_mille(500).unwrap();
        assert!(
            median > MILLISECOND * 20 && median <= MILLISECOND * 27,
            "{median:?}"
        );
    }

    #[test]
    fn no_answers_have_no_quantile() {
        assert_eq!(Counters::default().snapshot().latency.per_mille(500), None);
    }

    #[test]
    fn a_bucket_ends_within_a_quarter_of_what_is_in_it() {
        let mut last = 0;
        for micros in (0..5_000)
            .chain((13..39).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]))
        {
            let latency = Duration::from_micros(micros);
            let place = bucket(latency);
            assert!(place >= last, "{micros}");
            last = place;
            let edge = upper_edge(place);
            assert!(
                edge > latency && edge <= latency * 5 / 4 + Duration::from_micros(1),
                "{micros} µs: {edge:?}"
            );
        }
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }
}
