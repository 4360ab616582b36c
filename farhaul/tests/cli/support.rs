//! What the tests share: running the program, making sources, comparing folders.

use std::{
    ffi::OsStr,
    fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use conformance::random::Random;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// The program, with its streams taken and nothing on stdin.
pub(crate) fn farhaul<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farhaul"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a run of the program gave.
#[derive(Debug)]
pub(crate) struct Ran {
    /// `None` after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// The one object on stdout.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one object: {self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// An object a line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The keys on stdout in their order: JSON objects lose it once they are parsed.
    pub(crate) fn keys(&self) -> Vec<String> {
        let object = self.json();
        let mut keys: Vec<_> = object.as_object().unwrap().keys().cloned().collect();
        keys.sort_by_key(|key| self.stdout.find(&format!("\"{key}\":")).unwrap());
        keys
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

/// Runs the program to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    farhaul(arguments).output().unwrap().into()
}

/// Sends a signal to a process that may just have ended.
pub(crate) fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // A process that has just ended needs no signal.
    let _ = kill_process(pid, signal);
}

/// Until the program listens for Ctrl-C: before, the signal would just end it.
pub(crate) fn wait_for_handler(child: &mut Child) {
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

/// Bytes that begin as a JPEG and do not decode: what stores and ingest see is only bytes.
pub(crate) fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut bytes = Random::new(seed).bytes(count);
    let start = [0xff, 0xd8, 0xff];
    let most = count.min(start.len());
    bytes[..most].copy_from_slice(&start[..most]);
    bytes
}

/// A folder of so many files in four classes.
pub(crate) fn photographs(folder: &Path, count: usize, nbytes: usize) {
    for number in 0..count {
        let class = folder.join(["ant", "bee", "cat", "dog"][number % 4]);
        fs::create_dir_all(&class).unwrap();
        fs::write(
            class.join(format!("{number:05}.jpg")),
            bytes(number as u64, nbytes),
        )
        .unwrap();
    }
}

/// Asserts that two folders hold the same files, folders and bytes.
#[track_caller]
pub(crate) fn assert_same_tree(left: &Path, right: &Path) {
    let compared = Command::new("diff")
        .arg("-r")
        .arg(left)
        .arg(right)
        .output()
        .unwrap();
    assert!(compared.status.success(), "{compared:?}");
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Four files in two classes, and the store made of them.
pub(crate) fn small() -> (TempDir, String, String) {
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

pub(crate) fn ingested() -> (TempDir, String, String) {
    let (folder, source, store) = small();
    run(["ingest", &source, "--to", &store, "--json"]).exits(0);
    (folder, source, store)
}
