//! An index at rest: look-ups over its columns.

use std::{collections::BTreeMap, fmt, fs, path::Path, sync::Arc};

use bytes::Bytes;
use loader_core::{Catalog, Fingerprint, Part, Result, Row, SampleKey, SamplePath, Summary};

use crate::{columns::Columns, header::Header, map, read, write};

/// The rows of a data set, sorted by path, in memory or in a shared memory map.
///
/// Cloning is cheap and shares the columns. A row number outside `0..len()` panics, as an index into a slice does.
#[derive(Clone)]
pub struct Index {
    header: Arc<Header>,
    classes: Arc<[String]>,
    fields: Arc<BTreeMap<String, String>>,
    columns: Arc<Columns>,
    /// The file that the columns lie in, where they do.
    snapshot: Option<Bytes>,
}

impl Index {
    pub(crate) fn new(header: Header, columns: Columns, snapshot: Option<Bytes>) -> Self {
        let fields = columns
            .fields
            .iter()
            .map(|field| (field.name.clone(), field.type_name().to_owned()))
            .collect();
        Self {
            classes: header.classes.clone().into(),
            fields: Arc::new(fields),
            header: Arc::new(header),
            columns: Arc::new(columns),
            snapshot,
        }
    }

    /// Maps an index file and checks it. Processes that open the same file share its memory.
    ///
    /// # Errors
    /// - [`loader_core::ErrorKind::Truncated`] for a file that ends early
    /// - [`loader_core::ErrorKind::Malformed`] for anything that is no index
    /// - [`loader_core::ErrorKind::Version`] for an unknown major version
    /// - [`loader_core::ErrorKind::Corrupt`] for an index whose columns contradict each other
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        read::read(map::map(path.as_ref())?)
    }

    /// Checks and takes the bytes of an index file, without a copy where they are aligned.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_bytes(bytes: Bytes) -> Result<Self> {
        read::read(bytes)
    }

    /// Writes the index as an Arrow IPC file.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(&self, file: &mut fs::File) -> Result<()> {
        if let Some(snapshot) = &self.snapshot {
            let mut file = &*file;
            return std::io::Write::write_all(&mut file, snapshot)
                .map_err(|error| loader_core::Error::io("the index cannot be written", error));
        }
        write::write(
            &self.header,
            &self.columns,
            std::io::BufWriter::with_capacity(1 << 20, file),
        )
    }

    /// The index as the bytes of an Arrow IPC file; free of cost where it was read from one.
    ///
    /// # Errors
    /// [`loader_core::ErrorKind::Internal`] where a foreign file, given other classes, has texts that are no UTF-8.
    pub fn to_bytes(&self) -> Result<Bytes> {
        if let Some(snapshot) = &self.snapshot {
            return Ok(snapshot.clone());
        }
        let mut bytes = Vec::new();
        write::write(&self.header, &self.columns, &mut bytes)?;
        Ok(bytes.into())
    }

    /// The same rows under other class names.
    #[must_use]
    pub fn with_classes(self, classes: &[String]) -> Self {
        if *self.classes == *classes {
            return self;
        }
        let header = Header {
            classes: classes.to_vec(),
            ..(*self.header).clone()
        };
        Self {
            header: Arc::new(header),
            classes: classes.into(),
            snapshot: None,
            ..self
        }
    }

    /// What the data set is; costs nothing.
    pub fn summary(&self) -> Summary {
        Summary {
            fingerprint: self.header.fingerprint,
            samples: self.header.samples,
            bytes: self.header.bytes,
            classes: Arc::clone(&self.classes),
            fields: Arc::clone(&self.fields),
        }
    }

    /// Names the data set.
    pub fn fingerprint(&self) -> Fingerprint {
        self.header.fingerprint
    }

    /// Class names by label.
    pub fn classes(&self) -> Arc<[String]> {
        Arc::clone(&self.classes)
    }

    /// Path of a row, without an allocation.
    pub fn path(&self, row: u64) -> &[u8] {
        &self.columns.paths[self.columns.path_ends.range(place(row))]
    }

    /// Path of a row, shared with the index: no allocation, but the index' memory lives as long.
    pub fn sample_path(&self, row: u64) -> SamplePath {
        self.columns
            .paths
            .slice(self.columns.path_ends.range(place(row)))
            .into()
    }

    /// Checksum of a row's payload, where it is known.
    pub fn checksum(&self, row: u64) -> Option<u64> {
        let row = place(row);
        let known = self
            .columns
            .has_checksum
            .as_ref()
            .is_none_or(|known| known.value(row));
        known.then(|| self.columns.checksums[row])
    }

    /// The parts of a row's payload.
    pub fn parts(&self, row: u64) -> Arc<[Part]> {
        let row = place(row);
        let layout = &self.header.layouts[self.columns.layouts[row] as usize];
        let nbytes = self.columns.nbytes[row];
        match &self.columns.part_numbers {
            Some((ends, numbers)) => {
                layout.parts(nbytes, ends.range(row).map(|place| numbers.at(place)))
            }
            None => layout.parts(nbytes, std::iter::empty()),
        }
    }

    /// All paths, in order.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.columns.rows).map(|row| &self.columns.paths[self.columns.path_ends.range(row)])
    }

    /// The numbers of all rows with a label, in order.
    pub fn rows_of_label(&self, label: i64) -> impl Iterator<Item = u64> {
        (0_u64..)
            .zip(self.columns.labels.iter())
            .filter(move |(_, other)| **other == label)
            .map(|(row, _)| row)
    }
}

impl Catalog for Index {
    fn len(&self) -> u64 {
        self.columns.rows as u64
    }

    fn nbytes(&self, row: u64) -> u64 {
        self.columns.nbytes[place(row)]
    }

    fn label(&self, row: u64) -> i64 {
        self.columns.labels[place(row)]
    }

    fn key(&self, row: u64) -> SampleKey {
        let start = place(row) * 16;
        let bytes = &self.columns.keys[start..start + 16];
        let mut key = SampleKey::default();
        key.0.copy_from_slice(bytes);
        key
    }

    fn row(&self, row: u64) -> Row {
        let fields = self.columns.fields.iter();
        Row {
            path: self.sample_path(row),
            key: self.key(row),
            nbytes: self.nbytes(row),
            checksum: self.checksum(row),
            label: self.label(row),
            parts: self.parts(row),
            fields: fields
                .filter_map(|field| Some((field.name.clone(), field.at(place(row))?)))
                .collect(),
        }
    }

    fn find(&self, path: &[u8]) -> Option<u64> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.path(middle).cmp(path) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn fields(&self) -> BTreeMap<String, String> {
        (*self.fields).clone()
    }

    fn snapshot(&self) -> Option<Bytes> {
        self.snapshot.clone()
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = self.summary();
        out.debug_struct("Index")
            .field("fingerprint", &summary.fingerprint)
            .field("samples", &summary.samples)
            .field("bytes", &summary.bytes)
            .field("fields", &summary.fields)
            .finish_non_exhaustive()
    }
}

/// A row number as a place in memory; one that no memory holds is out of range for every column.
fn place(row: u64) -> usize {
    usize::try_from(row).unwrap_or(usize::MAX - 1)
}
