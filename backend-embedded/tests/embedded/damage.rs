//! Files that were cut or changed by others.

use std::{fs, os::unix::fs::FileExt, path::Path};

use backend_embedded::{EmbeddedConfig, EmbeddedStore};
use loader_core::{ErrorKind, NewSample, Put, StoreWriter};

use crate::support::{
    assert_has, assert_well, child, child_command, fetch, open, place, runtime, sample, sized,
    store, writer,
};

fn samples(count: u64) -> Vec<NewSample> {
    (0..count).map(sample).collect()
}

/// Copies a store; LMDB's lock file is not needed.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() && entry.file_name() != "lock.mdb" {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn cut(file: &Path, length: u64) {
    fs::File::options()
        .write(true)
        .open(file)
        .unwrap()
        .set_len(length)
        .unwrap();
}

#[test]
fn a_cut_data_file_is_a_typed_error_and_never_a_signal() {
    const TEST: &str = "damage::a_cut_data_file_is_a_typed_error_and_never_a_signal";
    if let Some((_, folder)) = child() {
        // In a process of its own, because a signal would end all tests.
        let whole = fs::metadata(folder.join("data.mdb")).unwrap().len();
        let lengths = (0..40).map(|step| whole * step / 40).chain([
            1,
            16,
            151,
            152,
            4095,
            4096,
            4248,
            8191,
            8192,
            8193,
            whole - 1,
        ]);
        for (number, length) in lengths.enumerate() {
            let copied = folder.join(format!("copy{number}"));
            copy(&folder, &copied);
            cut(&copied.join("data.mdb"), length);
            let error = EmbeddedStore::open(&copied, EmbeddedConfig::default()).unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::Truncated,
                "{length} of {whole}: {error}"
            );
            assert!(error.store().is_some());
        }
        return;
    }
    let (_folder, place) = place();
    store(&runtime(), &place, &samples(40));
    assert_well(&child_command(TEST, "cut", &place).output().unwrap());
}

#[test]
fn a_payload_that_the_disk_has_changed_is_written_anew_when_it_is_put_again() {
    let (_folder, place) = place();
    let runtime = runtime();
    let samples: Vec<_> = (0..)
        .zip([100, 2000, 4096, 5000, 70_001, 200_000])
        .map(|(number, length)| sized(number, length))
        .collect();
    store(&runtime, &place, &samples);
    let file = place.join("data.mdb");
    let bytes = fs::read(&file).unwrap();
    let data = fs::File::options().write(true).open(&file).unwrap();
    for NewSample { payload, .. } in &samples {
        let length = payload.len();
        for start in 0..bytes.len() - length {
            if bytes[start..start + length] == payload[..] {
                let last = start + length - 1;
                data.write_all_at(&[bytes[last] ^ 1], last as u64).unwrap();
            }
        }
    }
    let outcomes = fetch(&runtime, &open(&place), (0..6).collect());
    for fetched in outcomes {
        assert_eq!(fetched.outcome.unwrap_err().kind(), ErrorKind::Corrupt);
    }
    let writer = writer(&place);
    let written = || {
        let puts = runtime.block_on(writer.put(samples.clone())).unwrap();
        puts.iter()
            .filter(|put| matches!(put, Put::Written(_)))
            .count()
    };
    assert_eq!((written(), written()), (6, 0));
    assert_has(&runtime, &open(&place), &samples);
}

fn index_file(folder: &Path) -> std::path::PathBuf {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .into_iter()
        .find(|path| path.extension().is_some_and(|suffix| suffix == "arrow"))
        .unwrap()
}

#[test]
fn a_cut_index_is_a_typed_error() {
    let (folder, place) = place();
    store(&runtime(), &place, &samples(10));
    let whole = fs::metadata(index_file(&place)).unwrap().len();
    for (number, length) in (0..20)
        .map(|step| whole * step / 20)
        .chain([whole - 1])
        .enumerate()
    {
        let copied = folder.path().join(format!("copy{number}"));
        copy(&place, &copied);
        cut(&index_file(&copied), length);
        let error = EmbeddedStore::open(&copied, EmbeddedConfig::default()).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed),
            "{length}: {error}"
        );
    }
}

#[test]
fn an_index_that_is_not_the_published_one_is_corrupt() {
    let (folder, place) = place();
    let runtime = runtime();
    store(&runtime, &place, &samples(10));
    let other = folder.path().join("other");
    store(&runtime, &other, &samples(11));
    fs::copy(index_file(&other), index_file(&place)).unwrap();
    let error = EmbeddedStore::open(&place, EmbeddedConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    fs::remove_file(index_file(&place)).unwrap();
    let error = EmbeddedStore::open(&place, EmbeddedConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn other_files_are_no_store() {
    let (_folder, place) = place();
    fs::create_dir_all(&place).unwrap();
    for (bytes, kind) in [
        (vec![0; 100_000], ErrorKind::Malformed),
        (b"short".to_vec(), ErrorKind::Truncated),
        (vec![0xff; 100_000], ErrorKind::Malformed),
        (vec![], ErrorKind::Truncated),
    ] {
        fs::write(place.join("data.mdb"), bytes).unwrap();
        let error = EmbeddedStore::open(&place, EmbeddedConfig::default()).unwrap_err();
        assert_eq!(error.kind(), kind);
    }
}

/// What the golden store holds.
fn golden() -> Vec<NewSample> {
    (0..4)
        .zip([0, 3, 3000, 9000])
        .map(|(number, length)| sized(number, length))
        .collect()
}

#[test]
fn the_store_of_version_1_is_read_for_ever() {
    let (_folder, place) = place();
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/version-1"),
        &place,
    );
    assert_has(&runtime(), &open(&place), &golden());
    // An older store can be added to as well.
    store(&runtime(), &place, &samples(8));
    assert_has(&runtime(), &open(&place), &samples(8));
}
