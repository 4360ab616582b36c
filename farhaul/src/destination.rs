//! A data set that is being written.

use std::sync::Arc;

use loader_core::{Manifest, NewSample, Result, StoreWriter, Summary, store::Put};

use crate::runtime::Runtime;

/// Write access to a data set, and the threads that drive it.
#[derive(Debug, Clone)]
pub struct Destination {
    writer: Arc<dyn StoreWriter>,
    runtime: Arc<Runtime>,
}

impl Destination {
    pub(crate) fn new(writer: Arc<dyn StoreWriter>, runtime: Arc<Runtime>) -> Self {
        Self { writer, runtime }
    }

    /// A destination over any writer, with threads of its own.
    ///
    /// # Errors
    /// Where the threads cannot be started.
    pub fn over(writer: Arc<dyn StoreWriter>) -> Result<Self> {
        Ok(Self::new(writer, Arc::new(Runtime::start()?)))
    }

    /// The writer.
    pub fn writer(&self) -> &Arc<dyn StoreWriter> {
        &self.writer
    }

    /// The runtime that drives the writer.
    pub fn runtime(&self) -> tokio::runtime::Handle {
        self.runtime.handle().clone()
    }

    /// The manifest that is visible now.
    ///
    /// # Errors
    /// What reading it met.
    pub fn published(&self) -> Result<Option<Manifest>> {
        let writer = Arc::clone(&self.writer);
        self.runtime.wait(async move { writer.published().await })?
    }

    /// Writes a group of samples and waits for it.
    ///
    /// # Errors
    /// Where the store as a whole cannot go on.
    pub fn put(&self, samples: Vec<NewSample>) -> Result<Vec<Put>> {
        let writer = Arc::clone(&self.writer);
        self.runtime
            .wait(async move { writer.put(samples).await })?
    }

    /// Makes exactly these rows the data set, and waits until that lasts.
    ///
    /// # Errors
    /// What writing it met; the manifest that was visible before then still is.
    pub fn publish(&self, manifest: Manifest) -> Result<Summary> {
        let writer = Arc::clone(&self.writer);
        self.runtime
            .wait(async move { writer.publish(manifest).await })?
    }
}
