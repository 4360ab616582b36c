//! The one error type of farhaul: what kind, whether a retry may help, and where it happened.

use std::{borrow::Cow, error::Error as StdError, fmt, sync::Arc};

use serde::Serialize;

use crate::identity::SamplePath;

/// Every fallible function of farhaul returns this.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in the words a caller branches on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// An option, URI or argument makes no sense.
    Usage,
    /// A data set, folder, table or bucket is not there.
    NotFound,
    /// A row that the manifest names is gone from the store.
    Vanished,
    /// A source file is not what it was when it was listed.
    Changed,
    /// Stored bytes do not have the checksum that was recorded for them.
    Corrupt,
    /// A sample has no bytes.
    Empty,
    /// An image or archive ends before it is complete.
    Truncated,
    /// Bytes that are not what their format demands.
    Malformed,
    /// A format or feature that is deliberately not read.
    Unsupported,
    /// A limit on pixels, bytes or members was passed.
    TooLarge,
    /// Two things claim one name (a member twice in a shard, two shards of one name).
    Conflict,
    /// A part that a sample must have (image, label) is missing.
    MissingPart,
    /// A lasting or wire form has a version that this build does not know.
    Version,
    /// A saved state does not fit the data set, ranks or batch size it is loaded into.
    Incompatible,
    /// No answer before the deadline.
    Timeout,
    /// The other side says that it has too much to do.
    Overloaded,
    /// The other side cannot be reached, or went away.
    Unavailable,
    /// Credentials are missing, wrong or ended.
    Unauthenticated,
    /// Not allowed, by the file system or by the server.
    PermissionDenied,
    /// No space left, locally or at the store.
    DiskFull,
    /// More bad samples than `max_errors` allows.
    TooManyErrors,
    /// The caller stopped the work.
    Cancelled,
    /// Any other failure of the operating system.
    Io,
    /// A promise inside farhaul was broken: please report it.
    Internal,
}

impl ErrorKind {
    /// The kind's name in JSON and in messages: lower case with underscores.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Vanished => "vanished",
            Self::Changed => "changed",
            Self::Corrupt => "corrupt",
            Self::Empty => "empty",
            Self::Truncated => "truncated",
            Self::Malformed => "malformed",
            Self::Unsupported => "unsupported",
            Self::TooLarge => "too_large",
            Self::Conflict => "conflict",
            Self::MissingPart => "missing_part",
            Self::Version => "version",
            Self::Incompatible => "incompatible",
            Self::Timeout => "timeout",
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::Unauthenticated => "unauthenticated",
            Self::PermissionDenied => "permission_denied",
            Self::DiskFull => "disk_full",
            Self::TooManyErrors => "too_many_errors",
            Self::Cancelled => "cancelled",
            Self::Io => "io",
            Self::Internal => "internal",
        }
    }

    /// True where the bytes of one sample are at fault, so that `on_error` may skip or substitute it.
    pub fn is_of_one_sample(self) -> bool {
        matches!(
            self,
            Self::Vanished
                | Self::Changed
                | Self::Corrupt
                | Self::Empty
                | Self::Truncated
                | Self::Malformed
                | Self::Unsupported
                | Self::TooLarge
                | Self::Conflict
                | Self::MissingPart
        )
    }

    fn is_transient(self) -> bool {
        matches!(self, Self::Timeout | Self::Overloaded | Self::Unavailable)
    }
}

/// What went wrong, with the sample, the store and the advice that belong to it.
///
/// One word wide and cheap to clone. `Display` is one line; `Debug` shows everything but never a secret: stores put no
/// credentials into messages.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    transient: bool,
    operation: &'static str,
    message: Cow<'static, str>,
    path: Option<SamplePath>,
    store: Option<String>,
    hint: Option<Cow<'static, str>>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind`; `message` is lower case and has no full stop. Whether it is transient follows from the kind.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Arc::new(Inner {
            kind,
            transient: kind.is_transient(),
            operation: "",
            message: message.into(),
            path: None,
            store: None,
            hint: None,
            source: None,
        }))
    }

    /// A failure of the operating system, its kind taken from `error`.
    pub fn io(message: impl Into<Cow<'static, str>>, error: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match error.kind() {
            Io::NotFound => ErrorKind::NotFound,
            Io::PermissionDenied | Io::ReadOnlyFilesystem => ErrorKind::PermissionDenied,
            Io::StorageFull | Io::QuotaExceeded => ErrorKind::DiskFull,
            Io::TimedOut => ErrorKind::Timeout,
            Io::UnexpectedEof => ErrorKind::Truncated,
            Io::ConnectionRefused
            | Io::ConnectionReset
            | Io::ConnectionAborted
            | Io::BrokenPipe => ErrorKind::Unavailable,
            _ => ErrorKind::Io,
        };
        Self::new(kind, message).caused_by(error)
    }

    /// Says during which operation (`"ingest"`, `"fetch"`, …) it happened, unless that is already said.
    #[must_use]
    pub fn during(mut self, operation: &'static str) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        if inner.operation.is_empty() {
            inner.operation = operation;
        }
        self
    }

    /// Names the sample, unless one is already named.
    #[must_use]
    pub fn at(mut self, path: impl Into<SamplePath>) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        if inner.path.is_none() {
            inner.path = Some(path.into());
        }
        self
    }

    /// Names the store by its URI without credentials, unless one is already named.
    #[must_use]
    pub fn in_store(mut self, store: impl fmt::Display) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        if inner.store.is_none() {
            inner.store = Some(store.to_string());
        }
        self
    }

    /// Says what the reader can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        Arc::make_mut(&mut self.0).hint = Some(hint.into());
        self
    }

    /// Keeps the error that led to this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.0).source = Some(Arc::new(source));
        self
    }

    /// Overrides whether a retry may help.
    #[must_use]
    pub fn transient(mut self, transient: bool) -> Self {
        Arc::make_mut(&mut self.0).transient = transient;
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// True where the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        self.0.transient
    }

    /// True where one sample is at fault and the others are not, so that `on_error` may skip or substitute it: its bytes are
    /// ([`ErrorKind::is_of_one_sample`]), or it is named and may not be read, as a file that belongs to somebody else.
    pub fn is_of_one_sample(&self) -> bool {
        let is_denied = self.0.kind == ErrorKind::PermissionDenied && self.0.path.is_some();
        is_denied || self.0.kind.is_of_one_sample()
    }

    /// The operation during which it happened; empty if nobody said.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The bare message, without path, store and cause.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The sample it is about.
    pub fn path(&self) -> Option<&SamplePath> {
        self.0.path.as_ref()
    }

    /// The store it is about.
    pub fn store(&self) -> Option<&str> {
        self.0.store.as_deref()
    }

    /// What the reader can do about it.
    pub fn advice(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        if !inner.operation.is_empty() {
            write!(out, "{}: ", inner.operation)?;
        }
        out.write_str(&inner.message)?;
        if let Some(path) = &inner.path {
            write!(out, " (sample {path})")?;
        }
        if let Some(store) = &inner.store {
            write!(out, " (store {store})")?;
        }
        if let Some(source) = &inner.source {
            write!(out, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        out.debug_struct("Error")
            .field("kind", &inner.kind)
            .field("transient", &inner.transient)
            .field("operation", &inner.operation)
            .field("message", &inner.message)
            .field("path", &inner.path)
            .field("store", &inner.store)
            .field("hint", &inner.hint)
            .field("source", &inner.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_ref()
            .map(|source| &**source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_one_line_and_names_sample_and_store() {
        let error = Error::new(ErrorKind::Corrupt, "checksum differs")
            .during("fetch")
            .at("cat/1.jpg")
            .in_store("embedded:set");
        assert_eq!(
            error.to_string(),
            "fetch: checksum differs (sample cat/1.jpg) (store embedded:set)"
        );
    }

    #[test]
    fn the_first_name_given_stays() {
        let error = Error::new(ErrorKind::Corrupt, "x")
            .at("first")
            .at("second")
            .during("a")
            .during("b");
        assert_eq!(error.path().unwrap().to_string(), "first");
        assert_eq!(error.operation(), "a");
    }

    #[test]
    fn a_permission_is_of_one_sample_where_one_is_named() {
        let denied = Error::new(ErrorKind::PermissionDenied, "cannot read");
        assert!(!denied.is_of_one_sample());
        assert!(denied.at("cat/1.jpg").is_of_one_sample());
        assert!(Error::new(ErrorKind::Corrupt, "x").is_of_one_sample());
        assert!(
            !Error::new(ErrorKind::DiskFull, "x")
                .at("a")
                .is_of_one_sample()
        );
    }

    #[test]
    fn an_error_is_one_word() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
