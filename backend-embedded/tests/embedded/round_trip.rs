//! What is put comes back; nothing else does.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use backend_embedded::{EmbeddedConfig, EmbeddedStore, EmbeddedWriter};
use futures_util::StreamExt;
use loader_core::{
    ErrorKind, FetchRequest, Fingerprint, NewSample, Part, Put, SampleKey, Store, StoreWriter,
    uri::percent_decode,
};

use crate::support::{
    assert_has, fetch, fetch_request, manifest, open, place, put, runtime, sample, sized, store,
    writer,
};

fn samples(count: u64) -> Vec<NewSample> {
    (0..count).map(sample).collect()
}

#[test]
fn samples_of_every_size_come_back() {
    let (_folder, place) = place();
    let runtime = runtime();
    let summary = store(&runtime, &place, &samples(100));
    let opened = open(&place);
    assert_eq!(opened.summary(), summary);
    assert_eq!(summary.fields["number"], "int64");
    assert_has(&runtime, &opened, &samples(100));
}

#[test]
fn a_second_put_of_the_same_samples_writes_nothing() {
    let (_folder, place) = place();
    let runtime = runtime();
    let writer = writer(&place);
    let group = vec![sample(6), sample(7), sample(6)];
    let first = runtime.block_on(writer.put(group.clone())).unwrap();
    assert!(matches!(
        first[..],
        [Put::Written(_), Put::Written(_), Put::Present(_)]
    ));
    let second = runtime.block_on(writer.put(group)).unwrap();
    assert!(
        second.iter().all(|put| matches!(put, Put::Present(_))),
        "{second:?}"
    );
}

#[test]
fn nothing_is_visible_before_it_is_published() {
    let (_folder, place) = place();
    let runtime = runtime();
    let writer = writer(&place);
    assert!(runtime.block_on(writer.published()).unwrap().is_none());
    let rows = put(&runtime, &writer, &samples(9));
    let error = EmbeddedStore::open(&place, EmbeddedConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    runtime
        .block_on(writer.publish(manifest(&rows[..4])))
        .unwrap();
    assert_has(&runtime, &open(&place), &samples(4));
}

#[test]
fn an_open_store_keeps_what_it_is_pinned_to() {
    let (_folder, place) = place();
    let runtime = runtime();
    store(&runtime, &place, &samples(20));
    let before = open(&place);
    store(&runtime, &place, &samples(30));
    assert_has(&runtime, &before, &samples(20));
    assert_has(&runtime, &open(&place), &samples(30));
    let indexes = std::fs::read_dir(&place).unwrap().filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .file_name()
            .to_str()
            .unwrap()
            .starts_with("index-")
    });
    assert_eq!(indexes.count(), 1, "the older index was not removed");
}

#[test]
fn the_published_manifest_can_be_extended() {
    let (_folder, place) = place();
    let runtime = runtime();
    store(&runtime, &place, &samples(5));
    let writer = writer(&place);
    let old = runtime.block_on(writer.published()).unwrap().unwrap();
    let mut rows: Vec<_> = (0..old.catalog.len())
        .map(|row| old.catalog.row(row))
        .collect();
    rows.extend(put(&runtime, &writer, &samples(12)[5..]));
    runtime.block_on(writer.publish(manifest(&rows))).unwrap();
    assert_eq!(&*old.classes, ["a", "b", "c"]);
    assert_has(&runtime, &open(&place), &samples(12));
}

#[test]
fn two_data_sets_of_one_fingerprint_do_not_mix() {
    let (_folder, place) = place();
    let runtime = runtime();
    let other = NewSample {
        payload: vec![7; 20_000].into(),
        ..sized(6, 20_000)
    };
    let first = store(&runtime, &place, &[sized(6, 20_000)]);
    let before = open(&place);
    let second = store(&runtime, &place, std::slice::from_ref(&other));
    assert_eq!(
        first.fingerprint, second.fingerprint,
        "path, size and label are the same"
    );
    assert_has(&runtime, &before, &[sized(6, 20_000)]);
    assert_has(&runtime, &open(&place), &[other]);
}

#[test]
fn an_empty_data_set_can_be_published() {
    let (_folder, place) = place();
    let runtime = runtime();
    let summary = store(&runtime, &place, &[]);
    assert_eq!((summary.samples, summary.bytes), (0, 0));
    let opened = open(&place);
    assert_has(&runtime, &opened, &[]);
    assert_eq!(runtime.block_on(opened.keys().count()), 0);
    assert_eq!(runtime.block_on(opened.metadata().count()), 0);
}

#[test]
fn keys_are_all_payloads_and_metadata_all_rows() {
    let (_folder, place) = place();
    let runtime = runtime();
    let writer = writer(&place);
    let all: Vec<_> = (0..9000).map(|number| sized(number, 3)).collect();
    let rows = put(&runtime, &writer, &all);
    runtime
        .block_on(writer.publish(manifest(&rows[..8500])))
        .unwrap();
    let opened = open(&place);
    let mut keys: Vec<SampleKey> = runtime.block_on(opened.keys().map(Result::unwrap).collect());
    let mut expected: Vec<_> = rows.iter().map(|row| row.key).collect();
    expected.sort_unstable();
    keys.sort_unstable();
    assert_eq!(keys, expected);
    let groups: Vec<_> = runtime.block_on(opened.metadata().map(Result::unwrap).collect());
    let mut listed: Vec<_> = groups.concat();
    listed.sort_by_key(|row| row.key);
    let mut published = rows[..8500].to_vec();
    published.sort_by_key(|row| row.key);
    assert_eq!(listed, published);
}

#[test]
fn payloads_are_fetched_by_key_too_orphans_included() {
    let (_folder, place) = place();
    let runtime = runtime();
    let writer = writer(&place);
    let rows = put(&runtime, &writer, &[sample(6), sample(7)]);
    runtime
        .block_on(writer.publish(manifest(&rows[..1])))
        .unwrap();
    let opened = open(&place);
    let request = FetchRequest::keys(vec![rows[1].key, SampleKey::default(), rows[0].key]);
    let [orphan, missing, known] =
        <[_; 3]>::try_from(fetch_request(&runtime, &opened, request)).unwrap();
    let orphan = orphan.outcome.unwrap();
    assert_eq!(
        (orphan.payload, orphan.label, orphan.path.len()),
        (sample(7).payload, -1, 0)
    );
    assert_eq!(missing.outcome.unwrap_err().kind(), ErrorKind::NotFound);
    let known = known.outcome.unwrap();
    assert_eq!(
        (known.path, known.payload),
        (sample(6).path, sample(6).payload)
    );
}

#[test]
fn only_the_parts_asked_for_are_delivered() {
    let (_folder, place) = place();
    let runtime = runtime();
    let parts = Part::sequence([("jpg", 5000), ("cls", 1), ("seg.png", 300)]);
    let sample = NewSample {
        parts,
        ..sized(1, 5301)
    };
    store(&runtime, &place, std::slice::from_ref(&sample));
    let opened = open(&place);
    let mut request = FetchRequest::rows(opened.summary().fingerprint, vec![0]);
    request.parts = Some(Arc::from(vec!["CLS".to_owned(), "none".to_owned()]));
    let fetched = fetch_request(&runtime, &opened, request)
        .remove(0)
        .outcome
        .unwrap();
    assert_eq!(&fetched.payload[..], &sample.payload[5000..5001]);
    assert_eq!(
        &fetched.part("cls").unwrap()[..],
        &sample.payload[5000..5001]
    );
    assert_eq!(fetched.parts.len(), 1);
}

#[test]
fn a_bad_target_is_an_outcome_and_not_the_end() {
    let (_folder, place) = place();
    let runtime = runtime();
    let writer = writer(&place);
    let mut rows = put(&runtime, &writer, &samples(8));
    rows[5].checksum = Some(1);
    rows[6].key = SampleKey::default();
    rows[7].nbytes -= 1;
    let paths: Vec<_> = rows.iter().map(|row| row.path.clone()).collect();
    runtime.block_on(writer.publish(manifest(&rows))).unwrap();
    let opened = open(&place);
    let row = |number: usize| {
        opened
            .index()
            .paths()
            .position(|path| path == &paths[number][..])
            .unwrap() as u64
    };
    let outcomes = fetch(&runtime, &opened, vec![row(5), row(6), row(7), 8, row(3)]);
    let kinds: Vec<_> = outcomes
        .iter()
        .map(|fetched| fetched.outcome.as_ref().err().map(loader_core::Error::kind))
        .collect();
    let expected = [
        ErrorKind::Corrupt,
        ErrorKind::Vanished,
        ErrorKind::Corrupt,
        ErrorKind::NotFound,
    ];
    assert_eq!(kinds[..4], expected.map(Some));
    assert_eq!(kinds[4], None);
    let error = outcomes[1].outcome.as_ref().unwrap_err();
    assert_eq!(error.path(), Some(&paths[6]));
    assert_eq!(error.store(), Some(opened.to_string().as_str()));
    assert_eq!(error.operation(), "fetch");
}

#[test]
fn rows_of_another_data_set_are_incompatible() {
    let (_folder, place) = place();
    let runtime = runtime();
    store(&runtime, &place, &samples(3));
    let request = FetchRequest::rows(Fingerprint::default(), vec![0, 1, 2]);
    for fetched in fetch_request(&runtime, &open(&place), request) {
        assert_eq!(fetched.outcome.unwrap_err().kind(), ErrorKind::Incompatible);
    }
}

#[test]
fn a_deadline_that_is_over_is_a_timeout_for_every_target() {
    let (_folder, place) = place();
    let runtime = runtime();
    store(&runtime, &place, &samples(3));
    let opened = open(&place);
    let mut request = FetchRequest::rows(opened.summary().fingerprint, vec![0, 1, 2]);
    request.deadline = Instant::now().checked_sub(Duration::from_millis(1));
    for fetched in fetch_request(&runtime, &opened, request) {
        assert_eq!(fetched.outcome.unwrap_err().kind(), ErrorKind::Timeout);
    }
}

#[test]
fn a_fetch_works_without_a_runtime() {
    let (_folder, place) = place();
    store(&runtime(), &place, &samples(40));
    let opened = open(&place);
    let request = FetchRequest::rows(opened.summary().fingerprint, (0..40).collect());
    let fetched = opened
        .fetch(request)
        .map(|fetched| fetched.outcome.map(|_| ()));
    let outcomes: Vec<_> =
        futures_util::FutureExt::now_or_never(fetched.collect::<Vec<_>>()).unwrap();
    assert!(outcomes.len() == 40 && outcomes.iter().all(Result::is_ok));
}

#[test]
fn a_dropped_stream_stops_the_work() {
    let (_folder, place) = place();
    let runtime = runtime();
    let large: Vec<_> = (0..64).map(|number| sized(number, 600_000)).collect();
    store(&runtime, &place, &large);
    let opened = open(&place);
    let stream = opened.fetch(FetchRequest::rows(
        opened.summary().fingerprint,
        (0..64).collect(),
    ));
    let mut stream = Box::pin(stream);
    let first = runtime.block_on(stream.next()).unwrap();
    assert!(first.outcome.is_ok());
    drop((stream, first));
    // Only one group was ahead, so the runtime ends at once and the environment is free for a writer with more rights.
    let started = Instant::now();
    drop(runtime);
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_payload_over_the_limit_fails_alone() {
    let (_folder, place) = place();
    let runtime = runtime();
    let mut config = EmbeddedConfig::default();
    config.max_payload_bytes = 1000;
    let writer = EmbeddedWriter::open_or_create(&place, config).unwrap();
    assert_eq!(writer.capability().max_payload_bytes, Some(1000));
    let outcome = runtime
        .block_on(writer.put(vec![sized(1, 1000), sized(2, 1001), sized(3, 10)]))
        .unwrap();
    let [Put::Written(_), Put::Failed(error), Put::Written(_)] = &outcome[..] else {
        panic!("{outcome:?}")
    };
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(error.path(), Some(&sized(2, 0).path));
}

#[test]
fn a_folder_without_a_store_is_not_found() {
    let (folder, place) = place();
    for path in [folder.path(), &place] {
        let error = EmbeddedStore::open(path, EmbeddedConfig::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.advice().is_some());
    }
}

#[test]
fn what_a_store_is_called_is_a_uri_that_opens_it_again() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    for name in [&b"a b%20#?"[..], "b\u{e4}ume".as_bytes(), b"x\xff%\xfe\n"] {
        let place = folder.path().join(OsStr::from_bytes(name));
        store(&runtime, &place, &samples(1));
        let uri = open(&place).to_string();
        assert_eq!(uri, writer(&place).to_string());
        assert!(
            uri.is_ascii() && !uri.contains([' ', '?', '#', '\n']),
            "{uri}"
        );
        let path = percent_decode(uri.strip_prefix("embedded:").unwrap()).unwrap();
        assert_eq!(Path::new(OsStr::from_bytes(&path)), place);
    }
    let missing = folder.path().join(OsStr::from_bytes(b"no\xff"));
    let error = EmbeddedStore::open(&missing, EmbeddedConfig::default()).unwrap_err();
    assert!(error.store().unwrap().ends_with("/no%FF"), "{error}");
}
