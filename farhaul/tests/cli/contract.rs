//! Keys, exit codes and golden answers of each command.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{ingested, run, small, text};

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
    let table = run(["inspect", &store, "--decode"]).exits(1).stdout;
    assert!(
        table.lines().count() == 5 && table.lines().nth(1).unwrap().contains("ant/a.jpg: "),
        "{table}"
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
fn a_command_that_cannot_begin_answers_with_every_key_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = text(&folder.path().join("no where")).to_owned();
    let to = text(&folder.path().join("to")).to_owned();
    let bench = [
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
    ];
    let ingest = [
        "samples", "bytes", "skipped", "failed", "left_out", "seconds",
    ];
    let info = ["samples", "bytes", "classes", "fields", "fingerprint"];
    let verify = ["samples", "ok", "corrupt", "missing", "orphans"];
    for (arguments, keys) in [
        (vec!["ingest", &nowhere, "--to", &to], &ingest[..]),
        (vec!["info", &nowhere], &info),
        (vec!["verify", &nowhere], &verify),
        (vec!["export", &nowhere, "--to", &to], &["samples", "bytes"]),
        (vec!["bench", &nowhere], &bench),
    ] {
        for (wrong, code) in [(None, 3), (Some("--no-such-option"), 2)] {
            let arguments = arguments.iter().copied().chain(wrong).chain(["--json"]);
            let ran = run(arguments).exits(code);
            let known = ran.keys();
            assert_eq!(known[..keys.len()], *keys, "{ran:?}");
            assert_eq!(known[keys.len()..][..1], ["error"], "{ran:?}");
            let mut object = ran.json();
            let error = object.as_object_mut().unwrap().remove("error").unwrap();
            let is_nothing = |value: &Value| match value {
                Value::Number(number) => number.as_f64() == Some(0.0),
                Value::Array(list) => list.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                Value::String(text) => text.chars().all(|letter| letter == '0'),
                _ => false,
            };
            assert!(
                object.as_object().unwrap().values().all(is_nothing),
                "{ran:?}"
            );
            if wrong.is_none() {
                assert_eq!(error["store"], *nowhere, "{ran:?}");
            }
        }
    }
}

#[test]
fn an_error_names_the_store_or_source_that_it_is_about() {
    let (folder, source, store) = ingested();
    let uri = |scheme: &str, path: &str| {
        json!(format!(
            "{scheme}:{}",
            loader_core::uri::percent_encode(path.as_bytes())
        ))
    };
    fs::write(Path::new(&source).join("ant/empty.jpg"), "").unwrap();
    let fresh = text(&folder.path().join("fr\u{e9}sh")).to_owned();
    for (arguments, code, named) in [
        (
            vec!["ingest", &source, "--to", &fresh],
            1,
            uri("folder", &source),
        ),
        (
            vec!["ingest", &store, "--to", "folder:x%20y"],
            2,
            json!("folder:x%20y"),
        ),
        (
            vec!["ingest", &store, "--to", &source],
            2,
            uri("embedded", &source),
        ),
        (vec!["info", &fresh], 3, uri("embedded", &fresh)),
        (
            vec!["info", "embedded:no%20where"],
            3,
            json!("embedded:no%20where"),
        ),
        (
            vec!["bench", &store, "--batch", "0"],
            2,
            uri("embedded", &store),
        ),
        (
            vec!["bench", &store, "--decode", "8"],
            1,
            uri("embedded", &store),
        ),
        (
            vec!["info", "s3://user:hunter2@bucket/set"],
            2,
            json!("s3://bucket/set"),
        ),
        (
            vec!["info", "mongodb://user:hunter2@host/set"],
            2,
            Value::Null,
        ),
    ] {
        let ran = run(arguments.iter().copied().chain(["--json"])).exits(code);
        assert_eq!(ran.json()["error"]["store"], named, "{ran:?}");
        assert!(!format!("{ran:?}").contains("hunter2"));
    }
}

#[test]
fn what_may_be_a_mistake_is_a_warning_on_stderr() {
    let folder = tempfile::tempdir().unwrap();
    for class in ["caf\u{e9}", "cafe\u{301}"] {
        let class = folder.path().join("source").join(class);
        fs::create_dir_all(&class).unwrap();
        fs::write(class.join("1.jpg"), class.as_os_str().as_encoded_bytes()).unwrap();
    }
    let (source, store) = (folder.path().join("source"), folder.path().join("store"));
    for arguments in [
        vec!["ingest", text(&source), "--to", text(&store), "--json"],
        vec!["info", text(&source), "--json"],
        vec!["inspect", text(&source), "--json"],
    ] {
        let ran = run(arguments).exits(0);
        let warnings: Vec<_> = ran
            .stderr
            .lines()
            .filter(|line| line.starts_with("warning: class folders that look alike"))
            .collect();
        assert_eq!(warnings.len(), 1, "{ran:?}");
    }
    let ran = run(["info", text(&store), "--json"]).exits(0);
    assert!(ran.stderr.is_empty(), "{ran:?}");
    assert_eq!(ran.json()["samples"], 2);
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
