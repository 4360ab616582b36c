//! Open shards, shared by all readers: reads name their offset, so one open file serves any number of threads.

use std::{
    collections::HashMap,
    fs::File,
    sync::{Arc, Mutex, PoisonError},
};

use loader_core::Result;

use super::Shard;
use crate::read;

/// The shards used last.
#[derive(Debug)]
pub(crate) struct OpenShards {
    state: Mutex<State>,
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<usize, (Arc<File>, u64)>,
    uses: u64,
}

impl OpenShards {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            state: Mutex::default(),
            most: most.max(1),
        }
    }

    /// An open shard that was what the listing says when it was opened.
    pub(crate) fn shard(&self, number: usize, shard: &Shard) -> Result<Arc<File>> {
        if let Some(file) = self.known(number) {
            return Ok(file);
        }
        // Outside the lock: opening a file far away takes its time. Two threads may open one shard; one of them wins.
        let file = Arc::new(read::open(&shard.path)?);
        read::check_unchanged(&file, &shard.path, shard.nbytes, shard.modified)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.files.len() >= self.most {
            let oldest = state
                .files
                .iter()
                .min_by_key(|(_, (_, used))| *used)
                .map(|(number, _)| *number);
            oldest.and_then(|number| state.files.remove(&number));
        }
        let used = state.uses;
        state.files.insert(number, (Arc::clone(&file), used));
        Ok(file)
    }

    fn known(&self, number: usize) -> Option<Arc<File>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.uses += 1;
        let now = state.uses;
        let (file, used) = state.files.get_mut(&number)?;
        *used = now;
        Some(Arc::clone(file))
    }
}
