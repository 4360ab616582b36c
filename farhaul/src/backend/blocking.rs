//! Work that blocks, off the threads that drive fetches.

use futures_util::{FutureExt, future::BoxFuture};
use loader_core::{Error, ErrorKind, Result};

/// Opening that blocks (it walks, checks or waits for a lock), on a thread where it holds up no fetch.
pub(crate) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> BoxFuture<'static, Result<T>> {
    let stopped =
        |error| Error::new(ErrorKind::Internal, "the store was not opened").caused_by(error);
    // Spawned at the first poll, which is on a runtime; a caller may not be on one.
    async move { tokio::task::spawn_blocking(work).await.map_err(stopped)? }.boxed()
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
