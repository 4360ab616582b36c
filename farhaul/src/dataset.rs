//! An open data set.

use std::sync::{Arc, OnceLock};

use futures_util::StreamExt;
use loader_core::{
    Catalog, Collate, Error, ErrorKind, FetchRequest, Result, Sample, Store, Summary,
    loader::{Loader, config::LoaderConfig},
};
use tokio::runtime::Handle;

use crate::{anchor::Anchored, runtime::Runtime};

/// An open data set, pinned to what was published when it was opened.
///
/// Its calls block and may be made from any thread, inside async code too. Clones share the store, the catalogue and the two
/// threads that drive it; the threads live as long as a clone, a loader or a [`store`](Self::store) does.
#[derive(Debug, Clone)]
pub struct Dataset(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    uri: String,
    store: Arc<dyn Store>,
    warnings: Vec<String>,
    runtime: Arc<Runtime>,
    catalog: OnceLock<Arc<dyn Catalog>>,
}

impl Dataset {
    pub(crate) fn new(
        uri: String,
        store: Arc<dyn Store>,
        warnings: Vec<String>,
        runtime: Arc<Runtime>,
    ) -> Self {
        let store = Arc::new(Anchored {
            store,
            runtime: Arc::clone(&runtime),
        });
        Self(Arc::new(Inner {
            uri,
            store,
            warnings,
            runtime,
            catalog: OnceLock::new(),
        }))
    }

    /// A data set over any store, with threads of its own.
    ///
    /// # Errors
    /// Where the threads cannot be started.
    pub fn over(store: Arc<dyn Store>) -> Result<Self> {
        Ok(Self::new(
            store.to_string(),
            store,
            Vec::new(),
            Arc::new(Runtime::start()?),
        ))
    }

    /// The data set's URI without credentials: with a scheme, so that [`crate::open`] finds it again.
    pub fn uri(&self) -> &str {
        &self.0.uri
    }

    /// What may be a mistake though it can be read, a line each: of a folder in place, class names that look alike and links
    /// that lead in a circle.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// The store, wrapped as its distance asks for.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// Count, bytes, classes, fields and fingerprint; known since the data set was opened.
    pub fn summary(&self) -> Summary {
        self.0.store.summary()
    }

    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.summary().samples
    }

    /// True where there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows in path order. Waits until they have arrived, the first time.
    ///
    /// # Errors
    /// What reading or moving the index met; the next call tries again.
    pub fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        if let Some(catalog) = self.0.catalog.get() {
            return Ok(Arc::clone(catalog));
        }
        let store = Arc::clone(&self.0.store);
        let catalog = self
            .0
            .runtime
            .wait(async move { store.catalog().await })??;
        Ok(Arc::clone(self.0.catalog.get_or_init(|| catalog)))
    }

    /// The row with exactly this source path.
    ///
    /// # Errors
    /// Those of [`catalog`](Self::catalog).
    pub fn find(&self, path: &[u8]) -> Result<Option<u64>> {
        Ok(self.catalog()?.find(path))
    }

    /// Fetches one sample and waits for it; passing failures over a distance are retried.
    ///
    /// # Errors
    /// What is wrong with the sample or the store; [`ErrorKind::NotFound`] for a row that there is not.
    pub fn sample(&self, row: u64) -> Result<Sample> {
        self.samples(&[row])
            .pop()
            .unwrap_or_else(|| Err(no_answer()))
    }

    /// Fetches samples and waits for all of them: one outcome a row, in the order of `rows`.
    pub fn samples(&self, rows: &[u64]) -> Vec<Result<Sample>> {
        let summary = self.summary();
        let count = summary.samples;
        let mut outcomes: Vec<_> = rows
            .iter()
            .map(|row| {
                Err(if *row < count {
                    no_answer()
                } else {
                    no_such_row(*row, count)
                })
            })
            .collect();
        let asked: Vec<usize> = (0..rows.len())
            .filter(|number| rows[*number] < count)
            .collect();
        if asked.is_empty() {
            return outcomes;
        }
        let targets = asked.iter().map(|number| rows[*number]).collect();
        let mut request = FetchRequest::rows(summary.fingerprint, targets);
        request.expected_bytes = summary.mean_bytes().saturating_mul(asked.len() as u64);
        let store = Arc::clone(&self.0.store);
        match self
            .0
            .runtime
            .wait(async move { store.fetch(request).collect::<Vec<_>>().await })
        {
            Ok(answers) => {
                for answer in answers {
                    if let Some(number) = asked.get(answer.target) {
                        outcomes[*number] = answer.outcome;
                    }
                }
            }
            Err(error) => {
                for number in asked {
                    outcomes[number] = Err(error.clone());
                }
            }
        }
        outcomes
    }

    pub(crate) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        self.0.runtime.wait(future)
    }

    /// The runtime of this data set: multi-threaded, with time, started by [`crate::open`].
    pub fn runtime(&self) -> Handle {
        self.0.runtime.handle().clone()
    }

    /// Fails in the child of a fork, where the data set's threads are not: open it again there.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] with that advice.
    pub fn check_process(&self) -> Result<()> {
        self.0.runtime.check_process()
    }

    /// A loader over this data set; nothing is fetched before [`Loader::start`]. It may outlive the data set.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for options that make no sense, [`ErrorKind::Unavailable`] in the child of a fork.
    pub fn loader<C: Collate>(&self, collate: C, config: LoaderConfig) -> Result<Loader<C>> {
        self.check_process()?;
        Loader::new(Arc::clone(&self.0.store), collate, config, self.runtime())
    }
}

fn no_answer() -> Error {
    Error::new(
        ErrorKind::Internal,
        "the store gave no answer for this sample",
    )
    .during("fetch")
}

fn no_such_row(row: u64, samples: u64) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("row {row} of a data set that has {samples}"),
    )
    .during("fetch")
}

#[cfg(test)]
mod tests {
    use loader_core::{NewSample, Part, collate::Raw, memory::MemoryStore};

    use super::*;

    fn data(count: u64) -> Dataset {
        let sample = |number: u64| NewSample {
            path: format!("{number:03}.jpg").into(),
            label: 0,
            parts: Part::sequence([("jpg", 3)]),
            payload: format!("{number:03}").into(),
            fields: loader_core::Fields::new(),
        };
        let store = MemoryStore::from_samples((0..count).map(sample), vec!["only".into()]).unwrap();
        Dataset::over(Arc::new(store)).unwrap()
    }

    #[test]
    fn samples_come_in_the_order_asked_for_and_a_missing_row_spoils_no_other() {
        let outcomes = data(9).samples(&[8, 99, 0, 8]);
        let texts: Vec<_> = outcomes
            .iter()
            .map(|outcome| outcome.as_ref().map(|sample| sample.payload.clone()))
            .collect();
        assert_eq!(texts[0].as_ref().unwrap(), "008");
        assert_eq!(texts[1].as_ref().unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(texts[2].as_ref().unwrap(), "000");
        assert_eq!(texts[3].as_ref().unwrap(), "008");
        assert!(data(0).is_empty() && data(0).samples(&[]).is_empty());
    }

    #[test]
    fn rows_are_found_by_their_path() {
        let data = data(9);
        assert_eq!(data.find(b"003.jpg").unwrap(), Some(3));
        assert_eq!(data.find(b"003").unwrap(), None);
        assert_eq!((data.len(), data.uri()), (9, "memory:"));
    }

    #[test]
    fn a_loader_outlives_the_data_set_that_it_came_from() {
        let data = data(100);
        let mut loader = data.loader(Raw, LoaderConfig::default()).unwrap();
        drop(data);
        let samples: u64 = loader
            .start()
            .unwrap()
            .map(|delivered| delivered.unwrap().samples)
            .sum();
        assert_eq!(samples, 100);
    }

    #[test]
    fn blocking_calls_work_inside_async_code() {
        let outer = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        outer.block_on(async {
            let data = data(3);
            assert_eq!(data.sample(1).unwrap().payload, "001");
            drop(data);
        });
    }
}
