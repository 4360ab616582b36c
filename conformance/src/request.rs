//! Taking a fetch request apart into its targets.

use loader_core::{FetchRequest, SampleKey, Targets};

/// What a target of a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// A row of the data set.
    Row(u64),
    /// A payload.
    Key(SampleKey),
}

impl From<u64> for Name {
    fn from(row: u64) -> Self {
        Self::Row(row)
    }
}

impl From<SampleKey> for Name {
    fn from(key: SampleKey) -> Self {
        Self::Key(key)
    }
}

/// The names of all targets, in the request's order.
pub fn names(request: &FetchRequest) -> Vec<Name> {
    match &request.targets {
        Targets::Rows { rows, .. } => rows.iter().copied().map(Name::Row).collect(),
        Targets::Keys(keys) => keys.iter().copied().map(Name::Key).collect(),
    }
}

/// The same request for one of its targets alone.
///
/// # Panics
/// Where the request has no such target, as a slice does.
pub fn one_target(request: &FetchRequest, target: usize) -> FetchRequest {
    let targets = match &request.targets {
        Targets::Rows { fingerprint, rows } => Targets::Rows {
            fingerprint: *fingerprint,
            rows: vec![rows[target]],
        },
        Targets::Keys(keys) => Targets::Keys(vec![keys[target]]),
    };
    let count = request.targets.len().max(1) as u64;
    let expected_bytes = request.expected_bytes.div_ceil(count);
    FetchRequest {
        targets,
        expected_bytes,
        ..request.clone()
    }
}
