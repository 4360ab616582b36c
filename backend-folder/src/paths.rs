//! Many paths in one piece of memory: what a list of strings would cost is the point.

use std::ops::Range;

/// Paths one after another in a flat buffer, found by number.
#[derive(Debug, Default, Clone)]
pub(crate) struct PathTable {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl PathTable {
    pub(crate) fn with_capacity(paths: usize, bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(paths),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Memory taken, bytes.
    #[cfg(test)]
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u64>()
    }

    /// Adds a path made of pieces.
    pub(crate) fn push(&mut self, pieces: &[&[u8]]) {
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        self.ends.push(self.bytes.len() as u64);
    }

    pub(crate) fn path(&self, number: usize) -> &[u8] {
        &self.bytes[self.range(number)]
    }

    /// The number of a path, where the paths are sorted.
    pub(crate) fn find(&self, path: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.path(middle).cmp(path) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn range(&self, number: usize) -> Range<usize> {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        index(start)..index(self.ends[number])
    }
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("an offset into memory fits a word")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_paths_are_found() {
        let mut table = PathTable::default();
        for path in ["a", "ab/c", "b"] {
            table.push(&[path.as_bytes()]);
        }
        assert_eq!(table.path(1), b"ab/c");
        assert_eq!(table.find(b"b"), Some(2));
        assert_eq!(table.find(b"ab"), None);
        assert_eq!(PathTable::default().find(b""), None);
    }
}
