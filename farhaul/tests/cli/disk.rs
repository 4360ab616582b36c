//! Disks that are full or may not be written.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use crate::support::{Ran, photographs, run, text};

/// Runs a script with mounts of its own, as root or as the root of a user namespace; `None` where the system allows neither.
fn with_mounts(script: &str, arguments: &[&str]) -> Option<Ran> {
    let allowed = |flags: &str| {
        let mut probe = Command::new("unshare");
        probe
            .args([flags, "sh", "-c", "mount -t tmpfs none /mnt"])
            .stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    };
    let flags = ["-m", "-rm"].into_iter().find(|flags| allowed(flags))?;
    let mut command = Command::new("unshare");
    command
        .args([flags, "sh", "-ec", script, env!("CARGO_BIN_EXE_farhaul")])
        .args(arguments);
    Some(command.output().unwrap().into())
}

#[test]
fn a_full_disk_is_said_so_and_the_same_ingest_ends_once_there_is_space() {
    let folder = tempfile::tempdir().unwrap();
    let (source, disk) = (folder.path().join("source"), folder.path().join("disk"));
    photographs(&source, 400, 50_000);
    fs::create_dir(&disk).unwrap();
    let script = r#"
        mount -t tmpfs -o size=80m none "$2"
        head -c 75000000 /dev/zero > "$2/ballast"
        code=0; "$0" ingest "$1" --to "$2/store" --json || code=$?; echo "$code"
        rm "$2/ballast"
        "$0" ingest "$1" --to "$2/store" --json
        "$0" verify "$2/store" --json"#;
    let Some(ran) = with_mounts(script, &[text(&source), text(&disk)]) else {
        return full_by_limit(&source, &disk.join("store"));
    };
    let ran = ran.exits(0);
    let lines = ran.lines();
    assert_eq!(
        (&lines[0]["error"]["kind"], &lines[1]),
        (&"disk_full".into(), &3.into()),
        "{ran:?}"
    );
    assert!(lines[0]["error"]["store"].is_string(), "{ran:?}");
    let skipped = lines[2]["skipped"].as_u64().unwrap();
    assert!(
        skipped > 0 && skipped + lines[2]["samples"].as_u64().unwrap() == 400,
        "{ran:?}"
    );
    assert_eq!(lines[3]["ok"], 400, "{ran:?}");
}

/// Where nothing can be mounted, files that may not grow stand for a disk that has no space.
fn full_by_limit(source: &Path, store: &Path) {
    let script = format!(
        "trap '' XFSZ; ulimit -f 8000; exec \"$0\" ingest '{}' --to '{}' --json",
        text(source),
        text(store)
    );
    let done = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_farhaul")])
        .output()
        .unwrap();
    assert_eq!(
        Ran::from(done).exits(3).json()["error"]["kind"],
        "disk_full"
    );
    run(["ingest", text(source), "--to", text(store)]).exits(0);
    assert_eq!(
        run(["verify", text(store), "--json"]).exits(0).json()["ok"],
        400
    );
}

const READ_ONLY: &str = r#"
    code=0; "$0" ingest "$1" --to "$2/store" --json || code=$?; echo "$code"
    "$0" verify "$2/store" --json
    "$0" bench "$2/store" --json
    code=0; "$0" ingest "$1" --to "$2/new" --json || code=$?; echo "$code""#;

#[test]
fn a_store_that_may_only_be_read_is_read_and_an_ingest_into_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (source, disk) = (folder.path().join("source"), folder.path().join("disk"));
    photographs(&source, 40, 5000);
    fs::create_dir(&disk).unwrap();
    let script = format!(
        r#"mount -t tmpfs -o size=64m none "$2"
        "$0" ingest "$1" --to "$2/store" >&2
        mount -o remount,ro "$2"
        {READ_ONLY}"#
    );
    let ran = if rustix::process::geteuid().is_root() {
        with_mounts(&script, &[text(&source), text(&disk)])
            .expect("root may mount, or nothing is read-only for it")
    } else {
        without_mounts(&source, &disk)
    };
    let lines = ran.exits(0).lines();
    for (refused, code) in [(0, 1), (4, 5)] {
        assert_eq!(
            (&lines[refused]["error"]["kind"], &lines[code]),
            (&"permission_denied".into(), &3.into()),
            "{lines:?}"
        );
    }
    assert_eq!(
        (&lines[2]["ok"], &lines[3]["samples"]),
        (&40.into(), &40.into())
    );
}

/// Permissions hold for everybody but root.
fn without_mounts(source: &Path, disk: &Path) -> Ran {
    run(["ingest", text(source), "--to", text(&disk.join("store"))]).exits(0);
    for entry in fs::read_dir(disk.join("store")).unwrap() {
        fs::set_permissions(entry.unwrap().path(), fs::Permissions::from_mode(0o444)).unwrap();
    }
    let allow = |mode| {
        for path in [disk.join("store"), disk.to_owned()] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    allow(0o555);
    let done = Command::new("sh")
        .args([
            "-ec",
            READ_ONLY,
            env!("CARGO_BIN_EXE_farhaul"),
            text(source),
            text(disk),
        ])
        .output();
    allow(0o755);
    done.unwrap().into()
}
