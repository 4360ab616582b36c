//! Memory stays bounded, however large the source.

use std::{fs, thread, time::Duration};

use crate::support::{bytes, farhaul, text};

/// A figure of a process in bytes; 0 once it has ended.
fn figure(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

#[test]
fn an_ingest_of_600_mb_holds_less_than_half_of_it() {
    const FILES: u64 = 600;
    let folder = tempfile::tempdir().unwrap();
    let (source, store) = (folder.path().join("source"), folder.path().join("store"));
    fs::create_dir_all(source.join("a")).unwrap();
    let first = folder.path().join("first");
    fs::write(&first, bytes(1, 1_000_000)).unwrap();
    for number in 0..FILES {
        // Samples of one content are payloads of their own, since their paths differ.
        fs::hard_link(&first, source.join(format!("a/{number}.jpg"))).unwrap();
    }
    let mut child = farhaul(["ingest", text(&source), "--to", text(&store)])
        .spawn()
        .unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(figure(child.id(), "VmHWM"));
        thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
    assert!(peak > 1_000_000, "it was seen");
    assert!(fs::metadata(store.join("data.mdb")).unwrap().len() > FILES * 1_000_000);
    // 32 MB read ahead, 32 MB waiting and as much in the store's transaction; the system's allocator keeps as much again.
    assert!(peak < 300_000_000, "{peak} bytes");
}
