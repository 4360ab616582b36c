//! The rows of either layout behind one face: what the store and the ingest read from.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use loader_core::{
    Catalog, Part, Result, Sample, SampleKey, SamplePath, Summary, identity::FingerprintHasher,
};

use crate::{
    files::{FileCatalog, index},
    open_files::OpenFiles,
    tars::TarCatalog,
};

/// Rows and how their bytes are read.
#[derive(Debug, Clone)]
pub(crate) enum Rows {
    Files(Arc<FileCatalog>),
    Tars(Arc<TarCatalog>, Arc<OpenFiles>),
}

impl Rows {
    pub(crate) fn catalog(&self) -> Arc<dyn Catalog> {
        match self {
            Self::Files(catalog) => Arc::clone(catalog) as Arc<dyn Catalog>,
            Self::Tars(catalog, _) => Arc::clone(catalog) as Arc<dyn Catalog>,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Files(catalog) => catalog.len(),
            Self::Tars(catalog, _) => catalog.len(),
        }
    }

    pub(crate) fn key(&self, row: usize) -> SampleKey {
        match self {
            Self::Files(catalog) => catalog.key(row),
            Self::Tars(catalog, _) => catalog.key(row),
        }
    }

    pub(crate) fn nbytes(&self, row: usize) -> u64 {
        match self {
            Self::Files(catalog) => catalog.nbytes(row as u64),
            Self::Tars(catalog, _) => catalog.payload_bytes(row),
        }
    }

    pub(crate) fn path(&self, row: usize) -> SamplePath {
        match self {
            Self::Files(catalog) => catalog.path(row).into(),
            Self::Tars(catalog, _) => catalog.path(row).into(),
        }
    }

    /// What the rows are together. No row is built for it: a listing may have millions.
    pub(crate) fn summary(&self, classes: Vec<String>) -> Summary {
        let mut hasher = FingerprintHasher::default();
        let mut bytes: u64 = 0;
        for row in 0..index(self.len()) {
            let (path, nbytes) = match self {
                Self::Files(catalog) => (catalog.path(row), catalog.nbytes(row as u64)),
                Self::Tars(catalog, _) => (catalog.path(row), catalog.payload_bytes(row)),
            };
            hasher.row(path, nbytes, self.label(row));
            bytes = bytes.saturating_add(nbytes);
        }
        Summary {
            fingerprint: hasher.finish(),
            samples: self.len(),
            bytes,
            classes: classes.into(),
            fields: Arc::default(),
        }
    }

    fn label(&self, row: usize) -> i64 {
        match self {
            Self::Files(catalog) => catalog.label(row as u64),
            Self::Tars(catalog, _) => catalog.label(row as u64),
        }
    }

    /// Sorts by this to read forward: shard and offset; files stay in their order.
    pub(crate) fn place(&self, row: usize) -> (usize, u64) {
        match self {
            Self::Files(_) => (0, row as u64),
            Self::Tars(catalog, _) => catalog.place(row),
        }
    }

    /// The keys of those rows whose file is still there; blocks.
    pub(crate) fn keys_there(&self, rows: Range<usize>) -> Vec<Result<SampleKey>> {
        let mut last = None;
        let mut is_there = |row: usize| match self {
            Self::Files(catalog) => catalog.is_there(row),
            Self::Tars(catalog, _) => {
                let shard = catalog.shard(row);
                // Rows of a shard stand together: one look for all of them.
                if last.is_none_or(|(known, _)| known != shard) {
                    last = Some((shard, catalog.shards[shard].path.exists()));
                }
                last.is_some_and(|(_, is_there)| is_there)
            }
        };
        rows.filter(|row| is_there(*row))
            .map(|row| Ok(self.key(row)))
            .collect()
    }

    /// Reads the wanted parts of a row; blocks.
    ///
    /// # Errors
    /// What is wrong with this sample, naming it.
    pub(crate) fn read(&self, row: usize, wanted: Option<&[String]>) -> Result<Sample> {
        let read = || -> Result<(Arc<[Part]>, Bytes)> {
            match self {
                // A file has one part: where it is not wanted, nothing is read.
                Self::Files(catalog) => {
                    let parts = catalog.parts(row);
                    let is_wanted = wanted.is_none_or(|wanted| {
                        wanted
                            .iter()
                            .any(|name| name.eq_ignore_ascii_case(&parts[0].name))
                    });
                    if is_wanted {
                        Ok((parts, catalog.read(row)?))
                    } else {
                        Ok((Part::sequence([]), Bytes::new()))
                    }
                }
                Self::Tars(catalog, open) => catalog.read(row, wanted, open),
            }
        };
        let (parts, payload) = read().map_err(|error| error.at(self.path(row)))?;
        Ok(Sample {
            key: self.key(row),
            path: self.path(row),
            label: self.label(row),
            parts,
            payload,
        })
    }
}
