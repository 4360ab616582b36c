//! Reading an embedded store.

use std::{
    fmt,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{Arc, OnceLock},
};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt};
use index::Index;
use loader_core::{
    Capability, Catalog, Error, ErrorKind, FetchRequest, Fetched, Result, Row, SampleKey, Store,
    Summary, uri::percent_encode,
};

use crate::{
    SCHEME,
    config::EmbeddedConfig,
    environment::Environment,
    fetch, folder,
    lineage::Lineage,
    manifest::{self, MANIFEST_KEY, Record},
};

/// Keys or rows in one group of a listing.
const GROUP_ENTRIES: usize = 4096;
/// How often opening starts again because a new data set was published meanwhile.
const OPEN_ATTEMPTS: usize = 10;

/// A data set in a folder on this machine, pinned to the manifest that was visible when it was opened.
///
/// Cheap to clone; all stores over one folder in a process share one LMDB environment. It works on in a forked process,
/// which opens an environment of its own at its first fetch.
#[derive(Clone)]
pub struct EmbeddedStore(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) index: Index,
    pub(crate) lineage: Lineage,
    /// The store's URI.
    pub(crate) name: String,
    /// Row numbers in the order of their keys, made when first needed.
    rows_by_key: OnceLock<Vec<u64>>,
}

impl EmbeddedStore {
    /// Opens the data set that is visible in `folder` now. Blocks for as long as checking the index takes.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`] where there is no store, or nothing was ever published
    /// - [`ErrorKind::Truncated`] where a file was cut
    /// - [`ErrorKind::Version`] for a store of an unknown major version
    /// - [`ErrorKind::Malformed`] or [`ErrorKind::Corrupt`] where files are not what they should be
    /// - [`ErrorKind::Unsupported`] on a network file system, unless the configuration allows it
    pub fn open(folder: impl AsRef<Path>, config: EmbeddedConfig) -> Result<Self> {
        let folder = folder.as_ref();
        let name = name(folder);
        Self::open_named(folder, config, name.clone())
            .map_err(|error| error.during("open").in_store(name))
    }

    fn open_named(folder: &Path, config: EmbeddedConfig, name: String) -> Result<Self> {
        if !is_store(folder) {
            let error = Error::new(
                ErrorKind::NotFound,
                "there is no embedded store in this folder",
            );
            return Err(error.hint("`farhaul ingest SOURCE --to FOLDER` makes one"));
        }
        folder::check_file_system(folder, &config)?;
        let environment = Environment::shared(folder, &config, false)?;
        let index = visible_index(folder, &environment)?;
        let lineage = Lineage::new(folder.to_owned(), config, environment);
        Ok(Self(Arc::new(Shared {
            index,
            lineage,
            name,
            rows_by_key: OnceLock::new(),
        })))
    }

    /// The rows of the data set, with everything that an index offers.
    pub fn index(&self) -> &Index {
        &self.0.index
    }
}

/// The index of the manifest that is visible now.
fn visible_index(folder: &Path, environment: &Environment) -> Result<Index> {
    let mut attempt = 1;
    loop {
        let record = read_record(environment)?.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                "nothing was published in this store yet",
            )
            .hint("an ingest was interrupted: run it again, it goes on where it stopped")
        })?;
        match folder::open_index(folder, &record) {
            // A writer has published and cleared the older index between the two looks.
            Err(error) if error.kind() == ErrorKind::NotFound && attempt < OPEN_ATTEMPTS => {
                attempt += 1;
            }
            result => return result,
        }
    }
}

/// The manifest's record, where one was published.
pub(crate) fn read_record(environment: &Environment) -> Result<Option<Record>> {
    environment.read(|reading| {
        let json = reading.tables.meta.get(&reading.transaction, MANIFEST_KEY);
        let json =
            json.map_err(|error| crate::error::from_lmdb("the manifest cannot be read", error))?;
        json.map(manifest::parse).transpose()
    })
}

/// True where a folder looks like an embedded store; what is in it shows at opening.
pub fn is_store(folder: &Path) -> bool {
    folder.join(folder::DATA_FILE).is_file()
}

/// The URI of a folder, which opens it again whatever bytes its path has.
pub(crate) fn name(folder: &Path) -> String {
    let path = percent_encode(folder.as_os_str().as_bytes());
    format!("{SCHEME}:{path}")
}

impl Shared {
    /// The row whose payload has this name.
    pub(crate) fn row_of_key(&self, key: SampleKey) -> Option<u64> {
        let index = &self.index;
        let rows = self.rows_by_key.get_or_init(|| {
            let mut rows: Vec<u64> = (0..index.len()).collect();
            rows.sort_unstable_by_key(|row| index.key(*row));
            rows
        });
        let place = rows
            .binary_search_by(|row| index.key(*row).cmp(&key))
            .ok()?;
        Some(rows[place])
    }
}

#[async_trait]
impl Store for EmbeddedStore {
    fn capability(&self) -> Capability {
        capability(self.0.lineage.config())
    }

    fn summary(&self) -> Summary {
        self.0.index.summary()
    }

    async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        Ok(Arc::new(self.0.index.clone()))
    }

    fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched> {
        fetch::fetch(Arc::clone(&self.0), request)
    }

    fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
        let shared = Arc::clone(&self.0);
        let groups = stream::try_unfold(Some(None), move |last| {
            let shared = Arc::clone(&shared);
            async move {
                let Some(last) = last else { return Ok(None) };
                let keys = fetch::blocking(move || {
                    keys_after(&shared, last)
                        .map_err(|error| error.during("list").in_store(&shared.name))
                })
                .await?;
                let next = (keys.len() == GROUP_ENTRIES).then(|| keys.last().copied());
                Ok(Some((keys, next)))
            }
        });
        groups
            .flat_map(|group: Result<Vec<SampleKey>>| match group {
                Ok(keys) => stream::iter(keys).map(Ok).boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            })
            .boxed()
    }

    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
        let index = self.0.index.clone();
        let group = move |start: u64| {
            let end = index.len().min(start + GROUP_ENTRIES as u64);
            Ok((start..end).map(|row| index.row(row)).collect())
        };
        stream::iter((0..self.0.index.len()).step_by(GROUP_ENTRIES))
            .map(group)
            .boxed()
    }
}

/// The keys of the next group, which may be of no manifest.
fn keys_after(shared: &Shared, last: Option<SampleKey>) -> Result<Vec<SampleKey>> {
    use std::ops::Bound::{Excluded, Unbounded};
    let failed = |error| crate::error::from_lmdb("the payloads cannot be listed", error);
    shared.lineage.current()?.read(|reading| {
        let start = last.as_ref().map_or(Unbounded, |key| Excluded(&key.0[..]));
        let table = reading
            .tables
            .payload
            .remap_data_type::<heed::types::DecodeIgnore>();
        let range = (start, Unbounded);
        let entries = table.range(&reading.transaction, &range).map_err(failed)?;
        let key = |entry: heed::Result<(&[u8], ())>| {
            let (bytes, ()) = entry.map_err(failed)?;
            let wrong = |_| Error::new(ErrorKind::Corrupt, "a payload has a name that is no key");
            Ok(SampleKey(bytes.try_into().map_err(wrong)?))
        };
        entries.take(GROUP_ENTRIES).map(key).collect()
    })
}

pub(crate) fn capability(config: &EmbeddedConfig) -> Capability {
    let mut capability = Capability::new(SCHEME);
    capability.request_samples = 32;
    capability.requests_in_flight = 4;
    capability.local = true;
    capability.fetches_parts = true;
    capability.max_payload_bytes = Some(config.payload_limit());
    capability
}

impl fmt::Display for EmbeddedStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.name)
    }
}

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EmbeddedStore")
            .field("name", &self.0.name)
            .field("index", &self.0.index)
            .finish_non_exhaustive()
    }
}
