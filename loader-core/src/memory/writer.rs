//! Writing into memory, under the same contract as every far store.

use std::{collections::btree_map::Entry, fmt, sync::Arc};

use async_trait::async_trait;

use crate::{
    catalog::{Manifest, Summary},
    error::{Error, ErrorKind, Result},
    memory::{MemoryStore, SharedShelf, capability, lock, row_of},
    sample::NewSample,
    store::{Capability, Put, StoreWriter},
};

/// Write access to a data set in memory. Clones write to the same data set.
#[derive(Clone, Default)]
pub struct MemoryWriter {
    shelf: SharedShelf,
    max_payload_bytes: Option<u64>,
}

impl MemoryWriter {
    /// A new data set, in which nothing is visible yet.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn over(shelf: SharedShelf) -> Self {
        Self {
            shelf,
            max_payload_bytes: None,
        }
    }

    /// Refuses payloads of more than so many bytes, as databases do.
    #[must_use]
    pub fn with_max_payload_bytes(mut self, bytes: u64) -> Self {
        self.max_payload_bytes = Some(bytes);
        self
    }

    /// A reader pinned to what is published now.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where nothing was ever published.
    pub fn open(&self) -> Result<MemoryStore> {
        let manifest = lock(&self.shelf).manifest.clone();
        let Some(manifest) = manifest else {
            return Err(Error::new(ErrorKind::NotFound, "nothing was published").in_store(self));
        };
        Ok(MemoryStore::pinned(Arc::clone(&self.shelf), &manifest))
    }

    fn put_one(&self, sample: NewSample) -> Put {
        let nbytes = sample.payload.len() as u64;
        if let Some(limit) = self.max_payload_bytes.filter(|limit| nbytes > *limit) {
            let message = format!("{nbytes} bytes where at most {limit} can be stored");
            let error = Error::new(ErrorKind::TooLarge, message)
                .during("put")
                .in_store(self);
            return Put::Failed(error.at(sample.path));
        }
        let row = row_of(&sample);
        match lock(&self.shelf).payloads.entry(row.key) {
            Entry::Occupied(_) => Put::Present(row),
            Entry::Vacant(place) => {
                place.insert(sample.payload);
                Put::Written(row)
            }
        }
    }
}

#[async_trait]
impl StoreWriter for MemoryWriter {
    fn capability(&self) -> Capability {
        capability(self.max_payload_bytes)
    }

    async fn published(&self) -> Result<Option<Manifest>> {
        Ok(lock(&self.shelf).manifest.clone())
    }

    async fn put(&self, samples: Vec<NewSample>) -> Result<Vec<Put>> {
        Ok(samples
            .into_iter()
            .map(|sample| self.put_one(sample))
            .collect())
    }

    async fn publish(&self, manifest: Manifest) -> Result<Summary> {
        let summary = manifest.summary();
        lock(&self.shelf).manifest = Some(manifest);
        Ok(summary)
    }
}

impl fmt::Display for MemoryWriter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("memory:")
    }
}

impl fmt::Debug for MemoryWriter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("MemoryWriter")
            .field("max_payload_bytes", &self.max_payload_bytes)
            .finish_non_exhaustive()
    }
}
