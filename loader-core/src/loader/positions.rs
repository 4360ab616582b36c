//! A set of positions that is almost an interval: a low-water mark, and the runs above it.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// Positions that are settled. Everything below the low-water mark is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Packed", try_from = "Packed")]
pub struct Positions {
    low_water: u64,
    /// Start → end (exclusive) of disjoint runs that do not touch each other or the mark.
    runs: BTreeMap<u64, u64>,
}

impl Positions {
    /// All positions below `end`.
    pub fn below(end: u64) -> Self {
        Self {
            low_water: end,
            runs: BTreeMap::new(),
        }
    }

    /// Adds a position; false if it was there already.
    pub fn insert(&mut self, position: u64) -> bool {
        if self.contains(position) {
            return false;
        }
        let mut start = position;
        let mut end = position + 1;
        if let Some((&before, &before_end)) = self.runs.range(..position).next_back()
            && before_end == position
        {
            start = before;
        }
        if let Some(after_end) = self.runs.remove(&end) {
            end = after_end;
        }
        if start == self.low_water {
            self.runs.remove(&start);
            self.low_water = end;
        } else {
            self.runs.insert(start, end);
        }
        true
    }

    /// True where the position is in the set.
    pub fn contains(&self, position: u64) -> bool {
        position < self.low_water
            || self
                .runs
                .range(..=position)
                .next_back()
                .is_some_and(|(_, &end)| position < end)
    }

    /// How many positions are in the set.
    pub fn len(&self) -> u64 {
        self.low_water
            + self
                .runs
                .iter()
                .map(|(start, end)| end - start)
                .sum::<u64>()
    }

    /// True where the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Everything below this is in the set.
    pub fn low_water(&self) -> u64 {
        self.low_water
    }

    /// One past the largest position in the set.
    pub fn end(&self) -> u64 {
        self.runs
            .last_key_value()
            .map_or(self.low_water, |(_, &end)| end)
    }

    /// The positions in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.low_water).chain(self.runs.iter().flat_map(|(&start, &end)| start..end))
    }

    /// The positions that are *not* in the set, numbered from 0.
    pub fn gaps(&self) -> Gaps {
        let mut gaps = Vec::with_capacity(self.runs.len() + 1);
        let mut ordinal = 0;
        let mut start = self.low_water;
        for (&run, &end) in &self.runs {
            gaps.push((ordinal, start));
            ordinal += run - start;
            start = end;
        }
        gaps.push((ordinal, start));
        Gaps(gaps)
    }
}

/// What a [`Positions`] lacks: any member in O(log runs).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gaps(Vec<(u64, u64)>);

impl Gaps {
    /// The missing position number `ordinal`, counted from 0.
    pub fn at(&self, ordinal: u64) -> u64 {
        let gap = self.0.partition_point(|&(first, _)| first <= ordinal) - 1;
        let (first, start) = self.0[gap];
        start + (ordinal - first)
    }
}

/// The form in JSON: the mark, and what lies above it as a bitmap or as run lengths, whichever is shorter.
#[derive(Serialize, Deserialize)]
struct Packed {
    low_water: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    bitmap: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    runs: String,
}

impl From<Positions> for Packed {
    fn from(positions: Positions) -> Self {
        let mut packed = Self {
            low_water: positions.low_water,
            bitmap: String::new(),
            runs: String::new(),
        };
        if positions.runs.is_empty() {
            return packed;
        }
        let mut numbers = Vec::new();
        let mut at = positions.low_water;
        for (&start, &end) in &positions.runs {
            push_varint(&mut numbers, start - at);
            push_varint(&mut numbers, end - start);
            at = end;
        }
        let span = positions.end() - positions.low_water;
        if span.div_ceil(8) < numbers.len() as u64 {
            let mut bitmap = vec![
                0_u8;
                usize::try_from(span.div_ceil(8))
                    .expect("shorter than a vector that exists")
            ];
            for (&start, &end) in &positions.runs {
                for bit in start - positions.low_water..end - positions.low_water {
                    bitmap[usize::try_from(bit / 8).expect("inside the bitmap")] |= 1 << (bit % 8);
                }
            }
            packed.bitmap = STANDARD_NO_PAD.encode(bitmap);
        } else {
            packed.runs = STANDARD_NO_PAD.encode(numbers);
        }
        packed
    }
}

impl TryFrom<Packed> for Positions {
    type Error = Error;
    fn try_from(packed: Packed) -> Result<Self> {
        let wrong =
            |what: &'static str| Error::new(ErrorKind::Malformed, what).during("load state");
        let mut positions = Self::below(packed.low_water);
        let bitmap = STANDARD_NO_PAD
            .decode(&packed.bitmap)
            .map_err(|_| wrong("the bitmap is not base64"))?;
        for (at, byte) in (0_u64..).zip(&bitmap) {
            for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                let position = packed
                    .low_water
                    .checked_add(at * 8 + bit)
                    .ok_or_else(|| wrong("a position is too large"))?;
                positions.insert(position);
            }
        }
        let numbers = STANDARD_NO_PAD
            .decode(&packed.runs)
            .map_err(|_| wrong("the run lengths are not base64"))?;
        let mut numbers = &numbers[..];
        let mut at = packed.low_water;
        while !numbers.is_empty() {
            let mut next =
                || pop_varint(&mut numbers).ok_or_else(|| wrong("the run lengths are cut short"));
            let (gap, length) = (next()?, next()?);
            let start = at
                .checked_add(gap)
                .ok_or_else(|| wrong("a position is too large"))?;
            at = start
                .checked_add(length)
                .ok_or_else(|| wrong("a position is too large"))?;
            if gap == 0 || length == 0 {
                return Err(wrong("run lengths touch or are empty"));
            }
            positions.runs.insert(start, at);
        }
        Ok(positions)
    }
}

fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).expect("seven bits") | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).expect("seven bits"));
}

fn pop_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set_and_survives_json(mut wanted in proptest::collection::vec(0_u64..300, 0..200), mark in 0_u64..50) {
            let mut positions = Positions::below(mark);
            let mut reference: BTreeSet<u64> = (0..mark).collect();
            for position in wanted.drain(..) {
                prop_assert_eq!(positions.insert(position), reference.insert(position));
            }
            prop_assert_eq!(positions.iter().collect::<Vec<_>>(), reference.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(positions.len(), reference.len() as u64);
            let gaps = positions.gaps();
            let missing = (0..400).filter(|position| !reference.contains(position));
            for (ordinal, position) in (0..).zip(missing) {
                prop_assert_eq!(gaps.at(ordinal), position);
            }
            let text = serde_json::to_string(&positions).unwrap();
            prop_assert_eq!(serde_json::from_str::<Positions>(&text).unwrap(), positions);
        }

        #[test]
        fn foreign_text_is_an_error_or_a_set(runs in "[A-Za-z0-9+/]{0,40}", bitmap in "[A-Za-z0-9+/]{0,40}", low_water: u64) {
            let packed = Packed { low_water, bitmap, runs };
            if let Ok(positions) = Positions::try_from(packed) {
                prop_assert!(positions.end() >= positions.low_water());
            }
        }
    }

    #[test]
    fn the_widest_window_fits_into_four_kilobytes() {
        let mut positions = Positions::below(1_000_000_000);
        (0..12_000)
            .filter(|number| number % 2 == 1 || number % 7 == 3)
            .for_each(|number| {
                positions.insert(1_000_000_000 + number);
            });
        assert!(serde_json::to_string(&positions).unwrap().len() < 3_000);
    }
}
