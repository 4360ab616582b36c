//! Random numbers of one sample in one epoch, by number: the same on every thread, machine and store.

use loader_core::collate::SampleSeed;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The draws of one sample: draw `n` is a function of (seed, epoch, source path, n) and nothing else.
///
/// The state is xxh3-64 of the path's bytes, seeded with `mix(seed) + epoch·γ`; draw `n` is `mix(state + (n + 1)·γ)`, where
/// γ = 0x9E3779B97F4A7C15 and `mix` is the finaliser of `SplitMix64`. The path and not the store's key is hashed, because it
/// is the same in every store.
#[derive(Debug, Clone, Copy)]
pub struct Draws(u64);

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Draws {
    /// The draws of the sample with this source path.
    pub fn new(seed: SampleSeed, path: &[u8]) -> Self {
        let seed = mix(seed.seed).wrapping_add(seed.epoch.wrapping_mul(GAMMA));
        Self(xxh3_64_with_seed(path, seed))
    }

    /// Draw `number`: evenly distributed over 0 ≤ x < 1, in steps of 2⁻⁵³.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub fn unit(&self, number: u32) -> f64 {
        let bits = mix(self
            .0
            .wrapping_add((u64::from(number) + 1).wrapping_mul(GAMMA)));
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draw `number`, evenly distributed over `low ..= high`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a product below a u32"
    )]
    pub fn between(&self, number: u32, low: u32, high: u32) -> u32 {
        let count = f64::from(high.saturating_sub(low)) + 1.0;
        low.saturating_add((self.unit(number) * count) as u32)
            .min(high.max(low))
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_never_change() {
        // A run must be repeatable with any later build.
        let draws = Draws::new(SampleSeed { seed: 7, epoch: 1 }, b"cat/1.jpg");
        let first: Vec<_> = (0..3)
            .map(|number| draws.between(number, 0, 999_999))
            .collect();
        assert_eq!(first, GOLDEN);
    }

    const GOLDEN: [u32; 3] = [115_566, 332_559, 834_061];

    #[test]
    fn epochs_seeds_and_paths_draw_apart() {
        let of = |seed, epoch, path: &[u8]| {
            Draws::new(SampleSeed { seed, epoch }, path)
                .unit(0)
                .to_bits()
        };
        let draws = [
            of(0, 0, b"a"),
            of(0, 1, b"a"),
            of(1, 0, b"a"),
            of(0, 0, b"b"),
            of(1, 1, b"a"),
        ];
        let distinct: std::collections::BTreeSet<_> = draws.into_iter().collect();
        assert_eq!(distinct.len(), draws.len());
    }
}
