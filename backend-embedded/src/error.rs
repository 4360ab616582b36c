//! LMDB's errors in farhaul's words. No error of the driver leaves the crate otherwise.

use std::io;

use heed::MdbError;
use loader_core::{Error, ErrorKind};

/// The operating system's "file too large": a limit on file sizes, which to the user is a full disk.
const EFBIG: i32 = 27;

/// What can be done about a store that has reached its limit, which is beyond what most disks hold.
pub(crate) const FULL: &str = "ingest the rest into a second store";

/// What LMDB said, under the message of what was being done.
pub(crate) fn from_lmdb(message: &'static str, error: heed::Error) -> Error {
    let (kind, hint) = match &error {
        heed::Error::Io(_) => {
            let heed::Error::Io(error) = error else {
                unreachable!("matched one line above")
            };
            return from_io(message, error);
        }
        heed::Error::Mdb(error) => match error {
            MdbError::MapFull => (ErrorKind::DiskFull, Some(FULL)),
            MdbError::ReadersFull => (
                ErrorKind::Overloaded,
                Some("more than 1,024 reads of this store are under way at once"),
            ),
            MdbError::Corrupted | MdbError::PageNotFound | MdbError::Panic => (
                ErrorKind::Corrupt,
                Some("`farhaul verify` tells which samples are damaged"),
            ),
            MdbError::Invalid => (ErrorKind::Malformed, Some("data.mdb is no LMDB file")),
            MdbError::VersionMismatch => (
                ErrorKind::Version,
                Some("data.mdb was written by another version of LMDB"),
            ),
            _ => (ErrorKind::Io, None),
        },
        _ => (ErrorKind::Internal, None),
    };
    let error = Error::new(kind, message).caused_by(error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// A failure of the file system.
pub(crate) fn from_io(
    message: impl Into<std::borrow::Cow<'static, str>>,
    error: io::Error,
) -> Error {
    if error.raw_os_error() == Some(EFBIG) {
        return Error::new(ErrorKind::DiskFull, message).caused_by(error);
    }
    Error::io(message, error)
}

/// True for errors after which less access may still be had: a full disk, too, has no place for a lock file.
pub(crate) fn is_denied(error: &heed::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let heed::Error::Io(error) = error else {
        return false;
    };
    matches!(
        error.kind(),
        PermissionDenied | ReadOnlyFilesystem | StorageFull | QuotaExceeded
    )
}
