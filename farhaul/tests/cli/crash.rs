//! Ingests that are killed, and stores that are cut.

use std::{fs, os::unix::process::ExitStatusExt, thread, time::Instant};

use conformance::random::Random;
use rustix::process::Signal;

use crate::support::{assert_same_tree, farhaul, photographs, run, send, text};

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
