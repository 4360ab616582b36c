//! Which sample comes when: the order of an epoch, cut into batches and dealt to ranks, without a list.
//!
//! Three numberings meet here. An *ordinal* counts what one rank gets, from 0 without gaps; a *position* counts the epoch over
//! all ranks; a *row* is a sample of the data set. With nothing delivered before, global batch `t` takes positions
//! `[t·R·B, (t+1)·R·B)` and rank `r` its slice of `B`. After a resume the same is done with the positions that are left.

use serde::{Deserialize, Serialize};

use crate::loader::{
    permutation::Permutation,
    positions::{Gaps, Positions},
};

/// What becomes of the samples that do not fill a global batch at the end of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastBatch {
    /// They are dealt evenly: every rank gets a last, shorter batch (an empty one, where there are fewer samples than ranks).
    #[default]
    Partial,
    /// They are left out of this epoch.
    Drop,
    /// As `Partial`, in batches of the full size whose missing places are masked. Never filled up with data.
    Mask,
}

/// How an epoch is dealt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deal {
    /// Samples in a batch of one rank.
    pub batch_samples: u64,
    /// Ranks that share the epoch.
    pub ranks: u64,
    /// This rank, from 0.
    pub rank: u64,
    /// What becomes of the rest.
    pub last_batch: LastBatch,
}

/// What one rank gets in one epoch. O(1) to make (O(runs) after a resume), O(1) a position.
#[derive(Debug, Clone)]
pub struct Plan {
    order: Option<Permutation>,
    left: Gaps,
    deal: Deal,
    full_batches: u64,
    rest: u64,
}

impl Plan {
    /// The plan for `samples` rows of which the positions in `delivered` are done with.
    pub fn new(
        samples: u64,
        order: Option<Permutation>,
        delivered: &Positions,
        deal: Deal,
    ) -> Self {
        let left = samples.saturating_sub(delivered.len());
        let step = deal.batch_samples * deal.ranks;
        Self {
            order,
            left: delivered.gaps(),
            deal,
            full_batches: left / step,
            rest: left % step,
        }
    }

    /// Batches of every rank.
    pub fn batches(&self) -> u64 {
        self.full_batches + u64::from(self.rest > 0 && self.deal.last_batch != LastBatch::Drop)
    }

    /// Samples of this rank.
    pub fn ordinals(&self) -> u64 {
        let rest = if self.deal.last_batch == LastBatch::Drop {
            0
        } else {
            self.rest_end(self.deal.rank) - self.rest_start()
        };
        self.full_batches * self.deal.batch_samples + rest
    }

    /// Samples of this rank in batch `batch`.
    pub fn batch_len(&self, batch: u64) -> u64 {
        let start = batch * self.deal.batch_samples;
        self.ordinals()
            .saturating_sub(start)
            .min(self.deal.batch_samples)
    }

    /// Slots of batch `batch`: its samples, or the full size where the rest is masked.
    pub fn batch_slots(&self, batch: u64) -> u64 {
        if self.deal.last_batch == LastBatch::Mask {
            self.deal.batch_samples
        } else {
            self.batch_len(batch)
        }
    }

    /// The batch that an ordinal belongs to.
    pub fn batch_of(&self, ordinal: u64) -> u64 {
        ordinal / self.deal.batch_samples
    }

    /// The position in the epoch that an ordinal of this rank stands for.
    pub fn position(&self, ordinal: u64) -> u64 {
        let Deal {
            batch_samples,
            ranks,
            rank,
            ..
        } = self.deal;
        let batch = ordinal / batch_samples;
        let within = ordinal % batch_samples;
        let step = batch_samples * ranks;
        if batch < self.full_batches {
            self.left.at(batch * step + rank * batch_samples + within)
        } else {
            self.left
                .at(self.full_batches * step + self.rest_start() + within)
        }
    }

    /// The row that stands at a position.
    pub fn row(&self, position: u64) -> u64 {
        self.order
            .as_ref()
            .map_or(position, |order| order.at(position))
    }

    fn rest_start(&self) -> u64 {
        share(self.rest, self.deal.rank, self.deal.ranks)
    }

    fn rest_end(&self, rank: u64) -> u64 {
        share(self.rest, rank + 1, self.deal.ranks)
    }
}

/// Where the share of `rank` starts when `rest` is dealt evenly: `⌊rest·rank/ranks⌋`.
fn share(rest: u64, rank: u64, ranks: u64) -> u64 {
    u64::try_from(u128::from(rest) * u128::from(rank) / u128::from(ranks))
        .expect("a share of a u64")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plans(
        samples: u64,
        delivered: &Positions,
        batch_samples: u64,
        ranks: u64,
        last_batch: LastBatch,
    ) -> Vec<Plan> {
        let order = Permutation::new(samples, 5, 1);
        (0..ranks)
            .map(|rank| {
                Plan::new(
                    samples,
                    Some(order.clone()),
                    delivered,
                    Deal {
                        batch_samples,
                        ranks,
                        rank,
                        last_batch,
                    },
                )
            })
            .collect()
    }

    proptest! {
        #[test]
        fn ranks_are_disjoint_complete_and_equally_long(
            samples in 0_u64..400, batch in 1_u64..9, ranks in 1_u64..6,
            done in proptest::collection::btree_set(0_u64..400, 0..100), last in 0..3_usize,
        ) {
            let last = [LastBatch::Partial, LastBatch::Drop, LastBatch::Mask][last];
            let mut delivered = Positions::default();
            done.iter().filter(|&&position| position < samples).for_each(|&position| { delivered.insert(position); });
            let plans = plans(samples, &delivered, batch, ranks, last);
            let mut seen = delivered.clone();
            for plan in &plans {
                prop_assert_eq!(plan.batches(), plans[0].batches());
                prop_assert_eq!((0..plan.batches()).map(|batch| plan.batch_len(batch)).sum::<u64>(), plan.ordinals());
                for ordinal in 0..plan.ordinals() {
                    prop_assert!(seen.insert(plan.position(ordinal)), "position twice");
                    prop_assert!(plan.row(plan.position(ordinal)) < samples);
                }
            }
            let left_out = samples - seen.len();
            if last == LastBatch::Drop { prop_assert!(left_out < batch * ranks) } else { prop_assert_eq!(left_out, 0) }
        }
    }

    #[test]
    fn a_rank_takes_its_slice_of_every_global_batch() {
        let deal = Deal {
            batch_samples: 2,
            ranks: 3,
            rank: 1,
            last_batch: LastBatch::Partial,
        };
        let plan = Plan::new(14, None, &Positions::default(), deal);
        let positions: Vec<_> = (0..plan.ordinals())
            .map(|ordinal| plan.position(ordinal))
            .collect();
        assert_eq!(positions, [2, 3, 8, 9, 12]);
        assert_eq!(plan.batches(), 3);
    }

    #[test]
    fn a_hundred_million_samples_cost_nothing() {
        let deal = Deal {
            batch_samples: 256,
            ranks: 8,
            rank: 3,
            last_batch: LastBatch::Partial,
        };
        let plan = Plan::new(
            100_000_000,
            Some(Permutation::new(100_000_000, 1, 2)),
            &Positions::default(),
            deal,
        );
        assert!(plan.row(plan.position(plan.ordinals() - 1)) < 100_000_000);
    }
}
