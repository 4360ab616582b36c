//! When an answer comes.

use std::time::Duration;

use loader_core::Lane;

use super::Link;
use crate::random::Random;

/// How a request ends, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    /// It reaches the store, where its bytes wait for their turn on the link.
    Reaches,
    /// Nothing comes of it.
    Lost,
    /// The store refuses it.
    Refused,
}

/// A link under way: its parameters change, its queue does not jump.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) link: Link,
    random: Random,
    free: Duration,
    turn: u16,
}

impl Wire {
    pub(super) fn new(link: Link, seed: u64) -> Self {
        Self {
            link,
            random: Random::new(seed),
            free: Duration::ZERO,
            turn: 0,
        }
    }

    /// The next lane in turn, another one than `avoid` if there is another.
    pub(super) fn lane(&mut self, avoid: Option<Lane>) -> Lane {
        let lane = Lane(self.turn % self.link.lanes);
        self.turn = (self.turn + 1) % self.link.lanes;
        if avoid == Some(lane) && self.link.lanes > 1 {
            self.lane(None)
        } else {
            lane
        }
    }

    /// What becomes of a request that leaves now while the store serves so many others, and when that is.
    pub(super) fn send(&mut self, now: Duration, served: usize) -> (Duration, Fate) {
        // The same number of draws whatever happens: one run differs from another only where it must.
        let (loss, straggler, delay, jitter) = (
            self.random.below(1000),
            self.random.below(1000),
            self.random.fraction(),
            self.random.fraction(),
        );
        let link = self.link;
        if link.bytes_per_second == 0 || loss < link.lost_per_mille {
            return (
                now + 3 * link.round_trip + Duration::from_millis(1),
                Fate::Lost,
            );
        }
        if link.most_requests.is_some_and(|most| served >= most) {
            return (now + link.round_trip, Fate::Refused);
        }
        let mut there = now + link.round_trip / 2 + link.jitter.mul_f64(-(1.0 - jitter).ln());
        if straggler < link.stragglers_per_mille {
            there += Duration::from_secs_f64(0.2 + 1.3 * delay);
        }
        (there, Fate::Reaches)
    }

    /// When the bytes of a request that is with the store have come.
    pub(super) fn deliver(&mut self, now: Duration, bytes: u64) -> Duration {
        // A link that is down for others still ends what the store has begun to send.
        let rate = self.link.bytes_per_second.max(1_000_000);
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.free = self.free.max(now) + Duration::from_nanos(nanos);
        self.free + self.link.round_trip / 2
    }
}
