//! The threads that drive a data set's fetches.

use std::{
    fs,
    future::Future,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use loader_core::{Error, ErrorKind, Result};
use tokio::runtime::{Builder, Handle};

/// Two workers: they move bytes and wait, decoding has threads of its own.
const WORKERS: usize = 2;
/// Threads that have to be startable at once: the workers, the one that starts them, and two for what blocks.
const THREADS: usize = WORKERS + 3;
/// How long threads that were started may take to run.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the system may take to forget a thread that has ended.
const FORGETTING: Duration = Duration::from_millis(200);
/// Threads for what blocks stay as long as the runtime: where no other can be started any more, work waits for them and not
/// for ever.
const KEPT: Duration = Duration::from_hours(24 * 365);

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
        check_threads()?;
        let (sender, started) = mpsc::sync_channel(1);
        let (answer, answered) = mpsc::sync_channel(1);
        let start = move || {
            let inner = build();
            if let Ok(inner) = &inner {
                inner.handle().spawn_blocking(move || answer.send(()));
            }
            // Nobody waits any more where it took too long.
            let _ = sender.send(inner);
        };
        // On a thread of its own: where others took the last threads meanwhile, building panics and waits for ever.
        thread::Builder::new()
            .name("farhaul-start".into())
            .spawn(start)
            .map_err(no_thread)?;
        let late = |_| too_few_threads();
        let runtime = Self {
            inner: Some(
                started
                    .recv_timeout(PATIENCE)
                    .map_err(late)?
                    .map_err(no_thread)?,
            ),
            process: std::process::id(),
        };
        // A thread for what blocks runs from now on.
        answered.recv_timeout(PATIENCE).map_err(late)?;
        Ok(runtime)
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

fn build() -> io::Result<tokio::runtime::Runtime> {
    Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("farhaul-io")
        .thread_keep_alive(KEPT)
        .enable_time()
        .build()
}

/// Starts as many threads at once as a runtime needs, and ends them: tokio itself panics where it can have none.
fn check_threads() -> Result<()> {
    let gate = Mutex::new(());
    let probes: Vec<PathBuf> = thread::scope(|scope| -> Result<_> {
        let closed = gate.lock();
        let probe = || {
            drop(gate.lock());
            fs::read_link("/proc/thread-self").ok()
        };
        let probes: Vec<_> = (0..THREADS)
            .map(|_| thread::Builder::new().spawn_scoped(scope, probe))
            .collect::<io::Result<_>>()
            .map_err(no_thread)?;
        drop(closed);
        let ended = probes.into_iter().filter_map(|probe| probe.join().ok()?);
        Ok(ended.collect())
    })?;
    // A thread counts for a moment longer than it can be waited for.
    let is_there = |probe: &PathBuf| Path::new("/proc").join(probe).exists();
    let begun = Instant::now();
    while probes.iter().any(is_there) && begun.elapsed() < FORGETTING {
        thread::sleep(Duration::from_micros(50));
    }
    Ok(())
}

/// The system gives no more threads.
pub(crate) fn no_thread(error: io::Error) -> Error {
    too_few_threads().caused_by(error)
}

fn too_few_threads() -> Error {
    Error::new(ErrorKind::Io, "a thread cannot be started")
        .hint("raise the limit of processes and threads: `ulimit -u`, or the limit of pids of the container")
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
        receiver.recv_timeout(Duration::from_secs(10)).unwrap();
    }

    #[test]
    fn work_that_breaks_down_is_an_error_and_not_a_panic_of_the_caller() {
        let runtime = Runtime::start().unwrap();
        let error = runtime.wait(async { panic!("on purpose") }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
}
