//! Writing: payloads under the name that follows from what is in them, then the manifest at once.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use loader_core::{
    Capability, Manifest, NewSample, Put, Result, Row, SampleKey, StoreWriter, Summary,
    identity::checksum,
};

use super::{driver::Client, error::from_driver};

/// Write access to the samples of a table.
#[derive(Debug, Clone)]
pub struct TableWriter {
    pub client: Arc<Client>,
}

#[async_trait]
impl StoreWriter for TableWriter {
    fn capability(&self) -> Capability {
        Capability::new("table")
    }

    async fn published(&self) -> Result<Option<Manifest>> {
        self.client.manifest().await.map_err(from_driver)
    }

    async fn put(&self, samples: Vec<NewSample>) -> Result<Vec<Put>> {
        let mut puts = Vec::with_capacity(samples.len());
        for NewSample {
            path,
            label,
            parts,
            payload,
            fields,
        } in samples
        {
            let checksum = checksum(&payload);
            let key = SampleKey::of_content(&path, checksum);
            let nbytes = payload.len() as u64;
            let row = Row {
                path,
                key,
                nbytes,
                checksum: Some(checksum),
                label,
                parts,
                fields,
            };
            let is_new = self.client.put(key.0, payload).await.map_err(from_driver)?;
            puts.push(if is_new {
                Put::Written(row)
            } else {
                Put::Present(row)
            });
        }
        Ok(puts)
    }

    async fn publish(&self, manifest: Manifest) -> Result<Summary> {
        let summary = manifest.summary();
        self.client
            .set_manifest(manifest)
            .await
            .map_err(from_driver)?;
        Ok(summary)
    }
}

impl fmt::Display for TableWriter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("table:")
    }
}
