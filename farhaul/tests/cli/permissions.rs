//! Files of somebody else: one that may not be read is one bad sample.

use std::{
    ffi::OsStr,
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use farhaul::{ErrorKind, LoaderConfig, OnError, OpenOptions, Raw};
use rustix::process::{Uid, geteuid};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{Ran, farhaul, photographs, run, text};

/// Eight files, one of which nobody may read.
fn source() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let source = folder.path().join("source");
    photographs(&source, 8, 100);
    fs::set_permissions(source.join("bee/00001.jpg"), Permissions::from_mode(0o000)).unwrap();
    (folder, source)
}

#[test]
fn a_link_into_a_folder_that_may_not_be_entered_is_one_bad_sample() {
    let (folder, source) = source();
    fs::remove_file(source.join("bee/00001.jpg")).unwrap();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("1.jpg"), "x").unwrap();
    symlink(closed.join("1.jpg"), source.join("bee/00001.jpg")).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
    let store = folder.path().join("store");
    let ran = run_without_rights([
        "ingest",
        text(&source),
        "--to",
        text(&store),
        "--on-error",
        "skip",
        "--json",
    ])
    .exits(1);
    fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
    let object = ran.json();
    assert_eq!(
        (&object["samples"], &object["failed"]),
        (&json!(7), &json!(1))
    );
    assert!(ran.stderr.contains("may not be looked at"), "{ran:?}");
}

#[test]
fn a_class_folder_that_may_not_be_listed_ends_an_ingest() {
    let (folder, source) = source();
    let class = source.join("cat");
    for mode in [0o000, 0o444] {
        fs::set_permissions(&class, Permissions::from_mode(mode)).unwrap();
        let to = folder.path().join("to");
        let arguments = [
            "ingest",
            text(&source),
            "--to",
            text(&to),
            "--on-error",
            "skip",
        ];
        let ran = run_without_rights(arguments.into_iter().chain(["--json"]));
        fs::set_permissions(&class, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(ran.exits(3).json()["error"]["kind"], "permission_denied");
    }
}

/// Runs the program without the rights that root has over files.
fn run_without_rights<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    if !geteuid().is_root() {
        return run(arguments);
    }
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all"]);
    let program = farhaul(arguments);
    command.arg(program.get_program()).args(program.get_args());
    command.output().unwrap().into()
}

#[test]
fn an_ingest_goes_on_without_a_file_that_may_not_be_read_where_it_is_told_to() {
    let (folder, source) = source();
    let store = folder.path().join("store");
    let ingest = |more: &[&str]| {
        let arguments = ["ingest", text(&source), "--to", text(&store), "--json"];
        run_without_rights(arguments.iter().chain(more))
    };
    let object = ingest(&[]).exits(1).json();
    assert_eq!(
        (&object["error"]["kind"], &object["error"]["key"]),
        (&json!("permission_denied"), &json!("bee/00001.jpg")),
        "{object}"
    );
    let ran = ingest(&["--on-error", "skip"]).exits(1);
    let object = ran.json();
    assert_eq!(
        (
            object["samples"].as_u64().unwrap() + object["skipped"].as_u64().unwrap(),
            &object["failed"]
        ),
        (7, &json!(1)),
        "{object}"
    );
    assert!(ran.stderr.contains("left out") && ran.stderr.contains("bee/00001.jpg"));
    assert_eq!(
        run(["verify", text(&store), "--json"]).exits(0).json()["ok"],
        7
    );
}

#[test]
fn in_place_such_a_file_is_a_finding_and_the_others_are_looked_at() {
    let (_folder, source) = source();
    let object = run_without_rights(["verify", text(&source), "--json"])
        .exits(1)
        .json();
    assert_eq!(
        (&object["samples"], &object["ok"], &object["corrupt"]),
        (&json!(8), &json!(7), &json!(["bee/00001.jpg"])),
        "{object}"
    );
    let lines = run_without_rights(["inspect", text(&source), "--json"])
        .exits(1)
        .lines();
    let kinds: Vec<_> = lines.iter().map(|line| &line["error_kind"]).collect();
    assert_eq!(kinds.iter().filter(|kind| kind.is_null()).count(), 7);
    assert!(kinds.contains(&&json!("permission_denied")), "{kinds:?}");
}

/// Samples and failures of one epoch over a folder in place, read by a thread without root's rights.
fn epoch(source: &Path, on_error: OnError) -> farhaul::Result<(u64, u64)> {
    thread::scope(|scope| {
        let read = || {
            if geteuid().is_root() {
                // Of this thread alone, and of those that it starts.
                rustix::thread::set_thread_uid(Uid::from_raw(65534)).unwrap();
            }
            let data = farhaul::open(text(source), &OpenOptions::default())?;
            let mut config = LoaderConfig::default();
            config.on_error = on_error;
            let mut loader = data.loader(Raw, config)?;
            let mut samples = 0;
            for delivered in loader.start()? {
                samples += delivered?.samples;
            }
            Ok((samples, loader.stats().failures))
        };
        scope.spawn(read).join().unwrap()
    })
}

#[test]
fn in_place_a_loader_skips_such_a_file_where_it_is_told_to() {
    let (_folder, source) = source();
    assert_eq!(epoch(&source, OnError::Skip).unwrap(), (7, 1));
    assert_eq!(epoch(&source, OnError::Substitute).unwrap(), (8, 1));
    let error = epoch(&source, OnError::Fail).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert_eq!(error.path().unwrap().to_string(), "bee/00001.jpg");
}

#[test]
fn an_export_into_a_folder_that_may_not_be_written_to_is_the_disks_failure() {
    let (folder, source) = source();
    fs::remove_file(source.join("bee/00001.jpg")).unwrap();
    let to = folder.path().join("to");
    fs::create_dir(&to).unwrap();
    fs::set_permissions(&to, Permissions::from_mode(0o555)).unwrap();
    let ran = run_without_rights(["export", text(&source), "--to", text(&to), "--json"]).exits(3);
    assert_eq!(ran.json()["error"]["kind"], "permission_denied");
}
