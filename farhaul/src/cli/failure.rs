//! An error as JSON and as text.

use loader_core::Error;
use serde::Serialize;

/// What JSON says of an error. Every key is always there.
#[derive(Debug, Serialize)]
pub(super) struct Failure {
    kind: &'static str,
    operation: String,
    key: Option<String>,
    store: Option<String>,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// Wrong usage that was seen before anything ran.
    pub(super) fn usage(operation: String, message: String, hint: Option<String>) -> Self {
        Self {
            kind: "usage",
            operation,
            key: None,
            store: None,
            message,
            hint,
        }
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            kind: error.kind().name(),
            operation: error.operation().to_owned(),
            key: error.path().map(ToString::to_string),
            store: error.store().map(str::to_owned),
            message: with_causes(error),
            hint: error.advice().map(str::to_owned),
        }
    }
}

/// The bare message and what led to it: key and store have keys of their own.
fn with_causes(error: &Error) -> String {
    let mut message = error.message().to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}
