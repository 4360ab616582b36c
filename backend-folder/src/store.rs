//! A folder as a store: nothing is copied, samples are read where they lie.

use std::{
    fmt,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use async_trait::async_trait;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use loader_core::{
    Capability, Catalog, Error, ErrorKind, FetchRequest, Fetched, Fingerprint, Manifest, Result,
    Row, SampleKey, Store, Summary, Targets, uri::percent_encode,
};

use crate::{
    config::{FolderConfig, FolderFormat, SourceFormat},
    failure, fetch,
    files::index,
    layout::{self, Layout, Listing},
    open_files::OpenFiles,
    rows::Rows,
};

/// Rows in one group of [`Store::metadata`].
const GROUP_ROWS: usize = 1024;

/// Image files or WebDataset tars below a path, as a data set that is read in place.
///
/// Pinned to what was there when it was opened: a file that changes or goes away afterwards is a typed error of its sample.
/// Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct FolderStore {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    layout: Layout,
    rows: Rows,
    summary: Summary,
    left_out: u64,
    warnings: Vec<String>,
    group_samples: usize,
    /// Row numbers by key, made when somebody asks by key: in the sorted order of the keys.
    by_key: OnceLock<Vec<u32>>,
}

impl FolderStore {
    /// Lists what lies at `path` and opens it. Blocks while it walks: on an asynchronous thread, wrap it.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where there is nothing or nothing known; [`ErrorKind::Unsupported`] for what is read at ingest
    /// alone (gzip shards, MDS); [`ErrorKind::Conflict`] where two shards have one name; what the operating system says.
    pub fn open(path: &Path, config: FolderConfig) -> Result<Self> {
        let opened = Self::open_quietly(path, &config);
        opened.map_err(|error| error.during("open").in_store(Uri(path)))
    }

    fn open_quietly(path: &Path, config: &FolderConfig) -> Result<Self> {
        let format = match config.format {
            FolderFormat::Auto => SourceFormat::Auto,
            FolderFormat::ImageFolder => SourceFormat::Folder,
            FolderFormat::WebDataset => SourceFormat::WebDataset,
        };
        let (layout, rows, classes, left_out, warnings) =
            match layout::list(path, format, config.list_options())? {
                Listing::Files(listing) => {
                    let rows = Rows::Files(Arc::new(listing.catalog));
                    (
                        Layout::ImageFolder,
                        rows,
                        listing.classes,
                        listing.left_out,
                        listing.warnings,
                    )
                }
                Listing::Tars(listing) => {
                    let rows = Rows::Tars(
                        Arc::new(listing.catalog),
                        Arc::new(OpenFiles::new(config.open_shards)),
                    );
                    (
                        Layout::WebDataset,
                        rows,
                        listing.classes,
                        listing.left_out,
                        Vec::new(),
                    )
                }
                Listing::Mds => {
                    let message = format!(
                        "{} is an MDS set, which cannot be read in place",
                        failure::shown(path)
                    );
                    return Err(Error::new(ErrorKind::Unsupported, message)
                        .hint("ingest it: farhaul ingest SOURCE --to embedded:PATH"));
                }
            };
        let summary = rows.summary(classes);
        let inner = Inner {
            path: path.to_owned(),
            layout,
            rows,
            summary,
            left_out,
            warnings,
            group_samples: config.group_samples.max(1),
            by_key: OnceLock::new(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// What the path turned out to hold.
    pub fn layout(&self) -> Layout {
        self.inner.layout
    }

    /// Things met that are no samples: hidden files and folders, junk, side files, members without a dot.
    pub fn left_out(&self) -> u64 {
        self.inner.left_out
    }

    /// What may be a mistake though it can be read: class folders that look alike, links that lead in a circle.
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings
    }

    /// Classes and rows, as an ingest publishes them.
    pub fn manifest(&self) -> Manifest {
        Manifest {
            classes: Arc::clone(&self.inner.summary.classes),
            catalog: self.inner.rows.catalog(),
        }
    }

    /// Those of the rows asked for that there are.
    fn rows_in(&self, fingerprint: Fingerprint, rows: &[u64]) -> Vec<Result<u32>> {
        let own = self.inner.summary.fingerprint;
        if fingerprint != own {
            let error = Error::new(
                ErrorKind::Incompatible,
                format!("rows of data set {fingerprint} were asked from {own}"),
            )
            .hint("open the data set again: files were added, removed or changed");
            return vec![Err(error); rows.len()];
        }
        let count = self.inner.summary.samples;
        let there = |row: &u64| {
            let outside = || {
                Error::new(
                    ErrorKind::NotFound,
                    format!("row {row} of a data set that has {count}"),
                )
            };
            u32::try_from(*row)
                .ok()
                .filter(|_| *row < count)
                .ok_or_else(outside)
        };
        rows.iter().map(there).collect()
    }

    /// The rows that have these keys. Blocks: the first call makes and sorts the keys of all rows.
    fn rows_of(&self, keys: &[SampleKey]) -> Vec<Result<u32>> {
        let unknown =
            |key: &SampleKey| Error::new(ErrorKind::NotFound, format!("no sample is called {key}"));
        keys.iter()
            .map(|key| self.row_of(*key).ok_or_else(|| unknown(key)))
            .collect()
    }

    fn row_of(&self, key: SampleKey) -> Option<u32> {
        let rows = &self.inner.rows;
        let by_key = self.inner.by_key.get_or_init(|| {
            let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
            let mut numbers: Vec<u32> = (0..count).collect();
            numbers.sort_by_cached_key(|row| rows.key(*row as usize));
            numbers
        });
        let at = by_key
            .binary_search_by(|row| rows.key(*row as usize).cmp(&key))
            .ok()?;
        Some(by_key[at])
    }
}

#[async_trait]
impl Store for FolderStore {
    fn capability(&self) -> Capability {
        let mut capability = Capability::new("folder");
        capability.request_samples = 32;
        capability.requests_in_flight = 4;
        capability.local = true;
        capability.fetches_parts = true;
        capability.checksums = false;
        capability
    }

    fn summary(&self) -> Summary {
        self.inner.summary.clone()
    }

    async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        Ok(self.inner.rows.catalog())
    }

    fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched> {
        let store = self.clone();
        let start = async move {
            let targets = match request.targets {
                Targets::Keys(keys) => {
                    let (store, count) = (store.clone(), keys.len());
                    fetch::blocking(move || store.rows_of(&keys))
                        .await
                        .unwrap_or_else(|error| vec![Err(error); count])
                }
                Targets::Rows { fingerprint, rows } => store.rows_in(fingerprint, &rows),
            };
            let work = fetch::Work {
                rows: store.inner.rows.clone(),
                targets,
                parts: request.parts,
                deadline: request.deadline,
                group_samples: store.inner.group_samples,
            };
            let name = store.to_string();
            fetch::start(work).map(move |mut fetched| {
                fetched.outcome = fetched
                    .outcome
                    .map_err(|error| error.during("fetch").in_store(&name));
                fetched
            })
        };
        stream::once(start).flatten().boxed()
    }

    fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
        let rows = self.inner.rows.clone();
        let group = move |start: u64| {
            let rows = rows.clone();
            async move {
                let end = rows.len().min(start + GROUP_ROWS as u64);
                let keys = fetch::blocking(move || rows.keys_there(index(start)..index(end))).await;
                stream::iter(keys.unwrap_or_else(|error| vec![Err(error)]))
            }
        };
        let starts = (0..self.inner.rows.len()).step_by(GROUP_ROWS);
        stream::iter(starts)
            .map(group)
            .buffered(2)
            .flatten()
            .boxed()
    }

    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
        let catalog = self.inner.rows.catalog();
        let count = catalog.len();
        let group = move |start: u64| {
            Ok((start..count.min(start + GROUP_ROWS as u64))
                .map(|row| catalog.row(row))
                .collect())
        };
        stream::iter((0..count).step_by(GROUP_ROWS))
            .map(group)
            .boxed()
    }
}

impl fmt::Display for FolderStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Uri(&self.inner.path).fmt(out)
    }
}

impl fmt::Debug for FolderStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FolderStore")
            .field("path", &self.inner.path)
            .field("layout", &self.inner.layout)
            .field("summary", &self.inner.summary)
            .finish_non_exhaustive()
    }
}

/// `folder:PATH`, percent-encoded: a URI that opens the folder again whatever bytes its path has.
pub(crate) struct Uri<'a>(pub(crate) &'a Path);

impl fmt::Display for Uri<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "folder:{}",
            percent_encode(self.0.as_os_str().as_bytes())
        )
    }
}
