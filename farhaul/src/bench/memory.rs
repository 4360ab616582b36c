//! The memory of this process, watched while something else runs.

use std::{
    fs,
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::Duration,
};

/// Time between two looks.
const PERIOD: Duration = Duration::from_millis(20);

/// A thread that looks at `/proc/self/status` and keeps the largest values.
#[derive(Debug)]
pub(super) struct Watch {
    stop: mpsc::Sender<()>,
    /// `None` where the thread could not be started: then only two looks are taken.
    thread: Option<JoinHandle<(u64, u64)>>,
    first: (u64, u64),
}

impl Watch {
    pub(super) fn start() -> Self {
        let (stop, stopped) = mpsc::channel();
        let watch = move || {
            let mut peak = look();
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                peak = larger(peak, look());
            }
            larger(peak, look())
        };
        let thread = thread::Builder::new()
            .name("farhaul-memory".into())
            .spawn(watch)
            .ok();
        Self {
            stop,
            thread,
            first: look(),
        }
    }

    /// The most anonymous and shared memory, and the most memory mapped from files, bytes.
    pub(super) fn stop(self) -> (u64, u64) {
        drop(self.stop);
        let seen = self.thread.and_then(|thread| thread.join().ok());
        larger(self.first, seen.unwrap_or_else(look))
    }
}

fn larger(left: (u64, u64), right: (u64, u64)) -> (u64, u64) {
    (left.0.max(right.0), left.1.max(right.1))
}

/// Zeros where the system does not tell.
fn look() -> (u64, u64) {
    parse(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn parse(status: &str) -> (u64, u64) {
    let bytes = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kibibytes.unwrap_or(0) * 1024
    };
    (bytes("RssAnon") + bytes("RssShmem"), bytes("RssFile"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_read_in_bytes() {
        let status = "VmRSS:\t    9 kB\nRssAnon:\t    1000 kB\nRssFile:\t      30 kB\nRssShmem:\t       4 kB\n";
        assert_eq!(parse(status), (1004 * 1024, 30 * 1024));
        assert_eq!(parse(""), (0, 0));
    }

    #[test]
    fn memory_that_comes_and_goes_is_seen() {
        let watch = Watch::start();
        let before = look().0;
        let block = vec![1_u8; 64 << 20];
        thread::sleep(PERIOD * 10);
        assert_eq!(block[block.len() - 1], 1);
        drop(block);
        assert!(watch.stop().0 >= before + (60 << 20));
    }
}
