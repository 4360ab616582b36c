//! The original's policy: a fixed number of batches ahead, with an open-loop slow start. The yardstick for `adaptive`.

use std::{
    collections::{HashMap, VecDeque},
    time::Instant,
};

use serde::{Deserialize, Serialize};

use crate::{
    prefetch::{Action, Arrival, Completion, Outlook, PrefetchSnapshot, Prefetcher, Taken},
    store::Lane,
};

/// Options of the fixed policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FixedConfig {
    /// Batches asked for ahead of the one that the consumer works on. Default 8. More hides more distance and holds
    /// proportionally more memory.
    pub batches: u64,
    /// Slow start: at first one batch is asked for, and one more with every so-many-th batch taken, until `batches` are
    /// reached. Default 0: all at once, which over a long link is a burst.
    pub slow_start: u64,
}

impl Default for FixedConfig {
    fn default() -> Self {
        Self {
            batches: 8,
            slow_start: 0,
        }
    }
}

/// Asks for positions in order, up to a fixed number of batches ahead of the consumer.
#[derive(Debug)]
pub struct Fixed {
    config: FixedConfig,
    next: u64,
    lost: VecDeque<u64>,
    /// Bytes expected of each position that is out.
    out: HashMap<u64, u64>,
    in_flight_bytes: u64,
}

impl Fixed {
    /// The policy at the start of an epoch.
    pub fn new(config: FixedConfig) -> Self {
        Self {
            config,
            next: 0,
            lost: VecDeque::new(),
            out: HashMap::new(),
            in_flight_bytes: 0,
        }
    }

    /// Batches ahead that the slow start allows once `taken` batches were taken.
    fn ahead(&self, taken: u64) -> u64 {
        taken
            .checked_div(self.config.slow_start)
            .map_or(self.config.batches, |extra| extra.min(self.config.batches))
    }

    fn issue(&mut self, position: u64, outlook: &Outlook<'_>) -> Option<Action> {
        let bytes = (outlook.expected_bytes)(position);
        outlook.admits(position, bytes).then(|| {
            self.in_flight_bytes += bytes;
            self.out.insert(position, bytes);
            Action::Issue {
                position,
                lane: None,
            }
        })
    }
}

impl Prefetcher for Fixed {
    fn completed(&mut self, _: Instant, completion: Completion) {
        self.in_flight_bytes -= self.out.remove(&completion.position).unwrap_or(0);
        if completion.arrival == Arrival::Lost {
            self.lost.push_back(completion.position);
        }
    }

    fn taken(&mut self, _: Instant, _: Taken) {}

    fn lent(&mut self, _: Instant, _: i64) {}

    fn overloaded(&mut self, _: Instant, _: Lane, _: Option<Instant>) {}

    fn next(&mut self, _: Instant, outlook: &Outlook<'_>) -> Action {
        let wait = Action::Wait { until: None };
        if let Some(&position) = self.lost.front() {
            return self
                .issue(position, outlook)
                .inspect(|_| _ = self.lost.pop_front())
                .unwrap_or(wait);
        }
        let ahead = outlook
            .taken_batches
            .saturating_add(self.ahead(outlook.taken_batches));
        if self.next >= outlook.positions || self.next / outlook.batch_samples > ahead {
            return wait;
        }
        self.issue(self.next, outlook)
            .inspect(|_| self.next += 1)
            .unwrap_or(wait)
    }

    fn snapshot(&self) -> PrefetchSnapshot {
        PrefetchSnapshot {
            window_bytes: self.in_flight_bytes,
            ..PrefetchSnapshot::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issued(policy: &mut Fixed, taken_batches: u64, held_bytes: u64) -> Vec<u64> {
        let outlook = Outlook {
            positions: 100,
            batch_samples: 10,
            open_batch: taken_batches,
            taken_batches,
            horizon_batches: 100,
            held_bytes,
            budget_bytes: 1000,
            expected_bytes: &|_| 10,
        };
        let mut positions = Vec::new();
        while let Action::Issue { position, .. } = policy.next(Instant::now(), &outlook) {
            positions.push(position);
        }
        positions
    }

    #[test]
    fn it_asks_for_n_batches_besides_the_one_in_use() {
        let mut policy = Fixed::new(FixedConfig {
            batches: 2,
            slow_start: 0,
        });
        assert_eq!(issued(&mut policy, 0, 0).len(), 30);
        assert_eq!(issued(&mut policy, 1, 0), (30..40).collect::<Vec<_>>());
    }

    #[test]
    fn slow_start_adds_a_batch_every_so_many() {
        let mut policy = Fixed::new(FixedConfig {
            batches: 3,
            slow_start: 2,
        });
        let counts: Vec<_> = (0..6)
            .map(|taken| issued(&mut policy, taken, 0).len())
            .collect();
        assert_eq!(counts, [10, 10, 20, 10, 20, 10]);
    }

    #[test]
    fn a_full_budget_leaves_only_the_open_batch() {
        let mut policy = Fixed::new(FixedConfig {
            batches: 5,
            slow_start: 0,
        });
        assert_eq!(issued(&mut policy, 0, 995).len(), 10);
    }

    #[test]
    fn what_is_lost_is_asked_for_again_first() {
        let mut policy = Fixed::new(FixedConfig {
            batches: 0,
            slow_start: 0,
        });
        issued(&mut policy, 0, 0);
        let lost = Completion {
            position: 4,
            bytes: 0,
            started: Instant::now(),
            lane: Lane(0),
            arrival: Arrival::Lost,
        };
        policy.completed(Instant::now(), lost);
        assert_eq!(issued(&mut policy, 0, 0), [4]);
    }
}
