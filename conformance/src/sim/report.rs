//! How an epoch went.

use std::time::Duration;

use loader_core::prefetch::Action;

/// How an epoch went: what was delivered, and what it took.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// From the first request to the last batch taken.
    pub elapsed: Duration,
    /// Payload bytes delivered, each position once.
    pub bytes: u64,
    /// The most bytes held at once.
    pub most_held_bytes: u64,
    /// The most bytes in flight at once.
    pub most_in_flight_bytes: u64,
    /// Requests made, hedges included.
    pub requests: u64,
    /// Hedges among them.
    pub hedges: u64,
    /// Payload bytes that came a second time.
    pub duplicate_bytes: u64,
    /// How long the consumer waited in all.
    pub waited: Duration,
    /// What the policy answered, in order, as far as it acted.
    pub actions: Vec<Action>,
}

impl Report {
    /// What was delivered, as a share of what a link of this rate could have carried.
    pub fn share_of(&self, bytes_per_second: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a share needs no 53 bits")]
        let (bytes, rate) = (self.bytes as f64, bytes_per_second as f64);
        bytes / (rate * self.elapsed.as_secs_f64()).max(f64::MIN_POSITIVE)
    }
}
