//! Reading: payloads by name from a table, in any order.

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use loader_core::{
    Capability, Catalog, Error, ErrorKind, FetchRequest, Fetched, Lane, Manifest, NO_LABEL, Part,
    Result, Row, Sample, SampleKey, Store, Summary, Targets,
    identity::checksum,
    memory::keep_parts,
    wrap::timeout::{Timeout, TimeoutConfig},
};

use super::{driver::Client, error::from_driver};

/// Samples in a table of a database, pinned to the manifest that was visible when it was opened.
#[derive(Debug, Clone)]
pub struct TableStore {
    client: Arc<Client>,
    manifest: Manifest,
    summary: Summary,
    row_of: Arc<BTreeMap<SampleKey, u64>>,
}

impl TableStore {
    /// Opens the data set that is published now. The driver knows no deadlines, so they are kept here.
    pub async fn open(client: Arc<Client>) -> Result<Timeout> {
        let manifest = client.manifest().await.map_err(from_driver)?;
        let manifest = manifest.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "nothing is published").in_store("table:")
        })?;
        let keys = (0..manifest.catalog.len()).map(|row| (manifest.catalog.key(row), row));
        let (row_of, summary) = (Arc::new(keys.collect()), manifest.summary());
        let store = Self {
            client,
            manifest,
            summary,
            row_of,
        };
        Ok(Timeout::new(Arc::new(store), TimeoutConfig::default()))
    }

    /// What a target of a request names: its key, and its row if the manifest has one.
    fn target(&self, targets: &Targets, target: usize) -> Result<(SampleKey, Option<Row>)> {
        match targets {
            Targets::Rows { fingerprint, .. } if *fingerprint != self.summary.fingerprint => {
                Err(Error::new(
                    ErrorKind::Incompatible,
                    "these rows belong to another data set",
                ))
            }
            Targets::Rows { rows, .. } if rows[target] >= self.summary.samples => Err(Error::new(
                ErrorKind::NotFound,
                format!("there is no row {}", rows[target]),
            )),
            Targets::Rows { rows, .. } => {
                let row = self.manifest.catalog.row(rows[target]);
                Ok((row.key, Some(row)))
            }
            Targets::Keys(keys) => {
                let row = self
                    .row_of
                    .get(&keys[target])
                    .map(|row| self.manifest.catalog.row(*row));
                Ok((keys[target], row))
            }
        }
    }

    async fn sample(self, request: FetchRequest, target: usize) -> Result<Sample> {
        let (key, row) = self.target(&request.targets, target)?;
        let payload = self.client.get(key.0).await.map_err(from_driver)?;
        let sample = match (payload, row) {
            (None, None) => {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("no payload is called {key}"),
                ));
            }
            (None, Some(row)) => {
                return Err(Error::new(ErrorKind::Vanished, "the payload is gone").at(row.path));
            }
            (Some(payload), Some(row))
                if row
                    .checksum
                    .is_some_and(|recorded| recorded != checksum(&payload)) =>
            {
                return Err(Error::new(ErrorKind::Corrupt, "the checksum differs").at(row.path));
            }
            (
                Some(payload),
                Some(Row {
                    path, label, parts, ..
                }),
            ) => Sample {
                key,
                path,
                label,
                parts,
                payload,
            },
            // A payload that no manifest names is listed and delivered too: verification looks at everything.
            (Some(payload), None) => {
                let parts = Part::sequence([("data", payload.len() as u64)]);
                Sample {
                    key,
                    path: "".into(),
                    label: NO_LABEL,
                    parts,
                    payload,
                }
            }
        };
        Ok(match &request.parts {
            Some(names) => keep_parts(sample, names),
            None => sample,
        })
    }
}

#[async_trait]
impl Store for TableStore {
    fn capability(&self) -> Capability {
        let mut capability = Capability::new("table");
        capability.request_samples = 16;
        capability
    }

    fn summary(&self) -> Summary {
        self.summary.clone()
    }

    async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        Ok(Arc::clone(&self.manifest.catalog))
    }

    fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched> {
        let (store, count) = (self.clone(), request.targets.len());
        let answer = move |target| {
            let outcome = store.clone().sample(request.clone(), target);
            let finish = |error: Error| error.during("fetch").in_store("table:");
            async move {
                Fetched {
                    target,
                    lane: Lane(0),
                    outcome: outcome.await.map_err(finish),
                }
            }
        };
        // No task is spawned: dropping the stream drops everything that it waits for.
        stream::iter(0..count)
            .map(answer)
            .buffer_unordered(count.max(1))
            .boxed()
    }

    fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
        let client = Arc::clone(&self.client);
        let ids = async move { client.ids().await.map_err(from_driver) };
        stream::once(ids)
            .map_ok(|ids| stream::iter(ids.into_iter().map(SampleKey).map(Ok)))
            .try_flatten()
            .boxed()
    }

    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
        let catalog = Arc::clone(&self.manifest.catalog);
        stream::iter(0..self.summary.samples)
            .map(move |row| catalog.row(row))
            .chunks(256)
            .map(Ok)
            .boxed()
    }
}

impl fmt::Display for TableStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("table:")
    }
}
