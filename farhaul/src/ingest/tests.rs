use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use loader_core::{Fields, NewSample, Part, Result, Store, memory::MemoryWriter};

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

#[test]
fn an_empty_source_is_an_empty_data_set_with_its_classes() {
    let writer = MemoryWriter::new();
    let report = run(&writer, &["none"], vec![], OnBadSample::Fail)
        .into_result()
        .unwrap();
    assert_eq!(*report.published.unwrap().classes, ["none"]);
    assert!(rows(&writer).is_empty());
}
