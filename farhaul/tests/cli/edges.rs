//! Odd paths, odd streams, and stores that somebody else touched.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::Path, process::Command};

use serde_json::json;

use crate::support::{assert_same_tree, bytes, farhaul, ingested, photographs, run, text};

#[test]
fn verify_lists_what_is_corrupt_missing_or_left_over() {
    let (_folder, source, store) = ingested();
    // A second ingest replaces a path: its old payload is named by no manifest any more.
    fs::write(Path::new(&source).join("ant/a.jpg"), bytes(99, 99)).unwrap();
    run(["ingest", &source, "--to", &store]).exits(0);
    let ran = run(["verify", &store, "--json"]).exits(0);
    assert_eq!(
        ran.json()["orphans"].as_array().unwrap().len(),
        1,
        "{ran:?}"
    );

    let file = Path::new(&store).join("data.mdb");
    let mut content = fs::read(&file).unwrap();
    let payload = bytes(30, 30);
    let places: Vec<_> = (0..content.len() - 30)
        .filter(|start| content[*start..*start + 30] == payload[..])
        .collect();
    assert!(!places.is_empty());
    for place in places {
        content[place + 29] ^= 1;
    }
    fs::write(&file, content).unwrap();
    let ran = run(["verify", &store, "--json"]).exits(1);
    assert_eq!(
        (&ran.json()["ok"], &ran.json()["corrupt"]),
        (&json!(3), &json!(["bee/c.jpg"]))
    );
    assert_eq!(
        run(["inspect", &store, "--key", "bee/c.jpg", "--json"])
            .exits(1)
            .lines()[0]["error_kind"],
        "corrupt"
    );
}

#[test]
fn a_second_writer_gets_a_typed_error() {
    let (_folder, source, store) = ingested();
    let held = farhaul::create(&store, &farhaul::OpenOptions::default()).unwrap();
    let ran = run(["ingest", &source, "--to", &store, "--json"]).exits(3);
    assert_eq!(ran.json()["error"]["kind"], "unavailable");
    run(["verify", &store]).exits(0);
    drop(held);
    run(["ingest", &source, "--to", &store]).exits(0);
}

#[test]
fn a_path_is_literal_and_a_path_behind_a_scheme_is_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("100% s\u{fc}\u{df}");
    photographs(&source, 4, 50);
    let store = folder.path().join("a%20b");
    run(["ingest", text(&source), "--to", text(&store)]).exits(0);
    assert!(store.join("data.mdb").exists());
    run(["info", text(&store)]).exits(0);
    run(["info", &format!("embedded:{}", text(&store))]).exits(3);
    run([
        "info",
        &format!("embedded:{}", text(&store).replace('%', "%25")),
    ])
    .exits(0);
    run([
        "info",
        &format!(
            "folder:{}",
            loader_core::uri::percent_encode(source.as_os_str().as_bytes())
        ),
    ])
    .exits(0);
}

#[test]
fn paths_that_are_no_utf8_are_read_and_shown_as_percent() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join(OsStr::from_bytes(b"s\xff"));
    fs::create_dir_all(source.join("k")).unwrap();
    fs::write(source.join(OsStr::from_bytes(b"k/\xe9.jpg")), bytes(1, 40)).unwrap();
    let store = folder.path().join(OsStr::from_bytes(b"t\xff"));
    let out = folder.path().join("out");
    let command = |arguments: &[&OsStr]| farhaul(arguments).output().unwrap();
    let done = command(&[
        "ingest".as_ref(),
        source.as_ref(),
        "--to".as_ref(),
        store.as_ref(),
    ]);
    assert!(done.status.success(), "{done:?}");
    let done = command(&["inspect".as_ref(), store.as_ref(), "--json".as_ref()]);
    assert!(
        String::from_utf8(done.stdout)
            .unwrap()
            .contains("\"key\":\"k/%E9.jpg\"")
    );
    let done = command(&[
        "inspect".as_ref(),
        store.as_ref(),
        "--key".as_ref(),
        "k/%E9.jpg".as_ref(),
    ]);
    assert!(done.status.success(), "the path as it is shown: {done:?}");
    let done = command(&[
        "export".as_ref(),
        store.as_ref(),
        "--to".as_ref(),
        out.as_ref(),
    ]);
    assert!(done.status.success(), "{done:?}");
    assert_same_tree(&source, &out);
}

#[test]
fn a_closed_stdout_ends_inspect_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    photographs(&source, 2000, 20);
    let script = format!(
        "\"$0\" inspect '{}' --json | head -n 1; echo ${{PIPESTATUS[0]}}",
        text(&source)
    );
    let done = Command::new("bash")
        .args(["-c", &script, env!("CARGO_BIN_EXE_farhaul")])
        .output()
        .unwrap();
    let stdout = String::from_utf8(done.stdout).unwrap();
    assert!(stdout.ends_with("\n0\n"), "{stdout}");
    assert!(
        done.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let (_folder, _, store) = ingested();
    for command in ["info", "verify", "inspect", "bench"] {
        let full = fs::File::create("/dev/full").unwrap();
        let done = farhaul([command, &store, "--json"])
            .stdout(full)
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(3), "{command}: {done:?}");
        assert!(String::from_utf8_lossy(&done.stderr).contains("stdout cannot be written"));
    }
}

#[test]
fn a_store_is_ingested_into_itself_without_harm() {
    let (_folder, _, store) = ingested();
    let object = run(["ingest", &store, "--to", &store, "--json"])
        .exits(0)
        .json();
    assert_eq!(
        (&object["samples"], &object["skipped"]),
        (&json!(0), &json!(4))
    );
    run(["verify", &store]).exits(0);
}
