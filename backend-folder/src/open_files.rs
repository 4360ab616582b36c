//! Open archives, shared by all readers: reads name their offset, so one open file serves any number of threads.

use std::{
    collections::HashMap,
    fs::File,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use loader_core::Result;

use crate::read;

/// The files used last.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    state: Mutex<State>,
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<usize, (Arc<File>, u64)>,
    uses: u64,
}

impl OpenFiles {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            state: Mutex::default(),
            most: most.max(1),
        }
    }

    /// An open file, by its number in a listing, that was what the listing says when it was opened.
    ///
    /// # Errors
    /// `Vanished`, `Changed`, or what the operating system says.
    pub(crate) fn file(
        &self,
        number: usize,
        path: &Path,
        nbytes: u64,
        modified: i64,
    ) -> Result<Arc<File>> {
        if let Some(file) = self.known(number) {
            return Ok(file);
        }
        // Outside the lock: opening a file far away takes its time. Two threads may open one; one of them wins.
        let file = Arc::new(read::open(path)?);
        read::check_unchanged(&file, path, nbytes, modified)?;
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
