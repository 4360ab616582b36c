//! What a loader did, and what the training loop waited for.

use std::time::Duration;

use serde::Serialize;

/// Where the time of a waiting consumer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The distance: requests to a remote store are out.
    Link,
    /// A store on this machine has not read the bytes yet.
    Store,
    /// The bytes are here, the decoders are busy.
    Decode,
    /// Batches are ready; the training loop is the slowest part.
    Consumer,
}

/// Time that the consumer waited, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Waits {
    /// For the distance.
    pub link: Duration,
    /// For a local store.
    pub store: Duration,
    /// For the decoders.
    pub decode: Duration,
}

impl Waits {
    pub(crate) fn add(&mut self, cause: Cause, time: Duration) {
        match cause {
            Cause::Link => self.link += time,
            Cause::Store => self.store += time,
            Cause::Decode => self.decode += time,
            Cause::Consumer => {}
        }
    }

    /// The sum.
    pub fn total(&self) -> Duration {
        self.link + self.store + self.decode
    }
}

/// Figures of a loader since its epoch began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    /// Epoch that they are of.
    pub epoch: u64,
    /// Batches handed over.
    pub batches: u64,
    /// Samples in them.
    pub samples: u64,
    /// Payload bytes of them.
    pub bytes: u64,
    /// Samples that failed (skipped or substituted).
    pub failures: u64,
    /// Requests that were asked again after a transient failure.
    pub retries: u64,
    /// Requests that were sent a second time because the first was late.
    pub hedges: u64,
    /// Since the epoch began.
    pub elapsed: Duration,
    /// From the start to the first batch; `None` before it.
    pub first_batch: Option<Duration>,
    /// Time waited for batches, by cause.
    pub waits: Waits,
    /// Time that the training loop kept the batches before asking for the next.
    pub consumer: Duration,
    /// Bytes held now: in flight, unordered, ready and lent.
    pub held_bytes: u64,
    /// The most that was held.
    pub held_bytes_max: u64,
    /// The prefetch window now, bytes.
    pub window_bytes: u64,
    /// The largest window, bytes.
    pub window_bytes_max: u64,
    /// Complete batches that wait for the consumer.
    pub ready_batches: usize,
}

impl Stats {
    /// Share of the time that the consumer spent waiting, 0 to 1.
    pub fn stall_share(&self) -> f64 {
        let whole = self.waits.total() + self.consumer;
        if whole.is_zero() {
            0.0
        } else {
            self.waits.total().as_secs_f64() / whole.as_secs_f64()
        }
    }

    /// What limits the rate: the training loop where it waits less than a tenth of the time, else what it waits for most.
    pub fn bottleneck(&self) -> Cause {
        if self.stall_share() < 0.1 {
            return Cause::Consumer;
        }
        let Waits {
            link,
            store,
            decode,
        } = self.waits;
        if decode >= link && decode >= store {
            Cause::Decode
        } else if link >= store {
            Cause::Link
        } else {
            Cause::Store
        }
    }
}
