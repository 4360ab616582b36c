//! Survives `fork`: an LMDB environment belongs to the process that opened it, so a child opens its own.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use loader_core::Result;

use crate::{config::EmbeddedConfig, environment::Environment};

/// The environments of a store, one for each process it was carried into.
///
/// Without a lock, because a lock that another thread holds during a fork stays locked in the child for ever.
#[derive(Debug)]
pub(crate) struct Lineage {
    folder: PathBuf,
    config: EmbeddedConfig,
    first: Generation,
}

#[derive(Debug)]
struct Generation {
    environment: Arc<Environment>,
    /// The environment of the process that was forked off; a process never sets this in its own generation.
    next: OnceLock<Box<Generation>>,
}

impl Generation {
    fn new(environment: Arc<Environment>) -> Self {
        Self {
            environment,
            next: OnceLock::new(),
        }
    }
}

impl Lineage {
    pub(crate) fn new(
        folder: PathBuf,
        config: EmbeddedConfig,
        environment: Arc<Environment>,
    ) -> Self {
        Self {
            folder,
            config,
            first: Generation::new(environment),
        }
    }

    /// What the store was opened with.
    pub(crate) fn config(&self) -> &EmbeddedConfig {
        &self.config
    }

    /// The environment of this process.
    ///
    /// # Errors
    /// In a forked process, what opening the store again met.
    pub(crate) fn current(&self) -> Result<&Environment> {
        let process = std::process::id();
        let mut generation = &self.first;
        while generation.environment.process() != process {
            if generation.next.get().is_none() {
                let environment = Environment::shared(&self.folder, &self.config, false)?;
                // Another thread may have been quicker; then both have the same environment.
                let _ = generation.next.set(Box::new(Generation::new(environment)));
            }
            let Some(next) = generation.next.get() else {
                continue;
            };
            generation = next;
        }
        Ok(&generation.environment)
    }
}
