//! A machine that gives no more threads: an error, and never a hang.

use std::{
    fs::{self, Permissions},
    io::Read,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::geteuid;

use crate::support::{Ran, ingested, text};

/// A user that nobody else is, since the limit counts all threads of a user; root has none.
const USER: u32 = 61_234;
/// Longer than any of it takes, and less than for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a copy of the program as somebody who may have so many threads.
#[track_caller]
fn run_with(threads: u32, program: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--nproc={threads}"))
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if geteuid().is_root() {
        command.uid(USER).gid(USER);
    }
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            let mut said = String::new();
            child.stderr.unwrap().read_to_string(&mut said).unwrap();
            panic!("{arguments:?} hangs with {threads} threads: {said}");
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap().into()
}

#[test]
fn too_few_threads_are_an_error_at_every_limit_and_never_a_hang() {
    let (folder, source, store) = ingested();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("farhaul");
    fs::copy(env!("CARGO_BIN_EXE_farhaul"), &program).unwrap();
    let mut succeeded = 0;
    for threads in 1..=24 {
        let to = folder.path().join(format!("to{threads}"));
        for arguments in [
            &["verify", &store, "--json"][..],
            &["verify", &source, "--json"],
            &["ingest", &source, "--to", text(&to), "--json"],
        ] {
            let ran = run_with(threads, &program, arguments);
            let object = ran.json();
            if ran.code == Some(0) {
                assert!(threads > 6, "{arguments:?} does with {threads}: {ran:?}");
                succeeded += 1;
                continue;
            }
            let ran = ran.exits(3);
            assert_eq!(object["error"]["kind"], "io", "{threads}: {ran:?}");
            assert!(
                object["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("a thread cannot be started"),
                "{threads}: {ran:?}"
            );
            assert!(ran.stdout.contains("ulimit -u"), "{threads}: {ran:?}");
        }
    }
    // Another user's limit counts what else that user runs.
    assert!(!geteuid().is_root() || succeeded > 0);
}
