//! What a data set contains: the summary that comes first, and the catalogue of rows that may come later.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use bytes::Bytes;

use crate::{
    identity::{Fingerprint, FingerprintHasher, SampleKey},
    sample::Row,
};

/// What one round trip tells about a data set: enough to plan an epoch and to start the first batches.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Names the data set in every store.
    pub fingerprint: Fingerprint,
    /// Number of rows.
    pub samples: u64,
    /// Payload bytes of all rows.
    pub bytes: u64,
    /// Class names by label, in code-point order at first ingest, then frozen; empty classes count.
    pub classes: Arc<[String]>,
    /// Names and types of the fields.
    pub fields: Arc<BTreeMap<String, String>>,
}

impl Summary {
    /// Mean payload size in bytes, rounded up; 0 for an empty data set.
    pub fn mean_bytes(&self) -> u64 {
        self.bytes.div_ceil(self.samples.max(1))
    }
}

/// The rows of a data set in path order, ready for random access.
///
/// Made by the `index` crate as a memory-mapped snapshot; [`crate::memory::Rows`] is the reference.
///
/// # Contract
/// Rows are sorted by path bytes, one row a path; `row < len()` in every call, else it panics as a slice does.
pub trait Catalog: Debug + Send + Sync + 'static {
    /// Number of rows.
    fn len(&self) -> u64;
    /// True where there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Payload size of a row, bytes. Called for every planned sample, so it must not allocate.
    fn nbytes(&self, row: u64) -> u64;
    /// Label of a row.
    fn label(&self, row: u64) -> i64;
    /// Name of a row's payload. Whoever asks for all of them asks here, so it must not allocate.
    fn key(&self, row: u64) -> SampleKey;
    /// Everything about a row.
    fn row(&self, row: u64) -> Row;
    /// The row with exactly this path.
    fn find(&self, path: &[u8]) -> Option<u64>;
    /// Names and types of the fields that rows may have.
    fn fields(&self) -> BTreeMap<String, String>;
    /// The lasting form of this catalogue (an Arrow IPC file, see the `index` crate) where it is one already; else `None`,
    /// and whoever wants to store or send it writes one from the rows.
    fn snapshot(&self) -> Option<Bytes>;
}

/// What makes a set of rows visible: the last step of an ingest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Class names by label.
    pub classes: Arc<[String]>,
    /// The rows.
    pub catalog: Arc<dyn Catalog>,
}

impl Manifest {
    /// Counts, sums and fingerprints the rows.
    pub fn summary(&self) -> Summary {
        let mut hasher = FingerprintHasher::default();
        let mut bytes = 0;
        for number in 0..self.catalog.len() {
            let row = self.catalog.row(number);
            hasher.row(&row.path, row.nbytes, row.label);
            bytes += row.nbytes;
        }
        Summary {
            fingerprint: hasher.finish(),
            samples: self.catalog.len(),
            bytes,
            classes: Arc::clone(&self.classes),
            fields: Arc::new(self.catalog.fields()),
        }
    }
}
