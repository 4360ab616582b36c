//! The first of the three traits: where samples are, and how they get there.

use std::{
    fmt::{Debug, Display},
    sync::Arc,
    time::Instant,
};

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::{
    catalog::{Catalog, Manifest, Summary},
    error::Result,
    identity::{Fingerprint, SampleKey},
    sample::{NewSample, Row, Sample},
};

/// One of the ways to reach the samples of a store: a connection or a replica. Lanes are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lane(pub u16);

/// How stores differ: as data, so that nobody asks which store it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capability {
    /// The store's scheme, for tables and messages: `embedded`, `folder`, `cassandra`, …
    pub scheme: &'static str,
    /// Connections or replicas that fail and queue independently; at least 1.
    pub lanes: u16,
    /// Samples that one [`Store::fetch`] is best asked for; at least 1.
    pub request_samples: usize,
    /// Fetches that are best under way at once where the data are near; at least 1.
    pub requests_in_flight: usize,
    /// True where payloads come from this machine, so that distance is no concern.
    pub local: bool,
    /// True where a fetch of some parts moves only their bytes.
    pub fetches_parts: bool,
    /// Largest payload that the store takes, bytes; `None` for no limit.
    pub max_payload_bytes: Option<u64>,
    /// True where each payload is compared with a checksum recorded at ingest.
    pub checksums: bool,
}

impl Capability {
    /// A remote store of one lane that takes one sample a request; set what differs.
    pub fn new(scheme: &'static str) -> Self {
        Self {
            scheme,
            lanes: 1,
            request_samples: 1,
            requests_in_flight: 64,
            local: false,
            fetches_parts: false,
            max_payload_bytes: None,
            checksums: true,
        }
    }
}

/// Which samples a fetch is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Targets {
    /// Row numbers of the data set with this fingerprint. A store whose manifest has another fingerprint answers every one
    /// with [`crate::ErrorKind::Incompatible`].
    Rows {
        /// The data set that the numbers belong to.
        fingerprint: Fingerprint,
        /// Row numbers in path order.
        rows: Vec<u64>,
    },
    /// Payload names, for verification and repair. The answers have the path and label that the manifest gives, or none.
    Keys(Vec<SampleKey>),
}

impl Targets {
    /// How many samples are asked for.
    pub fn len(&self) -> usize {
        match self {
            Self::Rows { rows, .. } => rows.len(),
            Self::Keys(keys) => keys.len(),
        }
    }

    /// True where nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What to fetch and how.
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// The samples.
    pub targets: Targets,
    /// Names of the parts wanted (matched without case); `None` for all. Parts that a sample lacks are left out.
    pub parts: Option<Arc<[String]>>,
    /// The lane to use; `None` lets the store choose.
    pub lane: Option<Lane>,
    /// A lane to keep away from: this request is a hedge of one that waits there.
    pub avoid: Option<Lane>,
    /// When answers stop being of use: what is missing then is answered with [`crate::ErrorKind::Timeout`].
    pub deadline: Option<Instant>,
    /// Sum of the payload sizes expected, bytes; 0 if unknown.
    pub expected_bytes: u64,
}

impl FetchRequest {
    /// All parts of some rows, on any lane, without a deadline.
    pub fn rows(fingerprint: Fingerprint, rows: Vec<u64>) -> Self {
        Self::new(Targets::Rows { fingerprint, rows })
    }

    /// All parts of some payloads by name.
    pub fn keys(keys: Vec<SampleKey>) -> Self {
        Self::new(Targets::Keys(keys))
    }

    fn new(targets: Targets) -> Self {
        Self {
            targets,
            parts: None,
            lane: None,
            avoid: None,
            deadline: None,
            expected_bytes: 0,
        }
    }
}

/// The outcome for one target of a fetch.
#[derive(Debug)]
pub struct Fetched {
    /// Which target of the request, counted from 0.
    pub target: usize,
    /// The lane that it came over.
    pub lane: Lane,
    /// The sample, or why there is none.
    pub outcome: Result<Sample>,
}

/// Read access to one pinned data set.
///
/// # Contract
/// - What a store shows never changes while it is open: it is pinned to a manifest. A row that is gone is `Vanished`.
/// - A row past the end and a key that nobody knows are `NotFound`. A payload that no manifest names can be fetched by its
///   key: it has an empty path, no label, and one part that is all of it.
/// - Every payload is compared with its checksum where the store has one; a difference is `Corrupt`.
/// - `Display` is the store's URI without credentials.
///
/// # Cancellation
/// Dropping a returned stream abandons what is in flight and leaks no permit, task or connection.
#[async_trait]
pub trait Store: Debug + Display + Send + Sync + 'static {
    /// What this store can do and how it likes to be asked.
    fn capability(&self) -> Capability;

    /// What the pinned data set is; known since the store was opened.
    fn summary(&self) -> Summary;

    /// The rows of the data set. A remote store answers when they have arrived; batches can start before.
    ///
    /// # Errors
    /// What reading or moving the index met.
    async fn catalog(&self) -> Result<Arc<dyn Catalog>>;

    /// Yields exactly one [`Fetched`] per target, in **completion order**. A failed sample is one of them, never the end.
    fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched>;

    /// Lists every payload that is there, also those that no manifest names, unordered. An `Err` ends it.
    fn keys(&self) -> BoxStream<'static, Result<SampleKey>>;

    /// Lists every row of the data set in groups, unordered, read in parallel ranges. An `Err` ends it.
    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>>;
}

/// What became of one sample of a [`StoreWriter::put`].
#[derive(Debug, Clone)]
pub enum Put {
    /// It was written now.
    Written(Row),
    /// The same payload was there already.
    Present(Row),
    /// It could not be stored; the others of the group are.
    Failed(crate::error::Error),
}

/// Write access to one data set.
///
/// # Contract
/// - `put` is idempotent: the payload's name follows from path and content, so a repeated put changes nothing.
/// - Nothing put is visible to a reader before `publish`, and a reader that is open keeps what it is pinned to.
/// - After `publish` returns, a crash of the machine loses nothing of it.
#[async_trait]
pub trait StoreWriter: Debug + Display + Send + Sync + 'static {
    /// How the store likes to be written to: `request_samples`, `requests_in_flight` and `max_payload_bytes` hold.
    fn capability(&self) -> Capability;

    /// The manifest that is visible now, which an ingest extends; `None` in a new data set.
    ///
    /// # Errors
    /// What reading it met.
    async fn published(&self) -> Result<Option<Manifest>>;

    /// Writes a group of samples: one [`Put`] per sample, in the order given.
    ///
    /// # Errors
    /// Where the store as a whole cannot go on (no space, no connection); what it took stays and need not be put again.
    async fn put(&self, samples: Vec<NewSample>) -> Result<Vec<Put>>;

    /// Makes exactly these rows the data set, at once and for good.
    ///
    /// # Errors
    /// What writing it met; the manifest that was visible before then still is.
    async fn publish(&self, manifest: Manifest) -> Result<Summary>;
}
