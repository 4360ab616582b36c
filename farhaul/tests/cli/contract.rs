//! Keys, exit codes and golden answers of each command.

use std::{fs, os::unix::ffi::OsStrExt, path::Path, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{bytes, farhaul, photographs, run, text};

/// Four files in two classes, and the store made of them.
fn small() -> (TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let (source, store) = (folder.path().join("source"), folder.path().join("store"));
    for (path, nbytes) in [
        ("ant/a.jpg", 10),
        ("ant/b.jpg", 20),
        ("bee/c.jpg", 30),
        ("bee/d.JPG", 40),
    ] {
        fs::create_dir_all(source.join(path).parent().unwrap()).unwrap();
        fs::write(
            source.join(path),
            bytes(nbytes, usize::try_from(nbytes).unwrap()),
        )
        .unwrap();
    }
    fs::write(source.join("ant/notes.txt"), "no sample").unwrap();
    let (source, store) = (text(&source).to_owned(), text(&store).to_owned());
    (folder, source, store)
}

fn ingested() -> (TempDir, String, String) {
    let (folder, source, store) = small();
    run(["ingest", &source, "--to", &store, "--json"]).exits(0);
    (folder, source, store)
}

#[test]
fn ingest_answers_with_its_counts() {
    let (_folder, source, store) = small();
    let mut ran = run(["ingest", &source, "--to", &store, "--json"]).exits(0);
    assert_eq!(
        ran.keys(),
        [
            "samples", "bytes", "skipped", "failed", "left_out", "seconds"
        ]
    );
    let mut object = ran.json();
    assert!(object["seconds"].take().is_f64());
    assert_eq!(
        object,
        json!({"samples": 4, "bytes": 100, "skipped": 0, "failed": 0, "left_out": 1, "seconds": null})
    );
    ran = run(["ingest", &source, "--to", &store, "--json"]).exits(0);
    assert_eq!(
        (
            &ran.json()["samples"],
            &ran.json()["bytes"],
            &ran.json()["skipped"]
        ),
        (&json!(0), &json!(0), &json!(4))
    );
}

#[test]
fn info_verify_and_export_answer_word_for_word() {
    let (folder, _, store) = ingested();
    let info = run(["info", &store, "--json"]).exits(0);
    assert_eq!(
        info.stdout,
        "{\"samples\":4,\"bytes\":100,\"classes\":[\"ant\",\"bee\"],\"fields\":{},\"fingerprint\":\"621f435cf033d3021a2a3834c052836a\"}\n"
    );
    let verify = run(["verify", &store, "--json"]).exits(0);
    assert_eq!(
        verify.stdout,
        "{\"samples\":4,\"ok\":4,\"corrupt\":[],\"missing\":[],\"orphans\":[]}\n"
    );
    let to = folder.path().join("out");
    let export = run(["export", &store, "--to", text(&to), "--json"]).exits(0);
    assert_eq!(export.stdout, "{\"samples\":4,\"bytes\":100}\n");
}

#[test]
fn inspect_answers_with_a_line_a_sample_in_path_order() {
    let (_folder, _, store) = ingested();
    let ran = run(["inspect", &store, "--json"]).exits(0);
    let line = "{\"key\":\"ant/a.jpg\",\"label\":0,\"fields\":{},\"outcome\":\"ok\",\"error_kind\":null,\"width\":null,\"height\":null,\"mean\":null}";
    assert_eq!(ran.stdout.lines().next(), Some(line));
    let keys: Vec<_> = ran
        .lines()
        .iter()
        .map(|line| line["key"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(keys, ["ant/a.jpg", "ant/b.jpg", "bee/c.jpg", "bee/d.JPG"]);
}

#[test]
fn inspect_of_keys_answers_unknown_ones_too_and_exits_with_1() {
    let (_folder, _, store) = ingested();
    let ran = run([
        "inspect",
        &store,
        "--json",
        "--key",
        "bee/c.jpg",
        "--key",
        "no/such.jpg",
        "--key",
        "ant/a.jpg",
    ])
    .exits(1);
    let answers: Vec<_> = ran
        .lines()
        .iter()
        .map(|line| {
            (
                line["key"].clone(),
                line["outcome"].clone(),
                line["error_kind"].clone(),
            )
        })
        .collect();
    assert_eq!(
        answers,
        [
            (json!("bee/c.jpg"), json!("ok"), Value::Null),
            (json!("no/such.jpg"), json!("error"), json!("not_found")),
            (json!("ant/a.jpg"), json!("ok"), Value::Null),
        ]
    );
}

#[test]
fn inspect_goes_on_after_samples_that_do_not_decode() {
    let (_folder, _, store) = ingested();
    let ran = run(["inspect", &store, "--json", "--decode"]).exits(1);
    assert_eq!(ran.lines().len(), 4);
    assert!(
        ran.lines()
            .iter()
            .all(|line| line["outcome"] == "error" && line["error_kind"].is_string())
    );
    run(["inspect", &store]).exits(0);
    run(["verify", &store, "--decode", "--json"]).exits(1);
}

#[test]
fn bench_answers_with_every_figure() {
    let (_folder, _, store) = ingested();
    let ran = run([
        "bench",
        &store,
        "--batch",
        "3",
        "--epochs",
        "2",
        "--order",
        "strict",
        "--prefetch",
        "fixed:2",
        "--memory",
        "64MB",
        "--seed",
        "7",
        "--think-ms",
        "5",
        "--json",
    ])
    .exits(0);
    assert_eq!(
        ran.keys(),
        [
            "samples",
            "bytes",
            "seconds",
            "samples_per_s",
            "megabytes_per_s",
            "first_batch_s",
            "stall_share",
            "peak_rss_bytes",
            "mapped_bytes",
            "window_bytes_max",
            "held_bytes_max",
            "retries",
            "hedges",
            "failures",
        ]
    );
    let object = ran.json();
    assert_eq!(
        (&object["samples"], &object["bytes"], &object["failures"]),
        (&json!(8), &json!(200), &json!(0))
    );
    assert!(
        object["seconds"].as_f64().unwrap() >= 0.02,
        "four batches of 5 ms: {object}"
    );
    for whole in [
        "peak_rss_bytes",
        "mapped_bytes",
        "window_bytes_max",
        "held_bytes_max",
        "retries",
        "hedges",
    ] {
        assert!(object[whole].is_u64(), "{whole}");
    }
}

#[test]
fn a_sample_that_does_not_decode_ends_a_bench_with_1_and_is_named() {
    let (_folder, _, store) = ingested();
    let ran = run(["bench", &store, "--decode", "64", "--json"]).exits(1);
    let error = &ran.json()["error"];
    assert!(error["key"].as_str().unwrap().contains('/'), "{error}");
    assert_eq!(ran.json()["failures"], 1);
}

#[test]
fn demo_ingests_verifies_and_reads_an_epoch() {
    let (folder, source, _) = small();
    let out = folder.path().join("out");
    let ran = run(["demo", "--photos", &source, "--out", text(&out), "--json"]).exits(0);
    assert_eq!(
        (&ran.json()["verified"], &ran.json()["samples"]),
        (&json!(4), &json!(4))
    );
    run(["verify", text(&out.join("store"))]).exits(0);
}

#[test]
fn every_error_has_the_same_six_keys() {
    let (folder, source, store) = ingested();
    let nowhere = text(&folder.path().join("nowhere")).to_owned();
    fs::write(Path::new(&source).join("ant/empty.jpg"), "").unwrap();
    let fresh = text(&folder.path().join("fresh")).to_owned();
    for (arguments, code, kind) in [
        (vec!["info", &nowhere], 3, "not_found"),
        (vec!["verify", &nowhere], 3, "not_found"),
        (vec!["inspect", &nowhere], 3, "not_found"),
        (vec!["bench", &nowhere], 3, "not_found"),
        (vec!["export", &nowhere, "--to", &fresh], 3, "not_found"),
        (vec!["ingest", &nowhere, "--to", &fresh], 3, "not_found"),
        (vec!["ingest", &source, "--to", &fresh], 1, "empty"),
        (vec!["ingest", &store, "--to", "folder:x"], 2, "usage"),
        (vec!["ingest", &source, "--to", &source], 2, "usage"),
        (
            vec!["ingest", &source, "--to", &fresh, "--format", "webdatset"],
            2,
            "usage",
        ),
        (vec!["info", "mongodb://host/x"], 2, "usage"),
        (vec!["info", "s3://bucket/x"], 2, "usage"),
        (vec!["bench", &store, "--memory", "1kB"], 2, "usage"),
        (vec!["bench", &store, "--batch", "0"], 2, "usage"),
        (vec!["info"], 2, "usage"),
        (vec!["nosuch"], 2, "usage"),
    ] {
        let ran = run(arguments.iter().copied().chain(["--json"])).exits(code);
        let error = ran.json()["error"].clone();
        let mut keys: Vec<_> = error
            .as_object()
            .unwrap_or_else(|| panic!("{ran:?}"))
            .keys()
            .cloned()
            .collect();
        keys.sort();
        assert_eq!(
            keys,
            ["hint", "key", "kind", "message", "operation", "store"],
            "{ran:?}"
        );
        assert_eq!(error["kind"], kind, "{ran:?}");
    }
}

#[test]
fn a_bad_sample_ends_an_ingest_that_keeps_what_it_has_and_publishes_nothing() {
    let (folder, source, _) = small();
    fs::write(Path::new(&source).join("bee/empty.jpg"), "").unwrap();
    let store = text(&folder.path().join("fresh")).to_owned();
    let ran = run(["ingest", &source, "--to", &store, "--json"]).exits(1);
    let object = ran.json();
    assert_eq!(
        (&object["failed"], &object["error"]["key"]),
        (&json!(1), &json!("bee/empty.jpg"))
    );
    assert!(object["samples"].is_u64() && object["seconds"].is_f64());
    assert!(
        object["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("--on-error skip")
    );
    assert_eq!(
        run(["info", &store, "--json"]).exits(3).json()["error"]["kind"],
        "not_found"
    );

    let ran = run([
        "ingest",
        &source,
        "--to",
        &store,
        "--on-error",
        "skip",
        "--json",
    ])
    .exits(1);
    let object = ran.json();
    assert_eq!(object["failed"], 1);
    assert_eq!(
        object["samples"].as_u64().unwrap() + object["skipped"].as_u64().unwrap(),
        4
    );
    assert!(object.get("error").is_none() && ran.stderr.contains("bee/empty.jpg"));
    run(["verify", &store]).exits(0);
}

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
    let source = folder.path().join(std::ffi::OsStr::from_bytes(b"s\xff"));
    fs::create_dir_all(source.join("k")).unwrap();
    fs::write(
        source.join(std::ffi::OsStr::from_bytes(b"k/\xe9.jpg")),
        bytes(1, 40),
    )
    .unwrap();
    let store = folder.path().join(std::ffi::OsStr::from_bytes(b"t\xff"));
    let out = folder.path().join("out");
    let command = |arguments: &[&std::ffi::OsStr]| farhaul(arguments).output().unwrap();
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
    crate::support::assert_same_tree(&source, &out);
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
