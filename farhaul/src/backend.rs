//! How the stores of this machine are told apart, and how each crate's store is made from an address.

use std::path::Path;

use futures_util::{FutureExt, future::BoxFuture};
use loader_core::{Error, ErrorKind, Result};

use crate::{
    locate::not_found,
    options::OpenOptions,
    scheme::{EMBEDDED, FOLDER, Scheme},
};

#[cfg(feature = "embedded")]
pub(crate) mod embedded;
#[cfg(feature = "folder")]
pub(crate) mod folder;

/// The names that `format` knows, and the scheme that each belongs to.
const FORMATS: [(&str, Scheme); 4] = [
    ("embedded", EMBEDDED),
    ("folder", FOLDER),
    ("webdataset", FOLDER),
    ("mds", FOLDER),
];

/// The scheme of the store that lies at a bare path: as `format` says, else told by looking.
pub(crate) fn of_path(path: &Path, options: &OpenOptions) -> Result<Scheme> {
    if let Some(format) = &options.format {
        return match FORMATS.iter().find(|(name, _)| name == format) {
            Some((_, scheme)) => Ok(*scheme),
            None => Err(unknown_format(format)),
        };
    }
    Ok(if is_embedded(path) { EMBEDDED } else { FOLDER })
}

/// True where an embedded store lies at a path: LMDB's file is in it.
pub(crate) fn is_embedded(path: &Path) -> bool {
    path.join("data.mdb").is_file()
}

/// Refuses a path that is not there, unless it is a brace pattern of tars.
pub(crate) fn check_there(path: &Path) -> Result<()> {
    let is_pattern = path.as_os_str().as_encoded_bytes().contains(&b'{');
    if is_pattern || path.exists() {
        Ok(())
    } else {
        Err(not_found(path))
    }
}

/// Opening that blocks (it walks, checks or waits for a lock), on a thread where it holds up no fetch.
pub(crate) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> BoxFuture<'static, Result<T>> {
    let stopped =
        |error| Error::new(ErrorKind::Internal, "the store was not opened").caused_by(error);
    // Spawned at the first poll, which is on a runtime; a caller may not be on one.
    async move { tokio::task::spawn_blocking(work).await.map_err(stopped)? }.boxed()
}

pub(crate) fn unknown_format(format: &str) -> Error {
    let names = FORMATS.map(|(name, _)| name);
    let error =
        Error::new(ErrorKind::Usage, format!("no format is called {format:?}")).during("open");
    let guess = crate::distance::nearest(format, names)
        .map_or(String::new(), |name| format!("did you mean {name}? "));
    error.hint(format!("{guess}the formats are {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_store_is_opened_off_the_threads_that_drive_its_fetches() {
        let runtime = crate::runtime::Runtime::start().unwrap();
        let opened = blocking(|| Ok(thread::current().id()));
        let ids = runtime.wait(async { (thread::current().id(), opened.await) });
        let (driver, opener) = ids.unwrap();
        assert_ne!(driver, opener.unwrap());
        let broken = runtime.wait(blocking(|| -> Result<()> { panic!("on purpose") }));
        assert_eq!(broken.unwrap().unwrap_err().kind(), ErrorKind::Internal);
    }
}
