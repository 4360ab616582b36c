//! Samples, stores and processes for the tests.

use std::{
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
};

use backend_embedded::{EmbeddedConfig, EmbeddedStore, EmbeddedWriter};
use futures_util::StreamExt;
use index::IndexBuilder;
use loader_core::{
    FetchRequest, Fetched, Manifest, NewSample, Part, Put, Row, Sample, Store, StoreWriter, Summary,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Carries a role and a folder into a child process.
const CHILD: &str = "FARHAUL_EMBEDDED_TEST_CHILD";

/// The runtime of a test.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap()
}

/// A place for a store that does not exist yet.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    (folder, path)
}

/// Bytes that follow from a number and differ from place to place.
pub(crate) fn bytes(number: u64, length: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

/// A sample whose size follows from its number: from nothing to many pages.
pub(crate) fn sample(number: u64) -> NewSample {
    const LENGTHS: [usize; 8] = [0, 1, 100, 2030, 4096, 5000, 20_000, 70_001];
    sized(number, LENGTHS[usize::try_from(number % 8).unwrap()])
}

/// A sample of so many bytes.
pub(crate) fn sized(number: u64, length: usize) -> NewSample {
    let payload = bytes(number, length);
    NewSample {
        path: format!("class{}/{number:06}.jpg", number % 3).into(),
        label: i64::try_from(number % 3).unwrap(),
        parts: Part::sequence([("jpg", length as u64)]),
        payload: payload.into(),
        fields: [(
            "number".to_owned(),
            loader_core::FieldValue::Int(i64::try_from(number).unwrap()),
        )]
        .into(),
    }
}

pub(crate) fn writer(folder: &Path) -> EmbeddedWriter {
    EmbeddedWriter::open_or_create(folder, EmbeddedConfig::default()).unwrap()
}

pub(crate) fn open(folder: &Path) -> EmbeddedStore {
    EmbeddedStore::open(folder, EmbeddedConfig::default()).unwrap()
}

/// Puts samples in groups; their rows.
pub(crate) fn put(runtime: &Runtime, writer: &EmbeddedWriter, samples: &[NewSample]) -> Vec<Row> {
    let mut rows = Vec::new();
    for group in samples.chunks(16) {
        for put in runtime.block_on(writer.put(group.to_vec())).unwrap() {
            match put {
                Put::Written(row) | Put::Present(row) => rows.push(row),
                Put::Failed(error) => panic!("{error}"),
            }
        }
    }
    rows
}

/// A manifest of exactly these rows.
pub(crate) fn manifest(rows: &[Row]) -> Manifest {
    let mut builder = IndexBuilder::new();
    builder.extend(rows);
    let classes: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
    Manifest {
        classes: classes.clone().into(),
        catalog: Arc::new(builder.finish(classes)),
    }
}

/// Puts and publishes samples.
pub(crate) fn store(runtime: &Runtime, folder: &Path, samples: &[NewSample]) -> Summary {
    let writer = writer(folder);
    let rows = put(runtime, &writer, samples);
    runtime.block_on(writer.publish(manifest(&rows))).unwrap()
}

/// The outcomes for some rows, in their order.
pub(crate) fn fetch(runtime: &Runtime, store: &EmbeddedStore, rows: Vec<u64>) -> Vec<Fetched> {
    fetch_request(
        runtime,
        store,
        FetchRequest::rows(store.summary().fingerprint, rows),
    )
}

/// The outcomes of a request, in the order of its targets, each of which must have exactly one.
pub(crate) fn fetch_request(
    runtime: &Runtime,
    store: &EmbeddedStore,
    request: FetchRequest,
) -> Vec<Fetched> {
    let targets = request.targets.len();
    let mut outcomes: Vec<_> = runtime.block_on(store.fetch(request).collect());
    outcomes.sort_by_key(|fetched| fetched.target);
    let seen: Vec<_> = outcomes.iter().map(|fetched| fetched.target).collect();
    assert_eq!(seen, (0..targets).collect::<Vec<_>>());
    outcomes
}

/// Makes sure that a store has exactly these samples.
pub(crate) fn assert_has(runtime: &Runtime, store: &EmbeddedStore, samples: &[NewSample]) {
    let mut expected: Vec<_> = samples.iter().collect();
    expected.sort_by(|a, b| a.path.cmp(&b.path));
    assert_eq!(store.summary().samples, expected.len() as u64);
    let outcomes = fetch(runtime, store, (0..expected.len() as u64).collect());
    for (fetched, expected) in outcomes.into_iter().zip(expected) {
        let Sample {
            path,
            label,
            parts,
            payload,
            ..
        } = fetched.outcome.unwrap();
        assert_eq!(
            (&path, label, &parts),
            (&expected.path, expected.label, &expected.parts)
        );
        assert!(
            payload == expected.payload,
            "{path} came back with other bytes"
        );
    }
}

/// What this process was started for, where it is the child of a test: role and folder.
///
/// A test that needs another process starts itself again, so that no test is there only to be a child.
pub(crate) fn child() -> Option<(String, PathBuf)> {
    let given = env::var(CHILD).ok()?;
    let (role, folder) = given.split_once(' ').unwrap();
    Some((role.to_owned(), folder.into()))
}

/// The command that starts this test, given by its full name, again as a child.
pub(crate) fn child_command(test: &str, role: &str, folder: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(CHILD, format!("{role} {}", folder.display()));
    command
}

/// Makes sure that a child ended well and really ran its test.
pub(crate) fn assert_well(output: &Output) {
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{:?}\n{text}", output.status);
    assert!(text.contains("1 passed"), "the child ran no test:\n{text}");
}

/// Tells the parent of this process something, on a line of its own.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").unwrap();
    out.flush().unwrap();
}
