//! Growing files, full disks and crowds.

use std::{process::Command, sync::Barrier, thread};

use backend_embedded::{EmbeddedConfig, EmbeddedStore, EmbeddedWriter};
use loader_core::{ErrorKind, NewSample, Store, StoreWriter};

use crate::support::{
    assert_has, assert_well, child, child_command, fetch, manifest, open, place, put, runtime,
    sample, sized, store, writer,
};

#[test]
fn the_file_grows_as_samples_come() {
    let (_folder, place) = place();
    let runtime = runtime();
    let samples: Vec<_> = (0..50).map(|number| sized(number, 1_000_000)).collect();
    store(&runtime, &place, &samples);
    assert_has(&runtime, &open(&place), &samples);
}

#[test]
fn one_group_may_be_larger_than_the_file_was() {
    let (_folder, place) = place();
    let runtime = runtime();
    let samples: Vec<_> = (0..4).map(|number| sized(number, 12_000_000)).collect();
    store(&runtime, &place, &samples);
    assert_has(&runtime, &open(&place), &samples);
}

#[test]
fn a_limit_on_the_file_is_a_full_disk_and_harms_nothing() {
    let (_folder, place) = place();
    let runtime = runtime();
    let mut config = EmbeddedConfig::default();
    config.max_file_bytes = 4 << 20;
    let writer = EmbeddedWriter::open_or_create(&place, config).unwrap();
    let kept: Vec<_> = (0..10).map(|number| sized(number, 100_000)).collect();
    let rows = put(&runtime, &writer, &kept);
    runtime.block_on(writer.publish(manifest(&rows))).unwrap();
    let error = runtime
        .block_on(writer.put(vec![sized(99, 5_000_000)]))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DiskFull);
    assert!(error.message().contains("5000000"), "{error}");
    assert_has(&runtime, &open(&place), &kept);
    let more = put(&runtime, &writer, &[sized(100, 50_000)]);
    runtime.block_on(writer.publish(manifest(&more))).unwrap();
}

#[test]
fn a_store_tells_the_limits_that_it_was_opened_with() {
    let (_folder, place) = place();
    store(&runtime(), &place, &[sized(1, 10)]);
    let mut config = EmbeddedConfig::default();
    config.max_payload_bytes = 1234;
    let store = EmbeddedStore::open(&place, config).unwrap();
    assert_eq!(store.capability().max_payload_bytes, Some(1234));
}

#[test]
fn a_full_disk_during_an_ingest_harms_nothing() {
    const TEST: &str = "limits::a_full_disk_during_an_ingest_harms_nothing";
    let kept: Vec<_> = (0..8).map(|number| sized(number, 100_000)).collect();
    if let Some((_, folder)) = child() {
        let runtime = runtime();
        let writer = writer(&folder);
        let mut error = None;
        for number in 100..200 {
            error = runtime
                .block_on(writer.put(vec![sized(number, 100_000)]))
                .err();
            if error.is_some() {
                break;
            }
        }
        let error = error.expect("the file cannot become larger than the limit of the process");
        assert_eq!(error.kind(), ErrorKind::DiskFull);
        assert!(error.advice().unwrap().contains("100000"), "{error:?}");
        assert_has(&runtime, &open(&folder), &kept);
        return;
    }
    let (_folder, place) = place();
    let runtime = runtime();
    store(&runtime, &place, &kept);
    // A limit on file sizes stands for a full disk, which cannot be had without mounting one: both fail at the same calls.
    let inner = child_command(TEST, "fill", &place);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 6000; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args());
    limited.envs(
        inner
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    assert_well(&limited.output().unwrap());
    assert_has(&runtime, &open(&place), &kept);
    store(&runtime, &place, &[sample(7)]);
}

#[test]
fn two_hundred_readers_read_at_once() {
    let (_folder, place) = place();
    let samples: Vec<NewSample> = (0..64).map(sample).collect();
    store(&runtime(), &place, &samples);
    let runtime = runtime();
    let start = Barrier::new(200);
    thread::scope(|scope| {
        for number in 0..200_u64 {
            let (runtime, start, place) = (&runtime, &start, &place);
            scope.spawn(move || {
                start.wait();
                let opened = open(place);
                let rows: Vec<_> = (0..64).map(|row| (row * 37 + number) % 64).collect();
                assert!(
                    fetch(runtime, &opened, rows)
                        .iter()
                        .all(|fetched| fetched.outcome.is_ok())
                );
            });
        }
    });
}
