//! Ctrl-C: every command ends with 130 and says what it had done.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Child,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{Ran, bytes, farhaul, photographs, run, send, text, wait_for_handler};

/// Until some samples are written, or the child has ended.
fn wait_for_samples(store: &Path, child: &mut Child) {
    let begun = Instant::now();
    let written = || fs::metadata(store.join("data.mdb")).map_or(0, |file| file.len());
    while written() < 1_000_000 && child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_mins(1));
        thread::sleep(Duration::from_millis(1));
    }
}

/// So many names of one file, which takes no room on the disk where it is sparse.
fn links(count: usize, nbytes: u64) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir_all(source.join("a")).unwrap();
    let first = folder.path().join("first");
    fs::write(&first, bytes(1, 100)).unwrap();
    let file = fs::File::options().write(true).open(&first).unwrap();
    file.set_len(nbytes).unwrap();
    for number in 0..count {
        fs::hard_link(&first, source.join(format!("a/{number:05}.jpg"))).unwrap();
    }
    (folder, source)
}

/// A command is taken to be at work some time after its start.
fn soon() -> impl Fn() -> bool {
    let begun = Instant::now();
    move || begun.elapsed() > Duration::from_secs(1)
}

/// Starts a command, waits until it is at work, interrupts it, and gives what it answered within five seconds.
fn interrupted(arguments: &[&str], is_at_work: impl Fn() -> bool) -> Ran {
    let mut child = farhaul(arguments).spawn().unwrap();
    wait_for_handler(&mut child);
    let begun = Instant::now();
    while !is_at_work() {
        assert!(child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_mins(1));
        thread::sleep(Duration::from_millis(1));
    }
    send(&child, Signal::INT);
    let begun = Instant::now();
    let ran = Ran::from(child.wait_with_output().unwrap()).exits(130);
    assert!(begun.elapsed() < Duration::from_secs(5));
    ran
}

#[test]
fn ctrl_c_ends_an_ingest_with_130_and_a_rerun_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (source, store) = (folder.path().join("source"), folder.path().join("store"));
    photographs(&source, 3000, 30_000);
    let mut child = farhaul(["ingest", text(&source), "--to", text(&store), "--json"])
        .spawn()
        .unwrap();
    wait_for_samples(&store, &mut child);
    send(&child, Signal::INT);
    let begun = Instant::now();
    let ran = Ran::from(child.wait_with_output().unwrap()).exits(130);
    assert!(begun.elapsed() < Duration::from_secs(5));
    let object = ran.json();
    assert_eq!(object["error"]["kind"], "cancelled");
    assert!(
        object["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("goes on from there")
    );
    let written = object["samples"].as_u64().unwrap();
    run(["info", text(&store)]).exits(3);
    let again = run(["ingest", text(&source), "--to", text(&store), "--json"])
        .exits(0)
        .json();
    assert_eq!(again["skipped"].as_u64().unwrap(), written);
    assert_eq!(again["samples"].as_u64().unwrap(), 3000 - written);
}

#[test]
fn ctrl_c_ends_a_bench_whose_consumer_is_slow() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    photographs(&source, 400, 1000);
    let arguments = [
        "bench",
        text(&source),
        "--batch",
        "4",
        "--epochs",
        "1000",
        "--think-ms",
        "20",
        "--json",
    ];
    let mut child = farhaul(arguments).spawn().unwrap();
    wait_for_handler(&mut child);
    thread::sleep(Duration::from_millis(700));
    send(&child, Signal::INT);
    let begun = Instant::now();
    let ran = Ran::from(child.wait_with_output().unwrap()).exits(130);
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(ran.json()["samples"].as_u64().unwrap() > 0, "{ran:?}");
}

#[test]
fn ctrl_c_ends_a_bench_in_the_middle_of_a_long_thought() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    photographs(&source, 8, 100);
    let arguments = ["bench", text(&source), "--think-ms", "60000", "--json"];
    let object = interrupted(&arguments, soon()).json();
    assert_eq!(
        (&object["samples"], &object["error"]["kind"]),
        (&json!(8), &json!("cancelled"))
    );
}

#[test]
fn ctrl_c_ends_a_verification_which_says_how_far_it_was() {
    let (_folder, source) = links(3000, 8 << 20);
    let ran = interrupted(&["verify", text(&source), "--json"], soon());
    let object = ran.json();
    assert_eq!(object["error"]["kind"], "cancelled", "{object}");
    let samples = object["samples"].as_u64().unwrap();
    assert!((1..3000).contains(&samples), "{object}");
    assert_eq!(object["ok"], samples);
}

#[test]
fn ctrl_c_ends_an_inspection_after_the_last_whole_line() {
    let (_folder, source) = links(3000, 8 << 20);
    let lines = interrupted(&["inspect", text(&source), "--json"], soon()).lines();
    let (last, samples) = lines.split_last().unwrap();
    assert_eq!(last["error"]["kind"], "cancelled", "{last}");
    assert!((1..3000).contains(&samples.len()), "{}", samples.len());
    assert!(samples.iter().all(|line| line["outcome"] == "ok"));
}

#[test]
fn ctrl_c_ends_an_export_that_leaves_whole_files_alone() {
    let (folder, source) = links(4000, 256 << 10);
    let to = folder.path().join("to");
    let first = to.join("a/00000.jpg");
    let arguments = ["export", text(&source), "--to", text(&to), "--json"];
    let object = interrupted(&arguments, || first.exists()).json();
    assert_eq!(object["error"]["kind"], "cancelled", "{object}");
    let samples = object["samples"].as_u64().unwrap();
    assert!((1..4000).contains(&samples), "{object}");
    let files: Vec<_> = fs::read_dir(to.join("a"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    assert!(files.len() as u64 >= samples);
    for file in files {
        assert_eq!(file.metadata().unwrap().len(), 256 << 10, "{file:?}");
    }
}

/// An inspection whose lines nobody reads: it waits in the middle of one, where it sees no wish to stop.
fn stuck() -> (TempDir, Child) {
    let (folder, source) = links(3000, 100);
    let mut child = farhaul(["inspect", text(&source), "--json"])
        .spawn()
        .unwrap();
    wait_for_handler(&mut child);
    // What it sleeps on is the pipe once that is full.
    thread::sleep(Duration::from_secs(2));
    assert!(child.try_wait().unwrap().is_none());
    (folder, child)
}

fn ends_within(child: &mut Child, time: Duration) {
    let begun = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < time, "{:?}", begun.elapsed());
}

#[test]
fn ctrl_c_ends_a_command_that_waits_for_the_reader_of_its_answer() {
    let (_folder, mut child) = stuck();
    send(&child, Signal::INT);
    ends_within(&mut child, Duration::from_secs(5));
}

#[test]
fn a_second_ctrl_c_ends_the_process_at_once() {
    let (_folder, mut child) = stuck();
    send(&child, Signal::INT);
    thread::sleep(Duration::from_millis(200));
    assert!(child.try_wait().unwrap().is_none());
    send(&child, Signal::INT);
    ends_within(&mut child, Duration::from_secs(1));
}
