//! Ingests that are killed, interrupted or find a cut store.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::Child,
    thread,
    time::{Duration, Instant},
};

use conformance::random::Random;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Ran, assert_same_tree, farhaul, photographs, run, text};

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // A process that has just ended needs no signal.
    let _ = kill_process(pid, signal);
}

/// Until the program listens for Ctrl-C: before, the signal would just end it.
fn wait_for_handler(child: &mut Child) {
    let begun = Instant::now();
    let listens = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 0b10 != 0)
    };
    while !listens(child.id()) {
        assert!(child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_mins(1));
        thread::sleep(Duration::from_millis(1));
    }
}

/// Until some samples are written, or the child has ended.
fn wait_for_samples(store: &Path, child: &mut Child) {
    let begun = Instant::now();
    let written = || fs::metadata(store.join("data.mdb")).map_or(0, |file| file.len());
    while written() < 1_000_000 && child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_mins(1));
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_ingest_that_is_killed_twenty_times_ends_with_exactly_the_sources_samples() {
    let folder = tempfile::tempdir().unwrap();
    let (source, store, out) = (
        folder.path().join("source"),
        folder.path().join("store"),
        folder.path().join("out"),
    );
    photographs(&source, 1500, 20_000);
    let begun = Instant::now();
    run([
        "ingest",
        text(&source),
        "--to",
        text(&folder.path().join("first")),
    ])
    .exits(0);
    let whole = begun.elapsed();

    let mut random = Random::new(20);
    let mut killed = 0;
    for _ in 0..20 {
        let mut child = farhaul(["ingest", text(&source), "--to", text(&store), "--json"])
            .spawn()
            .unwrap();
        thread::sleep(whole.mul_f64(random.fraction()));
        send(&child, Signal::KILL);
        killed += usize::from(child.wait().unwrap().signal() == Some(9));
        // Whatever is visible is whole.
        let seen = run(["verify", text(&store), "--json"]);
        match seen.code {
            Some(0) => assert_eq!(seen.json()["samples"], 1500),
            _ => assert_eq!(seen.exits(3).json()["error"]["kind"], "not_found"),
        }
    }
    assert!(killed >= 5, "only {killed} of 20 were killed under way");
    let done = run(["ingest", text(&source), "--to", text(&store), "--json"])
        .exits(0)
        .json();
    assert_eq!(
        done["samples"].as_u64().unwrap() + done["skipped"].as_u64().unwrap(),
        1500
    );
    assert_eq!(
        run(["verify", text(&store), "--json"]).exits(0).json()["ok"],
        1500
    );
    run(["export", text(&store), "--to", text(&out)]).exits(0);
    assert_same_tree(&source, &out);
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
fn a_second_ctrl_c_ends_the_process_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    photographs(&source, 8, 100);
    let mut child = farhaul([
        "bench",
        text(&source),
        "--batch",
        "1",
        "--think-ms",
        "60000",
    ])
    .spawn()
    .unwrap();
    wait_for_handler(&mut child);
    thread::sleep(Duration::from_millis(300));
    send(&child, Signal::INT);
    thread::sleep(Duration::from_millis(200));
    send(&child, Signal::INT);
    let begun = Instant::now();
    Ran::from(child.wait_with_output().unwrap()).exits(130);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_cut_store_is_a_typed_error_and_never_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let (source, store) = (folder.path().join("source"), folder.path().join("store"));
    photographs(&source, 200, 9000);
    run(["ingest", text(&source), "--to", text(&store)]).exits(0);
    for entry in fs::read_dir(&store).unwrap() {
        let file = entry.unwrap().path();
        if file.file_name().unwrap() == "lock.mdb" {
            continue;
        }
        let content = fs::read(&file).unwrap();
        let length = content.len();
        for cut in [
            0,
            1,
            100,
            4095,
            4096,
            8192,
            20_000,
            length / 2,
            length.saturating_sub(4097),
            length - 1,
        ] {
            fs::write(&file, &content[..cut.min(length - 1)]).unwrap();
            for command in ["info", "verify", "inspect", "bench"] {
                let ran = run([command, text(&store), "--json"]);
                assert!(
                    matches!(ran.code, Some(1 | 3)),
                    "{command} of {} cut to {cut}: {ran:?}",
                    file.display()
                );
                let last = ran.lines().pop().unwrap();
                let kind = last["error"]["kind"]
                    .as_str()
                    .or(last["error_kind"].as_str());
                let lists_it = command == "verify" && ran.code == Some(1);
                assert!(
                    lists_it || kind.is_some_and(|kind| kind != "internal"),
                    "{command} cut to {cut}: {ran:?}"
                );
            }
        }
        fs::write(&file, content).unwrap();
    }
    run(["verify", text(&store)]).exits(0);
}
