//! Files with holes: which bytes of a file an archive holds.

use super::pax;

/// A run of bytes that is there; what lies between runs is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Where it starts in the file.
    pub(crate) at: u64,
    /// How long it is.
    pub(crate) nbytes: u64,
}

/// A map that is sorted, does not overlap, lies within the file and has as many bytes as the archive holds.
///
/// `None` where it is not; runs of no bytes are dropped.
pub(crate) fn checked(
    segments: Vec<Segment>,
    file_nbytes: u64,
    stored_nbytes: u64,
) -> Option<Box<[Segment]>> {
    let (mut end, mut sum) = (0_u64, 0_u64);
    for segment in &segments {
        if segment.at < end {
            return None;
        }
        end = segment.at.checked_add(segment.nbytes)?;
        sum = sum.checked_add(segment.nbytes)?;
    }
    let is_whole = end <= file_nbytes && sum == stored_nbytes;
    is_whole.then(|| {
        segments
            .into_iter()
            .filter(|segment| segment.nbytes > 0)
            .collect()
    })
}

/// A map that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MalformedMap;

/// The map of form 1.0 at the start of the content: decimal lines, the first says how many runs follow.
#[derive(Debug, Default)]
pub(crate) struct MapReader {
    digits: Vec<u8>,
    numbers: Vec<u64>,
}

impl MapReader {
    /// Reads one more block: the map where it is complete, else `Ok(None)` to go on.
    ///
    /// # Errors
    /// Where it is malformed.
    pub(crate) fn block(&mut self, block: &[u8]) -> Result<Option<Vec<Segment>>, MalformedMap> {
        for byte in block {
            if *byte != b'\n' {
                self.digits.push(*byte);
                if self.digits.len() > 20 {
                    return Err(MalformedMap);
                }
                continue;
            }
            let number = pax::decimal(&self.digits).ok_or(MalformedMap)?;
            self.digits.clear();
            self.numbers.push(number);
            let wanted = self.numbers[0].checked_mul(2);
            if wanted == Some(self.numbers.len() as u64 - 1) {
                let pairs = self.numbers[1..].chunks_exact(2);
                let segment = |pair: &[u64]| Segment {
                    at: pair[0],
                    nbytes: pair[1],
                };
                return Ok(Some(pairs.map(segment).collect()));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_map_split_over_blocks_comes_back(pairs in prop::collection::vec((0_u64..1 << 40, 0_u64..1 << 40), 0..60), block in 1_usize..64) {
            let mut text = format!("{}\n", pairs.len());
            for (at, nbytes) in &pairs {
                write!(text, "{at}\n{nbytes}\n").unwrap();
            }
            let mut reader = MapReader::default();
            let map = text.as_bytes().chunks(block).find_map(|block| reader.block(block).unwrap()).unwrap();
            let expected: Vec<_> = pairs.iter().map(|(at, nbytes)| Segment { at: *at, nbytes: *nbytes }).collect();
            prop_assert_eq!(map, expected);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = MapReader::default().block(&bytes);
        }
    }

    #[test]
    fn maps_that_lie_are_refused() {
        let segment = |at, nbytes| Segment { at, nbytes };
        assert!(
            checked(vec![segment(0, 4), segment(8, 2), segment(10, 0)], 10, 6)
                .is_some_and(|map| map.len() == 2)
        );
        assert_eq!(checked(vec![segment(0, 4), segment(3, 2)], 10, 6), None);
        assert_eq!(checked(vec![segment(0, 11)], 10, 11), None);
        assert_eq!(checked(vec![segment(0, 4)], 10, 5), None);
        assert_eq!(checked(vec![segment(1, u64::MAX)], 10, 5), None);
    }
}
