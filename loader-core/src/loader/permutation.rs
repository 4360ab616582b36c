//! The shuffle: a keyed permutation of `0..count` that knows any position without a list.
//!
//! A Feistel network over the next power of two with cycle walking (J. Black, P. Rogaway, "Ciphers with arbitrary finite
//! domains", 2002): a value that falls outside is sent through again until it falls inside. Less than half of the domain lies
//! outside, so a value takes fewer than two passes on average. This is a shuffle, not encryption.

/// Enough rounds that neighbours end up far apart even in tiny domains.
const ROUNDS: usize = 8;

/// A permutation of `0..count`, the same on every machine. O(1) to make, O(1) memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    count: u64,
    left_bits: u32,
    right_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of `0..count` that belongs to a seed and an epoch.
    pub fn new(count: u64, seed: u64, epoch: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let bits = bits.max(2);
        let mut state =
            mix(seed ^ 0x6661_7268_6175_6c31) ^ mix(epoch.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let keys = std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        });
        Self {
            count,
            left_bits: bits / 2,
            right_bits: bits - bits / 2,
            keys,
        }
    }

    /// Where position `position` of the shuffled order points.
    ///
    /// # Panics
    /// Where `position` is not below the count, as a slice does.
    pub fn at(&self, position: u64) -> u64 {
        assert!(
            position < self.count,
            "position {position} of a permutation of {}",
            self.count
        );
        let mut value = position;
        loop {
            value = self.pass(value);
            if value < self.count {
                return value;
            }
        }
    }

    fn pass(&self, value: u64) -> u64 {
        let left_mask = low_bits(self.left_bits);
        let right_mask = low_bits(self.right_bits);
        let mut left = value >> self.right_bits;
        let mut right = value & right_mask;
        // The halves differ by a bit where the width is odd, so they are changed in turn instead of being swapped.
        for pair in self.keys.chunks_exact(2) {
            left ^= mix(right ^ pair[0]) & left_mask;
            right ^= mix(left ^ pair[1]) & right_mask;
        }
        (left << self.right_bits) | right
    }
}

fn low_bits(bits: u32) -> u64 {
    u64::MAX >> (u64::BITS - bits)
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood 2014): every input bit reaches every output bit.
pub(crate) fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_never_changes() {
        // Golden values of version 1: a state saved by any build must find the same order in every later one.
        let permutation = Permutation::new(10, 7, 0);
        let order: Vec<_> = (0..10).map(|position| permutation.at(position)).collect();
        assert_eq!(order, [6, 7, 1, 0, 8, 2, 4, 5, 9, 3]);
    }

    #[test]
    fn epochs_and_seeds_differ() {
        let order = |seed, epoch| {
            (0..100)
                .map(|at| Permutation::new(100, seed, epoch).at(at))
                .collect::<Vec<_>>()
        };
        assert_ne!(order(1, 0), order(1, 1));
        assert_ne!(order(1, 0), order(2, 0));
        assert_ne!(order(0, 1), order(1, 0));
    }

    #[test]
    fn neighbours_do_not_stay_neighbours() {
        let permutation = Permutation::new(1_000_003, 3, 0);
        let near = (0..10_000)
            .filter(|&at| permutation.at(at).abs_diff(permutation.at(at + 1)) < 1_000)
            .count();
        // Of 10,000 random pairs 20 are that near on average.
        assert!(near < 60, "{near} pairs");
    }

    #[test]
    fn every_place_is_equally_likely() {
        // First place of 6 over 6,000 epochs: 1,000 each, standard deviation 29.
        let mut seen = [0_i32; 6];
        for epoch in 0..6_000 {
            seen[usize::try_from(Permutation::new(6, 1, epoch).at(0)).unwrap()] += 1;
        }
        assert!(
            seen.iter().all(|count| (count - 1_000).abs() < 150),
            "{seen:?}"
        );
    }

    proptest! {
        #[test]
        fn it_is_a_bijection(count in 1_u64..3_000, seed: u64, epoch: u64) {
            let permutation = Permutation::new(count, seed, epoch);
            let mut seen = vec![false; usize::try_from(count).unwrap()];
            for position in 0..count {
                let value = usize::try_from(permutation.at(position)).unwrap();
                prop_assert!(!std::mem::replace(&mut seen[value], true));
            }
        }
    }
}
