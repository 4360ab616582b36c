//! From the one error type of farhaul to Python's classes, which are written in Python.

use farhaul::{Error, ErrorKind};
use pyo3::prelude::*;

/// Imports the classes and picks one by kind, from one list.
macro_rules! classes {
    ($($kind:ident => $class:ident,)*) => {
        mod class {
            pyo3::import_exception!(farhaul.errors, FarhaulError);
            $(pyo3::import_exception!(farhaul.errors, $class);)*
        }

        /// The exception for an error: its class says the kind, its attributes the rest.
        pub(crate) fn raise(error: Error) -> PyErr {
            let kind = error.kind();
            let arguments = arguments(error);
            match kind {
                $(ErrorKind::$kind => PyErr::new::<class::$class, _>(arguments),)*
                _ => PyErr::new::<class::FarhaulError, _>(arguments),
            }
        }
    };
}

classes! {
    Usage => UsageError,
    NotFound => NotFound,
    Vanished => SampleVanished,
    Changed => SampleChanged,
    Corrupt => CorruptSample,
    Empty => EmptySample,
    Truncated => TruncatedSample,
    Malformed => Malformed,
    Unsupported => Unsupported,
    TooLarge => TooLarge,
    Conflict => Conflict,
    MissingPart => MissingPart,
    Version => UnknownVersion,
    Incompatible => Incompatible,
    Timeout => Timeout,
    Overloaded => Overloaded,
    Unavailable => Unavailable,
    Unauthenticated => Unauthenticated,
    PermissionDenied => PermissionDenied,
    DiskFull => DiskFull,
    TooManyErrors => TooManyErrors,
    Cancelled => Cancelled,
    Io => IoError,
    Internal => InternalError,
}

/// What `FarhaulError.__init__` takes: message, operation, key, store, hint, transient.
type Arguments = (
    String,
    &'static str,
    Option<String>,
    Option<String>,
    Option<String>,
    bool,
);

#[expect(clippy::needless_pass_by_value, reason = "it is the end of the error")]
fn arguments(error: Error) -> Arguments {
    let key = error.path().map(ToString::to_string);
    let store = error.store().map(str::to_owned);
    let hint = error.advice().map(str::to_owned);
    (
        error.to_string(),
        error.operation(),
        key,
        store,
        hint,
        error.is_transient(),
    )
}
