//! The two records that say what the store is and which data set is visible.

use loader_core::{Error, ErrorKind, Fingerprint, Result};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The first word of each record.
pub const MAGIC: &str = "farhaul-embedded";

/// Major and minor version that this build writes. It reads every minor of this major.
pub const VERSION: (u32, u32) = (1, 0);

/// The record that says that this is a store, made with it.
pub(crate) const FORMAT_KEY: &[u8] = b"format";
/// The record of the visible data set.
pub(crate) const MANIFEST_KEY: &[u8] = b"manifest";

/// What every record starts with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Start {
    magic: String,
    version: (u32, u32),
}

impl Start {
    pub(crate) fn new() -> Self {
        Self {
            magic: MAGIC.to_owned(),
            version: VERSION,
        }
    }
}

/// The visible data set: an index file beside the database, and enough to know that it is the right one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(flatten)]
    start: Start,
    pub(crate) fingerprint: Fingerprint,
    /// Name of the index file in the folder.
    pub(crate) index: String,
    pub(crate) index_bytes: u64,
    pub(crate) index_checksum: u64,
    pub(crate) samples: u64,
    pub(crate) bytes: u64,
    pub(crate) classes: Vec<String>,
}

impl Record {
    pub(crate) fn new(
        index: &index::Index,
        file: String,
        file_bytes: u64,
        file_checksum: u64,
    ) -> Self {
        let summary = index.summary();
        Self {
            start: Start::new(),
            fingerprint: summary.fingerprint,
            index: file,
            index_bytes: file_bytes,
            index_checksum: file_checksum,
            samples: summary.samples,
            bytes: summary.bytes,
            classes: summary.classes.to_vec(),
        }
    }
}

/// Reads a record; its magic and version are looked at before anything else.
pub(crate) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    let malformed = |error| {
        Error::new(ErrorKind::Malformed, "a record of the store cannot be read").caused_by(error)
    };
    let start: Start = serde_json::from_slice(json).map_err(malformed)?;
    if start.magic != MAGIC {
        let message = format!("not a farhaul store: its magic is {:?}", start.magic);
        return Err(Error::new(ErrorKind::Malformed, message));
    }
    let (major, minor) = start.version;
    if major != VERSION.0 {
        let message = format!(
            "the store has version {major}.{minor}, this build reads version {}",
            VERSION.0
        );
        return Err(Error::new(ErrorKind::Version, message)
            .hint("use a farhaul of that version, or ingest again"));
    }
    serde_json::from_slice(json).map_err(malformed)
}

/// A record as it is stored.
pub(crate) fn to_json(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(record).expect("records have only texts and numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_major_is_named_and_an_unknown_field_ignored() {
        let start: Start =
            parse(br#"{"magic":"farhaul-embedded","version":[1,5],"later":[]}"#).unwrap();
        assert_eq!(start.version, (1, 5));
        let error = parse::<Start>(br#"{"magic":"farhaul-embedded","version":[2,0]}"#).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
        assert!(
            error.message().contains("2.0") && error.message().contains("version 1"),
            "{error}"
        );
        assert_eq!(
            parse::<Start>(b"{}").unwrap_err().kind(),
            ErrorKind::Malformed
        );
    }
}
