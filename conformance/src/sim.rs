//! A prefetch policy over a link that exists only in numbers: virtual clock, seeded luck, the same run every time.
//!
//! [`drive()`] plays one epoch and panics where the policy breaks its contract; [`prefetcher_suite!`](crate::prefetcher_suite!)
//! plays the scenarios that every policy must get through.

use std::time::Duration;

use loader_core::loader::config::Order;

mod clauses;
mod drive;
mod link;
mod report;

pub use self::{clauses::*, drive::drive, report::Report};

/// A link and the store behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Payload bytes a second, shared by all requests; 0 for a link that is down: whatever is asked is lost.
    pub bytes_per_second: u64,
    /// Time from a request to its answer on an idle link, without the time that the bytes take.
    pub round_trip: Duration,
    /// Mean of what comes on top of each round trip, exponentially distributed.
    pub jitter: Duration,
    /// Requests of 1,000 that take 0.2 to 1.5 s longer.
    pub stragglers_per_mille: u64,
    /// Requests of 1,000 that are lost, which shows after three round trips.
    pub lost_per_mille: u64,
    /// Connections; requests without a lane take turns.
    pub lanes: u16,
    /// Requests that the store serves at once; others are answered that it is overloaded.
    pub most_requests: Option<usize>,
}

impl Link {
    /// A clean link of two lanes, 40 MB/s and 100 ms.
    pub fn clean() -> Self {
        Self {
            bytes_per_second: 40_000_000,
            round_trip: Duration::from_millis(100),
            jitter: Duration::ZERO,
            stragglers_per_mille: 0,
            lost_per_mille: 0,
            lanes: 2,
            most_requests: None,
        }
    }

    /// The same link with another round trip.
    #[must_use]
    pub fn round_trip(self, round_trip: Duration) -> Self {
        Self { round_trip, ..self }
    }
}

/// An epoch to play.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The link at the start.
    pub link: Link,
    /// What the link becomes, and when; in order of time.
    pub changes: Vec<(Duration, Link)>,
    /// Samples in the epoch.
    pub positions: u64,
    /// Samples in a batch.
    pub batch_samples: u64,
    /// Mean size of a sample, bytes. Sizes spread evenly from nearly nothing to twice that.
    pub mean_bytes: u64,
    /// The budget for what is held, bytes.
    pub budget_bytes: u64,
    /// How far the order of arrival may differ from the plan, in batches.
    pub horizon_batches: u64,
    /// The order in which batches are filled.
    pub order: Order,
    /// What the consumer does with a batch before it wants the next.
    pub think: Duration,
    /// Batches that the consumer keeps besides the one that it works on.
    pub kept_batches: usize,
    /// Samples of 1,000 that are bad: they fail, and come no more.
    pub bad_per_mille: u64,
    /// Seed of all luck.
    pub seed: u64,
}

impl Scenario {
    /// 60 batches of 32 samples of 100 kB each over a clean link, with a budget of 40 MB and a consumer that never waits.
    pub fn over(link: Link) -> Self {
        Self {
            link,
            changes: Vec::new(),
            positions: 60 * 32 - 5,
            batch_samples: 32,
            mean_bytes: 100_000,
            budget_bytes: 40_000_000,
            horizon_batches: 16,
            order: Order::Arrival,
            think: Duration::ZERO,
            kept_batches: 0,
            bad_per_mille: 0,
            seed: 0,
        }
    }

    /// The size of a sample, bytes; at least 1.
    pub fn bytes(&self, position: u64) -> u64 {
        1 + crate::random::mix(position ^ (self.seed << 32)) % (2 * self.mean_bytes).max(1)
    }
}

/// Makes a test of each clause of the [`Prefetcher`](loader_core::Prefetcher) contract.
///
/// The argument is a closure that makes a policy at the start of its epoch.
#[macro_export]
macro_rules! prefetcher_suite {
    ($make:expr $(,)?) => {
        $crate::prefetcher_suite!(@ $make, [
            a_clean_link_near_and_far,
            a_link_with_jitter_and_stragglers,
            a_link_that_loses_requests,
            a_link_whose_rate_and_distance_change,
            a_link_that_is_down_for_a_while,
            a_store_that_is_overloaded,
            a_consumer_that_is_slower_than_the_link,
            a_consumer_that_keeps_batches,
            a_budget_smaller_than_a_batch,
            a_horizon_of_nothing,
            every_order_of_batches,
            samples_that_are_bad,
            batches_of_one_sample_and_epochs_of_one_batch,
            an_epoch_without_samples,
            one_lane,
            the_same_calls_give_the_same_actions,
            a_call_takes_constant_time_amortised,
        ]);
    };
    (@ $make:expr, [$($clause:ident),* $(,)?]) => {
        $(
            #[test]
            fn $clause() {
                let make = $make;
                $crate::sim::$clause(&|| Box::new(make()));
            }
        )*
    };
}
