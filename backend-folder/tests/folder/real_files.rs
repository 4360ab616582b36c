//! Archives that other programs wrote.

use std::{collections::BTreeSet, fs, process::Command};

use backend_folder::{FolderConfig, FolderStore, KeySplit, SourceConfig};
use loader_core::{ErrorKind, Store};

use crate::support::{open, part, read_source, read_source_with, read_store, real_files, run};

#[test]
fn a_hard_link_has_the_bytes_of_what_it_links_to() {
    let Some(files) = real_files() else { return };
    for outcomes in [
        read_store(&open(&files.join("hardlink.tar"))),
        read_source(&files.join("hardlink.tar")).0,
    ] {
        let bytes = |path: &str| part(outcomes[path].as_ref().unwrap(), "txt");
        assert_eq!(bytes("hardlink/file").len(), 15);
        assert_eq!(bytes("hardlink/file"), bytes("hardlink/hard"));
    }
}

#[test]
fn sparse_files_of_all_forms_are_put_together() {
    let Some(files) = real_files() else { return };
    let path = files.join("sparse-formats.tar");
    // The names are such that two forms have no dot: cut to see all of them, the names are made to have one.
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let mut at = 0;
    while let Some(found) = bytes[at..]
        .windows(11)
        .position(|window| window == b"sparse-gnu\0")
    {
        let start = at + found;
        // "sparse.gnu" differs by one byte, and so does the sum of its header.
        bytes[start + 6] = b'.';
        let header = start / 512 * 512;
        bytes[header + 148..header + 156].fill(b' ');
        let sum: u32 = bytes[header..header + 512]
            .iter()
            .map(|byte| u32::from(*byte))
            .sum();
        bytes[header + 148..header + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        at = start + 11;
    }
    let changed = folder.path().join("sparse-formats.tar");
    fs::write(&changed, &bytes).unwrap();
    run(Command::new("gzip").arg("-k").arg(&changed));
    // Every second byte is a hole, and so is the end.
    let mut expected = vec![0; 200];
    (0..94).for_each(|number| expected[2 * number + 1] = b"Go"[number % 2]);
    expected[189] = b'!';
    let zipped = folder.path().join("sparse-formats.tar.gz");
    for path in [&changed, &zipped] {
        let (outcomes, left_out) = read_source(path);
        assert_eq!(left_out, 1, "the member called end");
        let mut names = BTreeSet::new();
        for (path, outcome) in &outcomes {
            let sample = outcome.as_ref().unwrap();
            for piece in &*sample.parts {
                let name = format!(
                    "{}.{}",
                    path.strip_prefix("sparse-formats/").unwrap(),
                    piece.name
                );
                assert_eq!(part(sample, &piece.name), expected, "{name}");
                names.insert(name);
            }
        }
        assert_eq!(
            Vec::from_iter(names),
            [
                "sparse-posix-0.0",
                "sparse-posix-0.1",
                "sparse-posix-1.0",
                "sparse.gnu"
            ]
        );
    }
    let in_place = read_store(&open(&changed));
    for outcome in in_place.values() {
        assert_eq!(outcome.as_ref().unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(
            outcome
                .as_ref()
                .unwrap_err()
                .message()
                .contains("farhaul ingest")
        );
    }
}

#[test]
fn a_real_gzip_shard_is_read_at_ingest_alone() {
    let Some(files) = real_files() else { return };
    let path = files.join("sample.tgz");
    let error = FolderStore::open(&path, FolderConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let (outcomes, left_out) = read_source(&path);
    assert_eq!((outcomes.len(), left_out), (90, 0));
    for number in 10..100 {
        let sample = outcomes[&format!("sample/{number}")].as_ref().unwrap();
        assert!(part(sample, "png").starts_with(b"\x89PNG"));
        assert_eq!(part(sample, "cls"), sample.label.to_string().as_bytes());
    }
}

#[test]
fn closing_blocks_that_are_not_whole_are_no_error() {
    let Some(files) = real_files() else { return };
    let path = files.join("simple_missing_last_header.tar");
    let store = open(&path);
    assert_eq!(
        (store.summary().samples, store.left_out()),
        (0, 3),
        "a, b and c have no dot"
    );
    assert_eq!(read_source(&path).1, 3);
}

#[test]
fn long_names_of_seven_zip_are_read() {
    let Some(files) = real_files() else { return };
    let mut config = SourceConfig::default();
    config.key_split = KeySplit::LastDot;
    let (outcomes, left_out) = read_source_with(&files.join("7z_long_path.tar"), config);
    assert_eq!((outcomes.len(), left_out), (1, 0));
    let (path, outcome) = outcomes.iter().next().unwrap();
    assert!(
        path.starts_with("7z_long_path/") && path.ends_with("/test") && path.len() > 103,
        "{path}"
    );
    assert_eq!(outcome.as_ref().unwrap_err().kind(), ErrorKind::Empty);
}
