//! Which batch and slot an arrived sample goes to. Pure: no samples in here, only their ordinals.

use std::collections::{BTreeMap, BTreeSet};

use crate::loader::config::Order;

/// The place that a sample got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The sample, by its ordinal.
    pub ordinal: u64,
    /// The batch, counted from 0.
    pub batch: u64,
    /// The slot in the batch, counted from 0.
    pub slot: u64,
}

/// Assigns places in the order that was asked for.
///
/// `Arrival` fills one batch at a time. What was planned `horizon` batches ago or earlier is *due*: it gets into the open batch
/// before that closes, so a place is kept free for every due sample that has not come. Due samples stem from one planned batch
/// (the ones before were due earlier), so they always fit. The other orders place a sample in the batch it was planned for.
#[derive(Debug)]
pub struct Reorder {
    order: Order,
    ordinals: u64,
    batch_samples: u64,
    horizon: u64,
    open: u64,
    /// Places given per batch that is not yet complete.
    filled: BTreeMap<u64, u64>,
    /// `Arrival` only: arrived, not placed.
    waiting: BTreeSet<u64>,
    /// `Arrival` only: how many of a planned batch have arrived, for batches from `open - horizon` on.
    arrived: BTreeMap<u64, u64>,
}

impl Reorder {
    /// For `ordinals` samples in batches of `batch_samples`; `horizon` is in batches.
    pub fn new(order: Order, ordinals: u64, batch_samples: u64, horizon: u64) -> Self {
        Self {
            order,
            ordinals,
            batch_samples,
            horizon,
            open: 0,
            filled: BTreeMap::new(),
            waiting: BTreeSet::new(),
            arrived: BTreeMap::new(),
        }
    }

    /// The first batch that has not got all its samples placed.
    pub fn open_batch(&self) -> u64 {
        self.open
    }

    /// Samples that a batch holds.
    pub fn batch_len(&self, batch: u64) -> u64 {
        self.ordinals
            .saturating_sub(batch.saturating_mul(self.batch_samples))
            .min(self.batch_samples)
    }

    /// Takes note that a sample has come (or failed for good) and gives out every place that this decides.
    pub fn arrived(&mut self, ordinal: u64, places: &mut Vec<Place>) {
        let planned = ordinal / self.batch_samples;
        if self.order == Order::Arrival {
            *self.arrived.entry(planned).or_default() += 1;
            self.waiting.insert(ordinal);
            self.place_waiting(places);
            return;
        }
        let filled = self.filled.entry(planned).or_default();
        let slot = if self.order == Order::Strict {
            ordinal % self.batch_samples
        } else {
            *filled
        };
        *filled += 1;
        places.push(Place {
            ordinal,
            batch: planned,
            slot,
        });
        while self.open * self.batch_samples < self.ordinals
            && self.filled.get(&self.open).copied().unwrap_or(0) == self.batch_len(self.open)
        {
            self.filled.remove(&self.open);
            self.open += 1;
        }
    }

    fn place_waiting(&mut self, places: &mut Vec<Place>) {
        while let Some(&ordinal) = self.waiting.first() {
            let filled = self.filled.get(&self.open).copied().unwrap_or(0);
            let due_batch = self.open.checked_sub(self.horizon);
            let missing_due = due_batch.map_or(0, |due| {
                self.batch_len(due) - self.arrived.get(&due).copied().unwrap_or(0)
            });
            let is_due = due_batch.is_some_and(|due| ordinal / self.batch_samples <= due);
            let length = self.batch_len(self.open);
            if !is_due && filled + missing_due >= length {
                return;
            }
            self.waiting.pop_first();
            places.push(Place {
                ordinal,
                batch: self.open,
                slot: filled,
            });
            self.filled.insert(self.open, filled + 1);
            if filled + 1 == length {
                self.filled.remove(&self.open);
                if let Some(due) = due_batch {
                    self.arrived.remove(&due);
                }
                self.open += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lets the ordinals arrive in the given order and returns what got where.
    fn places(order: Order, arrivals: &[u64], batch: u64, horizon: u64) -> Vec<Place> {
        let mut reorder = Reorder::new(order, arrivals.len() as u64, batch, horizon);
        let mut places = Vec::new();
        for &ordinal in arrivals {
            reorder.arrived(ordinal, &mut places);
        }
        assert_eq!(
            reorder.open_batch(),
            (arrivals.len() as u64).div_ceil(batch)
        );
        places
    }

    #[test]
    fn a_straggler_holds_up_only_the_batch_at_the_horizon() {
        // Sample 0 comes last of 8; batches of 2; it must be in batch 0 + 2.
        let got = places(Order::Arrival, &[1, 2, 3, 4, 5, 6, 7, 0], 2, 2);
        let of_zero = got.iter().find(|place| place.ordinal == 0).unwrap();
        assert_eq!(of_zero.batch, 2);
    }

    #[test]
    fn strict_keeps_every_slot() {
        for place in places(Order::Strict, &[4, 2, 0, 1, 3], 2, 1) {
            assert_eq!(
                (place.batch, place.slot),
                (place.ordinal / 2, place.ordinal % 2)
            );
        }
    }

    proptest! {
        #[test]
        fn every_slot_is_filled_once_and_nobody_passes_the_horizon(
            count in 0_u64..120, batch in 1_u64..9, horizon in 1_u64..6, order in 0..3_usize, keys in proptest::collection::vec(any::<u16>(), 120),
        ) {
            let order = [Order::Arrival, Order::Window, Order::Strict][order];
            // The engine asks for nothing beyond the horizon, so arrivals are shuffled within it.
            let mut arrivals: Vec<u64> = (0..count).collect();
            arrivals.sort_by_key(|&ordinal| ordinal + u64::from(keys[usize::try_from(ordinal).unwrap()]) % (batch * horizon + 1));
            let got = places(order, &arrivals, batch, horizon);
            let mut slots: Vec<_> = got.iter().map(|place| place.batch * batch + place.slot).collect();
            slots.sort_unstable();
            prop_assert_eq!(slots, (0..count).collect::<Vec<_>>());
            for place in got {
                let planned = place.ordinal / batch;
                prop_assert!(place.batch <= planned + horizon);
                if order != Order::Arrival { prop_assert_eq!(place.batch, planned) }
            }
        }
    }
}
