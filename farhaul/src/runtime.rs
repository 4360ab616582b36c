//! The threads that drive a data set's fetches.

use std::{future::Future, sync::mpsc};

use loader_core::{Error, ErrorKind, Result};
use tokio::runtime::{Builder, Handle};

/// Two workers: they move bytes and wait, decoding has threads of its own.
const WORKERS: usize = 2;

/// A runtime that never blocks its owner: dropping it inside async code, on one of its own threads or at the exit of an
/// interpreter neither waits nor panics.
#[derive(Debug)]
pub(crate) struct Runtime {
    /// Taken only by `drop`.
    inner: Option<tokio::runtime::Runtime>,
    /// The process that has its threads: a forked child has not.
    process: u32,
}

impl Runtime {
    pub(crate) fn start() -> Result<Self> {
        let inner = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("farhaul-io")
            .enable_time()
            .build()
            .map_err(|error| {
                Error::io("the threads of the data set cannot be started", error).during("open")
            })?;
        Ok(Self {
            inner: Some(inner),
            process: std::process::id(),
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.inner
            .as_ref()
            .expect("only drop takes the runtime")
            .handle()
    }

    /// Refuses the child of a fork, in which every wait would be for ever.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let message =
            "the data set was opened before this process was forked, so its threads are not here";
        Err(Error::new(ErrorKind::Unavailable, message)
            .transient(false)
            .hint("open the data set again in the child process"))
    }

    /// Waits for a future that runs on the workers, from any thread: also from inside another runtime.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        self.check_process()?;
        let (sender, receiver) = mpsc::sync_channel(1);
        self.handle().spawn(async move {
            // Nobody waits any more where the caller's thread is gone.
            let _ = sender.send(future.await);
        });
        receiver.recv().map_err(|_| {
            Error::new(
                ErrorKind::Internal,
                "the work broke down before it had an answer",
            )
        })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            inner.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_wait_and_be_dropped_inside_another_runtime() {
        let outer = Builder::new_current_thread().build().unwrap();
        outer.block_on(async {
            let runtime = Runtime::start().unwrap();
            assert_eq!(runtime.wait(async { 7 }).unwrap(), 7);
            drop(runtime);
        });
    }

    #[test]
    fn it_can_be_dropped_on_one_of_its_own_threads() {
        let runtime = std::sync::Arc::new(Runtime::start().unwrap());
        let inside = std::sync::Arc::clone(&runtime);
        let (sender, receiver) = mpsc::channel();
        let (go, gate) = tokio::sync::oneshot::channel::<()>();
        runtime.handle().spawn(async move {
            let _ = gate.await;
            drop(inside);
            sender.send(()).unwrap();
        });
        drop(runtime);
        go.send(()).unwrap();
        receiver
            .recv_timeout(std::time::Duration::from_secs(10))
            .unwrap();
    }

    #[test]
    fn work_that_breaks_down_is_an_error_and_not_a_panic_of_the_caller() {
        let runtime = Runtime::start().unwrap();
        let error = runtime.wait(async { panic!("on purpose") }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
}
