//! How much memory is this process's own.

use std::fs;

/// Anonymous and shared memory of this process now, bytes; mapped files are not counted. 0 where the system does not say.
pub(crate) fn own_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kibibytes = |line: &str| {
        line.split_whitespace()
            .nth(1)
            .and_then(|number| number.parse::<u64>().ok())
    };
    let ours = |line: &&str| line.starts_with("RssAnon:") || line.starts_with("RssShmem:");
    status
        .lines()
        .filter(ours)
        .filter_map(kibibytes)
        .sum::<u64>()
        * 1024
}
