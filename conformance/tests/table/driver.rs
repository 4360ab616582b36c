//! Stands in for the driver of a database: a table of payloads, and a cell for the manifest.

use std::{collections::BTreeMap, fmt, sync::Mutex};

use bytes::Bytes;
use loader_core::Manifest;

#[derive(Debug, Default)]
pub struct Client {
    payloads: Mutex<BTreeMap<[u8; 16], Bytes>>,
    manifest: Mutex<Option<Manifest>>,
}

#[derive(Debug)]
pub enum DriverError {
    Busy,
    NoHost,
}

impl fmt::Display for DriverError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Busy => "the coordinator is busy",
            Self::NoHost => "no host can be reached",
        })
    }
}

impl std::error::Error for DriverError {}

impl Client {
    pub async fn get(&self, id: [u8; 16]) -> Result<Option<Bytes>, DriverError> {
        tokio::task::yield_now().await;
        Ok(self
            .payloads
            .lock()
            .map_err(|_| DriverError::NoHost)?
            .get(&id)
            .cloned())
    }

    /// True where there was none before.
    pub async fn put(&self, id: [u8; 16], payload: Bytes) -> Result<bool, DriverError> {
        tokio::task::yield_now().await;
        Ok(self
            .payloads
            .lock()
            .map_err(|_| DriverError::Busy)?
            .insert(id, payload)
            .is_none())
    }

    pub async fn delete(&self, id: [u8; 16]) -> Result<(), DriverError> {
        self.payloads
            .lock()
            .map_err(|_| DriverError::NoHost)?
            .remove(&id);
        Ok(())
    }

    pub async fn ids(&self) -> Result<Vec<[u8; 16]>, DriverError> {
        Ok(self
            .payloads
            .lock()
            .map_err(|_| DriverError::NoHost)?
            .keys()
            .copied()
            .collect())
    }

    pub async fn manifest(&self) -> Result<Option<Manifest>, DriverError> {
        Ok(self
            .manifest
            .lock()
            .map_err(|_| DriverError::NoHost)?
            .clone())
    }

    pub async fn set_manifest(&self, manifest: Manifest) -> Result<(), DriverError> {
        *self.manifest.lock().map_err(|_| DriverError::Busy)? = Some(manifest);
        Ok(())
    }
}
