use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use loader_core::{
    Capability, Fields, Manifest, NewSample, Part, Result, Store, StoreWriter,
    memory::MemoryWriter, store::Put,
};

use super::*;
use crate::task::Silent;

#[derive(Debug)]
struct Made {
    classes: Vec<String>,
    samples: VecDeque<Result<NewSample>>,
}

impl Source for Made {
    fn classes(&self) -> Vec<String> {
        self.classes.clone()
    }
    fn expected_samples(&self) -> Option<u64> {
        None
    }
    fn left_out(&self) -> u64 {
        3
    }
    fn warnings(&self) -> Vec<String> {
        vec!["two names look alike".to_owned()]
    }
    fn next_sample(&mut self) -> Option<Result<NewSample>> {
        self.samples.pop_front()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it stands in lists beside `bad`")]
fn sample(path: &str, label: i64, payload: &str) -> Result<NewSample> {
    let payload = Bytes::copy_from_slice(payload.as_bytes());
    let parts = Part::sequence([("jpg", payload.len() as u64)]);
    Ok(NewSample {
        path: path.into(),
        label,
        parts,
        payload,
        fields: Fields::new(),
    })
}

fn bad(path: &str) -> Result<NewSample> {
    Err(Error::new(ErrorKind::Empty, "no bytes").at(path))
}

fn run(
    writer: &MemoryWriter,
    classes: &[&str],
    samples: Vec<Result<NewSample>>,
    on_error: OnBadSample,
) -> Outcome<IngestReport> {
    let mut source = Made {
        classes: classes.iter().map(|name| (*name).to_owned()).collect(),
        samples: samples.into(),
    };
    let destination = Destination::over(Arc::new(writer.clone())).unwrap();
    let options = IngestOptions::default().with_on_error(on_error);
    ingest(
        &mut source,
        &destination,
        &options,
        &Silent,
        &Cancel::default(),
    )
}

fn rows(writer: &MemoryWriter) -> Vec<(String, i64, u64)> {
    let store = writer.open().unwrap();
    let catalog = futures_util::FutureExt::now_or_never(store.catalog())
        .unwrap()
        .unwrap();
    let row = |number| {
        let row = catalog.row(number);
        (row.path.to_string(), row.label, row.nbytes)
    };
    (0..catalog.len()).map(row).collect()
}

#[test]
fn a_second_ingest_replaces_paths_keeps_others_and_remaps_labels_by_name() {
    let writer = MemoryWriter::new();
    let first = run(
        &writer,
        &["cat", "dog"],
        vec![sample("cat/1", 0, "a"), sample("dog/1", 1, "b")],
        OnBadSample::Fail,
    );
    assert_eq!(
        (
            first.report.samples,
            first.report.bytes,
            first.report.left_out
        ),
        (2, 2, 3)
    );
    let second = run(
        &writer,
        &["ant", "dog"],
        vec![sample("ant/1", 0, "ccc"), sample("dog/1", 1, "dd")],
        OnBadSample::Fail,
    );
    let published = second.into_result().unwrap().published.unwrap();
    assert_eq!(*published.classes, ["cat", "dog", "ant"]);
    assert_eq!(
        rows(&writer),
        [
            ("ant/1".into(), 2, 3),
            ("cat/1".into(), 0, 1),
            ("dog/1".into(), 1, 2)
        ]
    );
}

#[test]
fn the_same_ingest_again_writes_nothing() {
    let writer = MemoryWriter::new();
    let samples = || vec![sample("a", 0, "a"), sample("b", 0, "b")];
    let first = run(&writer, &["x"], samples(), OnBadSample::Fail)
        .into_result()
        .unwrap();
    let again = run(&writer, &["x"], samples(), OnBadSample::Fail)
        .into_result()
        .unwrap();
    assert_eq!((again.samples, again.bytes, again.skipped), (0, 0, 2));
    assert_eq!(again.published, first.published);
}

#[test]
fn under_fail_the_first_bad_sample_ends_it_and_nothing_is_published() {
    let writer = MemoryWriter::new();
    let outcome = run(
        &writer,
        &[],
        vec![sample("a", 0, "a"), bad("b"), sample("c", 0, "c")],
        OnBadSample::Fail,
    );
    let error = outcome.error.unwrap();
    assert_eq!(
        (error.kind(), error.operation()),
        (ErrorKind::Empty, "ingest")
    );
    assert_eq!(error.path().unwrap().to_string(), "b");
    assert_eq!(outcome.report.failed, 1);
    assert!(writer.open().is_err());
}

#[test]
fn under_skip_bad_samples_and_repeated_paths_are_counted_and_the_rest_is_published() {
    let writer = MemoryWriter::new().with_max_payload_bytes(4);
    let samples = vec![
        sample("a", 0, "a"),
        bad("b"),
        sample("a", 0, "again"),
        sample("d", 0, "too large"),
        sample("e", 0, "e"),
    ];
    let report = run(&writer, &[], samples, OnBadSample::Skip)
        .into_result()
        .unwrap();
    assert_eq!((report.samples, report.failed), (2, 3));
    let kinds: Vec<_> = report.failures.iter().map(Error::kind).collect();
    assert_eq!(
        kinds,
        [ErrorKind::Empty, ErrorKind::Conflict, ErrorKind::TooLarge]
    );
    assert_eq!(rows(&writer), [("a".into(), 0, 1), ("e".into(), 0, 1)]);
}

#[test]
fn an_error_of_the_whole_source_ends_it_under_skip_too() {
    let writer = MemoryWriter::new();
    let broken = Err(Error::new(ErrorKind::Io, "the disk is gone"));
    let outcome = run(
        &writer,
        &[],
        vec![sample("a", 0, "a"), broken],
        OnBadSample::Skip,
    );
    assert_eq!(outcome.error.unwrap().kind(), ErrorKind::Io);
    assert!(writer.open().is_err());
}

#[test]
fn a_cancelled_ingest_publishes_nothing_and_says_how_to_go_on() {
    let writer = MemoryWriter::new();
    let mut source = Made {
        classes: vec![],
        samples: [sample("a", 0, "a")].into(),
    };
    let cancel = Cancel::default();
    cancel.cancel();
    let destination = Destination::over(Arc::new(writer.clone())).unwrap();
    let outcome = ingest(
        &mut source,
        &destination,
        &IngestOptions::default(),
        &Silent,
        &cancel,
    );
    let error = outcome.error.unwrap();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(error.advice().unwrap().contains("the same ingest goes on"));
    assert!(writer.open().is_err());
}

/// Writes down what it is told.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<String>>);

impl Progress for Told {
    fn started(&self, _: &'static str, _: Option<u64>) {}
    fn advanced(&self, _: u64, _: u64) {}
    fn warned(&self, warning: &str) {
        self.0.lock().unwrap().push(warning.to_owned());
    }
    fn finished(&self) {}
}

#[test]
fn warnings_of_the_source_are_told() {
    let (writer, told) = (MemoryWriter::new(), Told::default());
    let mut source = Made {
        classes: vec![],
        samples: VecDeque::new(),
    };
    let destination = Destination::over(Arc::new(writer)).unwrap();
    let options = IngestOptions::default();
    let outcome = ingest(
        &mut source,
        &destination,
        &options,
        &told,
        &Cancel::default(),
    );
    outcome.into_result().unwrap();
    assert_eq!(*told.0.lock().unwrap(), ["two names look alike"]);
}

#[test]
fn under_skip_a_file_that_may_not_be_read_is_left_out_and_a_whole_source_is_not() {
    let denied = || Error::new(ErrorKind::PermissionDenied, "cannot read");
    let writer = MemoryWriter::new();
    let samples = vec![
        sample("a", 0, "a"),
        Err(denied().at("b")),
        sample("c", 0, "c"),
    ];
    let report = run(&writer, &[], samples, OnBadSample::Skip)
        .into_result()
        .unwrap();
    assert_eq!((report.samples, report.failed), (2, 1));
    assert_eq!(report.failures[0].kind(), ErrorKind::PermissionDenied);
    let samples = vec![sample("a", 0, "a"), Err(denied())];
    let outcome = run(&MemoryWriter::new(), &[], samples, OnBadSample::Skip);
    assert_eq!(outcome.error.unwrap().kind(), ErrorKind::PermissionDenied);
}

#[test]
fn an_empty_source_is_an_empty_data_set_with_its_classes() {
    let writer = MemoryWriter::new();
    let report = run(&writer, &["none"], vec![], OnBadSample::Fail)
        .into_result()
        .unwrap();
    assert_eq!(*report.published.unwrap().classes, ["none"]);
    assert!(rows(&writer).is_empty());
}

/// A writer that takes its time, for the first group most, and counts what it is given meanwhile.
#[derive(Debug)]
struct Slow {
    inner: MemoryWriter,
    groups: AtomicU64,
    held: AtomicU64,
    most_held: AtomicU64,
    largest_group: AtomicU64,
    paths: Mutex<Vec<String>>,
}

impl Slow {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryWriter::new(),
            groups: AtomicU64::new(0),
            held: AtomicU64::new(0),
            most_held: AtomicU64::new(0),
            largest_group: AtomicU64::new(0),
            paths: Mutex::default(),
        })
    }
}

impl fmt::Display for Slow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("slow:")
    }
}

#[async_trait]
impl StoreWriter for Slow {
    fn capability(&self) -> Capability {
        let mut capability = self.inner.capability();
        capability.request_samples = 64;
        capability.requests_in_flight = 4;
        capability
    }

    async fn published(&self) -> Result<Option<Manifest>> {
        self.inner.published().await
    }

    async fn put(&self, samples: Vec<NewSample>) -> Result<Vec<Put>> {
        let bytes = samples
            .iter()
            .map(|sample| sample.payload.len() as u64)
            .sum();
        let held = self.held.fetch_add(bytes, Ordering::SeqCst) + bytes;
        self.most_held.fetch_max(held, Ordering::SeqCst);
        self.largest_group.fetch_max(bytes, Ordering::SeqCst);
        let is_first = self.groups.fetch_add(1, Ordering::SeqCst) == 0;
        tokio::time::sleep(Duration::from_millis(if is_first { 200 } else { 5 })).await;
        let puts = self.inner.put(samples).await;
        self.held.fetch_sub(bytes, Ordering::SeqCst);
        puts
    }

    async fn publish(&self, manifest: Manifest) -> Result<Summary> {
        let paths = (0..manifest.catalog.len()).map(|row| manifest.catalog.row(row).path);
        *self.paths.lock().unwrap() = paths.map(|path| path.to_string()).collect();
        self.inner.publish(manifest).await
    }
}

fn into_slow(slow: &Arc<Slow>, samples: Vec<Result<NewSample>>, memory_bytes: u64) -> IngestReport {
    let mut source = Made {
        classes: vec![],
        samples: samples.into(),
    };
    let options = IngestOptions {
        memory_bytes,
        ..IngestOptions::default()
    };
    let destination = Destination::over(Arc::clone(slow) as Arc<dyn StoreWriter>).unwrap();
    let outcome = ingest(
        &mut source,
        &destination,
        &options,
        &Silent,
        &Cancel::default(),
    );
    outcome.into_result().unwrap()
}

#[test]
fn a_group_ends_at_so_many_samples_or_bytes_whichever_comes_first() {
    let large = "x".repeat(5000);
    let samples = |payload: &str| {
        (0..300)
            .map(|number| sample(&format!("{number:03}"), 0, payload))
            .collect::<Vec<_>>()
    };
    let slow = Slow::new();
    let report = into_slow(&slow, samples(&large), 80_000);
    assert_eq!((report.samples, report.bytes), (300, 1_500_000));
    let largest = slow.largest_group.load(Ordering::SeqCst);
    assert!((15_000..=20_000).contains(&largest), "{largest}");
    let most = slow.most_held.load(Ordering::SeqCst);
    assert!((40_000..=80_000).contains(&most), "{most}");

    let slow = Slow::new();
    into_slow(&slow, samples("x"), 80_000);
    assert_eq!(slow.largest_group.load(Ordering::SeqCst), 64);
    assert_eq!(slow.groups.load(Ordering::SeqCst), 5);
}

#[test]
fn a_sample_above_the_memory_is_a_group_of_its_own() {
    let slow = Slow::new();
    let samples = vec![
        sample("a", 0, "a"),
        sample("b", 0, &"x".repeat(1000)),
        sample("c", 0, "c"),
    ];
    assert_eq!(into_slow(&slow, samples, 100).samples, 3);
    assert_eq!(slow.largest_group.load(Ordering::SeqCst), 1000);
}

#[test]
fn every_row_is_published_whichever_group_is_written_first() {
    let slow = Slow::new();
    let samples = (0..6400).map(|number| sample(&format!("{number:04}"), 0, "x"));
    into_slow(&slow, samples.collect(), 1 << 20);
    let paths: Vec<_> = (0..6400).map(|number| format!("{number:04}")).collect();
    assert_eq!(*slow.paths.lock().unwrap(), paths);
}
