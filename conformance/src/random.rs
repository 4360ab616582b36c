//! Numbers that look random and are the same on every machine.

/// A `SplitMix64` generator: small, seeded, and good enough to make up data and faults.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound.max(1)
    }

    /// A place in a slice of `count` elements, which is at least 1.
    pub fn index(&mut self, count: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "it is below a usize")]
        let index = self.below(count as u64) as usize;
        index
    }

    /// A number from 0 up to but without 1.
    pub fn fraction(&mut self) -> f64 {
        // 53 bits are what a double holds exactly.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let fraction = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        fraction
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend_from_slice(&self.bits().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    /// Puts a slice into another order.
    pub fn shuffle<T>(&mut self, slice: &mut [T]) {
        for last in (1..slice.len()).rev() {
            let other = self.index(last + 1);
            slice.swap(last, other);
        }
    }
}

/// Spreads the bits of a number over all 64.
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
