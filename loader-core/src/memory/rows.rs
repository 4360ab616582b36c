//! The reference catalogue: a sorted vector.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    catalog::Catalog,
    error::{Error, ErrorKind, Result},
    identity::SampleKey,
    sample::Row,
};

/// Rows in memory, sorted by path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows(Vec<Row>);

impl Rows {
    /// Sorts the rows by path bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] naming a path that two rows have.
    pub fn new(rows: impl IntoIterator<Item = Row>) -> Result<Self> {
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_by(|left, right| left.path.cmp(&right.path));
        match rows.windows(2).find(|pair| pair[0].path == pair[1].path) {
            Some(pair) => Err(
                Error::new(ErrorKind::Conflict, "two samples have this path")
                    .at(pair[0].path.clone()),
            ),
            None => Ok(Self(rows)),
        }
    }

    fn at(&self, row: u64) -> &Row {
        &self.0[usize::try_from(row).expect("a row in memory has a number that fits")]
    }
}

impl Catalog for Rows {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn nbytes(&self, row: u64) -> u64 {
        self.at(row).nbytes
    }

    fn label(&self, row: u64) -> i64 {
        self.at(row).label
    }

    fn key(&self, row: u64) -> SampleKey {
        self.at(row).key
    }

    fn row(&self, row: u64) -> Row {
        self.at(row).clone()
    }

    fn find(&self, path: &[u8]) -> Option<u64> {
        let found = self.0.binary_search_by(|row| row.path.as_bytes().cmp(path));
        found.ok().map(|row| row as u64)
    }

    fn fields(&self) -> BTreeMap<String, String> {
        let mut types = BTreeMap::new();
        for (name, value) in self.0.iter().flat_map(|row| &row.fields) {
            types
                .entry(name.clone())
                .or_insert_with(|| value.type_name().to_owned());
        }
        types
    }

    fn snapshot(&self) -> Option<Bytes> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Part;

    fn row(path: &str) -> Row {
        Row {
            path: path.into(),
            key: SampleKey::of_content(path.as_bytes(), 0),
            nbytes: path.len() as u64,
            checksum: None,
            label: 3,
            parts: Part::sequence([]),
            fields: BTreeMap::new(),
        }
    }

    #[test]
    fn rows_are_sorted_by_bytes_and_found_again() {
        let rows = Rows::new(["b", "a/z", "a", "Z", "\u{e9}"].map(row)).unwrap();
        let paths: Vec<_> = (0..rows.len())
            .map(|number| rows.row(number).path.to_string())
            .collect();
        assert_eq!(paths, ["Z", "a", "a/z", "b", "\u{e9}"]);
        assert_eq!(rows.find(b"a/z"), Some(2));
        assert_eq!(rows.find(b"a/"), None);
        assert_eq!((rows.nbytes(2), rows.label(2)), (3, 3));
        assert_eq!(rows.key(2), SampleKey::of_content(b"a/z", 0));
    }

    #[test]
    fn a_path_that_comes_twice_is_a_conflict_that_names_it() {
        let error = Rows::new(["a", "b", "a"].map(row)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_eq!(error.path().unwrap().to_string(), "a");
    }
}
