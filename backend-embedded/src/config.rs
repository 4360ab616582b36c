//! What can be set; nothing needs to be.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Largest value that LMDB takes, bytes.
const LMDB_VALUE_BYTES: u64 = u32::MAX as u64;

/// Options of an embedded store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct EmbeddedConfig {
    /// How large the data file may become, bytes; 16 TiB by default. More costs address space only, and only once it is used.
    pub max_file_bytes: u64,
    /// Largest payload that is taken, bytes; 4 GiB − 1 by default, which is what LMDB can hold.
    pub max_payload_bytes: u64,
    /// How long a writer waits for another process that writes, 5 s by default.
    pub writer_wait: Duration,
    /// Opens the store on a network file system too. Off by default: locks and maps that are not shared between machines
    /// let two writers destroy the file. Safe for reading a store that nobody writes to.
    pub allow_network_file_system: bool,
}

impl Default for EmbeddedConfig {
    fn default() -> Self {
        Self {
            max_file_bytes: 1 << 44,
            max_payload_bytes: LMDB_VALUE_BYTES,
            writer_wait: Duration::from_secs(5),
            allow_network_file_system: false,
        }
    }
}

impl EmbeddedConfig {
    /// The payload limit that holds: no configuration raises that of LMDB.
    pub(crate) fn payload_limit(&self) -> u64 {
        self.max_payload_bytes.min(LMDB_VALUE_BYTES)
    }
}
