//! What a data set is.

use std::collections::BTreeMap;

use loader_core::Fingerprint;
use serde::Serialize;

use crate::dataset::Dataset;

/// A data set in figures.
///
/// Its default says that nothing is known: no samples, and a fingerprint of zeros, which no data set has.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct InfoReport {
    /// Number of samples.
    pub samples: u64,
    /// Payload bytes of all of them.
    pub bytes: u64,
    /// Class names by label.
    pub classes: Vec<String>,
    /// Names and types of the fields.
    pub fields: BTreeMap<String, String>,
    /// Names the data set in every store.
    pub fingerprint: Fingerprint,
}

/// Says what a data set is; costs nothing.
pub fn info(data: &Dataset) -> InfoReport {
    let summary = data.summary();
    InfoReport {
        samples: summary.samples,
        bytes: summary.bytes,
        classes: summary.classes.to_vec(),
        fields: (*summary.fields).clone(),
        fingerprint: summary.fingerprint,
    }
}
