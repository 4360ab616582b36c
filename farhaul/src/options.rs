//! The options of opening a data set.

use loader_core::wrap::{retry::RetryConfig, timeout::TimeoutConfig};
use serde::{Deserialize, Serialize};

/// How a data set is opened. Every field has a default that fits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct OpenOptions {
    /// What a bare path or a folder holds: `embedded`, `folder` (image files), `webdataset` (tars), and for an ingest `mds`.
    /// Default: told by looking.
    pub format: Option<String>,
    /// How often, and how soon, what failed for a passing reason is asked for again. Default: 4 attempts. Only over a distance.
    pub retry: RetryConfig,
    /// How long a request may take before it counts as lost. Default: 30 s. Only over a distance.
    pub timeout: TimeoutConfig,
}

impl OpenOptions {
    /// The defaults with a format; `None` tells it by looking.
    #[must_use]
    pub fn with_format(mut self, format: Option<String>) -> Self {
        self.format = format;
        self
    }
}
