//! How the operating system's answers become typed errors.

use std::{fs::Metadata, io, os::unix::ffi::OsStrExt, path::Path, time::SystemTime};

use loader_core::{Error, ErrorKind, identity::display_bytes};
use rustix::io::Errno;

/// What is wrong with one sample, known since the listing.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) kind: ErrorKind,
    pub(crate) message: Box<str>,
}

impl Problem {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Box<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    pub(crate) fn error(&self, path: &[u8]) -> Error {
        Error::new(self.kind, self.message.to_string()).at(path)
    }
}

/// A path as it is shown in messages.
pub(crate) fn shown(path: &Path) -> String {
    display_bytes(path.as_os_str().as_bytes())
}

/// A failure while the source is listed: it ends the listing.
pub(crate) fn listing(action: &str, path: &Path, error: io::Error) -> Error {
    let message = format!("{action} {}", shown(path));
    if is_out_of_files(&error) {
        return out_of_files(message, error);
    }
    Error::io(message, error)
}

/// A failure while a listed file is read: it belongs to the samples of that file.
pub(crate) fn reading(path: &Path, error: io::Error) -> Error {
    use io::ErrorKind as Io;
    let file = shown(path);
    match error.kind() {
        _ if leads_nowhere(&error) => Error::new(
            ErrorKind::Vanished,
            format!("{file} was listed but is gone"),
        )
        .caused_by(error),
        Io::UnexpectedEof | Io::IsADirectory | Io::WouldBlock => changed(path),
        // A pipe stands where the file was.
        _ if is_one_of(&error, &[Errno::SPIPE]) => changed(path),
        _ if is_out_of_files(&error) => out_of_files(format!("cannot open {file}"), error),
        _ => Error::io(format!("cannot read {file}"), error),
    }
}

/// A file that is not what it was when it was listed.
pub(crate) fn changed(path: &Path) -> Error {
    Error::new(
        ErrorKind::Changed,
        format!("{} is not what it was when it was listed", shown(path)),
    )
    .hint("open the data set again, and write new files beside the old ones instead of over them")
}

/// True where there is nothing at a path, or no way to it.
pub(crate) fn leads_nowhere(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::NOENT, Errno::NOTDIR, Errno::LOOP])
}

fn is_out_of_files(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::MFILE, Errno::NFILE])
}

fn is_one_of(error: &io::Error, errnos: &[Errno]) -> bool {
    errnos
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn out_of_files(message: String, error: io::Error) -> Error {
    Error::new(ErrorKind::Overloaded, message)
        .caused_by(error)
        .hint("raise the limit on open files: ulimit -n 65536")
}

/// The system gives no more threads.
pub(crate) fn no_thread(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, "a thread cannot be started")
        .caused_by(error)
        .hint("raise the limit of processes and threads: `ulimit -u`, or the limit of pids of the container")
}

/// When a file was last changed, in nanoseconds since 1970; what lies outside 1677 to 2262 is taken as the nearest of the two.
pub(crate) fn nanoseconds(metadata: &Metadata) -> i64 {
    let Ok(moment) = metadata.modified() else {
        return 0;
    };
    match moment.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_told_apart() {
        let kind = |errno: Errno| {
            reading(
                Path::new("a.jpg"),
                io::Error::from_raw_os_error(errno.raw_os_error()),
            )
            .kind()
        };
        assert_eq!(kind(Errno::NOENT), ErrorKind::Vanished);
        assert_eq!(kind(Errno::LOOP), ErrorKind::Vanished);
        assert_eq!(kind(Errno::ACCESS), ErrorKind::PermissionDenied);
        assert_eq!(kind(Errno::SPIPE), ErrorKind::Changed);
        assert_eq!(kind(Errno::MFILE), ErrorKind::Overloaded);
        assert_eq!(kind(Errno::IO), ErrorKind::Io);
    }
}
