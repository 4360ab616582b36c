//! What an ingest reads besides what can be read in place: gzip, fields, MDS; and what goes wrong in between.

use std::{fs, path::Path, process::Command};

use backend_folder::{SourceConfig, SourceFormat, source};
use loader_core::{Error, ErrorKind, FieldValue, Source};
use serde_json::json;
use tempfile::tempdir;

use crate::support::{
    member, part, read_source, read_source_with, run, special_member, tar, write,
};

fn open(path: &Path) -> Box<dyn Source> {
    source::open(path, SourceFormat::Auto, SourceConfig::default()).unwrap()
}

fn gzip(path: &Path) {
    run(Command::new("gzip").arg(path));
}

#[test]
fn a_folder_comes_in_path_order_with_its_classes() {
    let folder = tempdir().unwrap();
    for name in ["b/2.jpg", "a/1.jpg", "b/10.jpg", "a.b/3.jpg"] {
        write(folder.path(), name, name.as_bytes());
    }
    fs::create_dir(folder.path().join("empty")).unwrap();
    let mut source = open(folder.path());
    assert_eq!(source.classes(), ["a", "a.b", "b", "empty"]);
    assert_eq!(source.expected_samples(), Some(4));
    let samples: Vec<_> = std::iter::from_fn(|| source.next_sample())
        .map(Result::unwrap)
        .collect();
    let paths: Vec<_> = samples
        .iter()
        .map(|sample| (sample.path.to_string(), sample.label))
        .collect();
    let expected = [
        ("a.b/3.jpg", 1),
        ("a/1.jpg", 0),
        ("b/10.jpg", 2),
        ("b/2.jpg", 2),
    ];
    assert_eq!(
        paths,
        expected.map(|(path, label)| (path.to_owned(), label))
    );
    assert!(source.next_sample().is_none());
}

#[test]
fn a_file_that_goes_before_it_is_read_fails_alone() {
    let folder = tempdir().unwrap();
    for number in 0..50 {
        write(folder.path(), &format!("c/{number:02}.jpg"), b"x");
    }
    let mut source = open(folder.path());
    fs::remove_file(folder.path().join("c/30.jpg")).unwrap();
    let outcomes: Vec<_> = std::iter::from_fn(|| source.next_sample()).collect();
    assert_eq!(outcomes.len(), 50);
    let failed: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(
        (failed[0].kind(), failed[0].path().unwrap().to_string()),
        (ErrorKind::Vanished, "c/30.jpg".to_owned())
    );
    assert_eq!(failed[0].operation(), "ingest");
}

#[test]
fn a_source_that_is_dropped_early_ends_its_threads() {
    let folder = tempdir().unwrap();
    for number in 0..300 {
        write(folder.path(), &format!("a/{number}.jpg"), &[1; 5000]);
    }
    let mut config = SourceConfig::default();
    config.read_ahead_bytes = 20_000;
    let mut source = source::open(folder.path(), SourceFormat::Auto, config).unwrap();
    assert!(source.next_sample().unwrap().is_ok());
    drop(source);
    let bytes: Vec<u8> = (0..300)
        .flat_map(|number| member(&format!("{number}.jpg"), &[1; 5000]))
        .collect();
    let shard = folder.path().join("s.tar");
    fs::write(&shard, bytes).unwrap();
    gzip(&shard);
    let mut source =
        source::open(&folder.path().join("s.tar.gz"), SourceFormat::Auto, config).unwrap();
    assert!(source.next_sample().unwrap().is_ok());
    drop(source);
}

#[test]
fn gzip_shards_regroup_links_and_scattered_members() {
    let folder = tempdir().unwrap();
    let mut bytes = [
        member("b.jpg", b"B"),
        member("a.jpg", b"A"),
        member("b.cls", b"2"),
        member("a.cls", b"1"),
    ]
    .concat();
    bytes.extend(special_member("c.jpg", b"", b'1', "b.jpg"));
    bytes.extend(special_member("c.cls", b"", b'2', "a.cls"));
    write(folder.path(), "s.tar", &bytes);
    gzip(&folder.path().join("s.tar"));
    write(
        folder.path(),
        "t.tar",
        &tar(&[("d.jpg", b"D"), ("d.cls", b"4")]),
    );
    let (outcomes, _) = read_source(folder.path());
    let got: Vec<_> = outcomes
        .iter()
        .map(|(path, outcome)| (path.as_str(), outcome.as_ref().unwrap()))
        .collect();
    let got: Vec<_> = got
        .iter()
        .map(|(path, sample)| (*path, sample.label, &sample.payload[..]))
        .collect();
    assert_eq!(
        got,
        [
            ("s/a", 1, &b"A1"[..]),
            ("s/b", 2, b"B2"),
            ("s/c", 1, b"B1"),
            ("t/d", 4, b"D4")
        ]
    );
}

#[test]
fn members_too_far_apart_in_a_gzip_shard_are_one_error_each() {
    let folder = tempdir().unwrap();
    let mut bytes: Vec<u8> = (0..20)
        .flat_map(|number| member(&format!("{number:02}.jpg"), &[1; 1000]))
        .collect();
    bytes.extend((0..20).flat_map(|number| member(&format!("{number:02}.cls"), b"1")));
    write(folder.path(), "s.tar", &bytes);
    gzip(&folder.path().join("s.tar"));
    let mut config = SourceConfig::default();
    config.read_ahead_bytes = 2500;
    let (outcomes, _) = read_source_with(folder.path(), config);
    assert_eq!(outcomes.len(), 20);
    let failed: Vec<_> = outcomes
        .values()
        .filter_map(|outcome| outcome.as_ref().err())
        .map(Error::kind)
        .collect();
    assert_eq!(
        failed,
        [ErrorKind::TooLarge; 11],
        "ten times 1001 bytes do not fit into four times 2500"
    );
}

#[test]
fn damaged_gzip_delivers_what_is_whole_and_names_the_rest() {
    let folder = tempdir().unwrap();
    // Bytes that do not compress, so that the damage lies in the second half of the members.
    let step = |number: &u32| Some(number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    let noise: Vec<u8> = std::iter::successors(Some(1_u32), step)
        .map(|number| number.to_be_bytes()[0])
        .take(200_000)
        .collect();
    let bytes: Vec<u8> = noise
        .chunks(20_000)
        .zip(0..)
        .flat_map(|(chunk, number)| member(&format!("{number}.jpg"), chunk))
        .collect();
    write(folder.path(), "s.tar", &bytes);
    gzip(&folder.path().join("s.tar"));
    let path = folder.path().join("s.tar.gz");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let (outcomes, _) = read_source(folder.path());
    let failed: Vec<_> = outcomes
        .iter()
        .filter(|(_, outcome)| outcome.is_err())
        .collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(
        failed[0].1.as_ref().unwrap_err().kind(),
        ErrorKind::Truncated
    );
    assert!(
        outcomes.len() > 3 && outcomes.len() < 8,
        "{:?}",
        outcomes.keys()
    );
    let mut damaged = whole.clone();
    damaged[whole.len() / 2..][..64].fill(0xff);
    fs::write(&path, &damaged).unwrap();
    let (outcomes, _) = read_source(folder.path());
    assert!(outcomes.values().any(Result::is_err) && outcomes.values().any(Result::is_ok));
}

#[test]
fn json_parts_become_fields() {
    let folder = tempdir().unwrap();
    let json = br#"{"width": 640, "tags": ["a", "b"], "nested": {"x": 1}, "score": 0.5}"#;
    write(
        folder.path(),
        "s.tar",
        &tar(&[
            ("a.jpg", b"x"),
            ("a.json", json),
            ("b.jpg", b"x"),
            ("b.json", b"{"),
        ]),
    );
    let (outcomes, _) = read_source(folder.path());
    let sample = outcomes["s/a"].as_ref().unwrap();
    assert_eq!(sample.fields["width"], FieldValue::Int(640));
    assert_eq!(sample.fields["score"], FieldValue::Float(0.5));
    assert_eq!(sample.fields.len(), 3);
    assert_eq!(part(sample, "json"), &json[..]);
    assert!(outcomes["s/b"].as_ref().unwrap().fields.is_empty());
}

#[test]
fn class_names_beside_tars_are_taken_over() {
    let folder = tempdir().unwrap();
    write(
        folder.path(),
        "s.tar",
        &tar(&[("a.jpg", b"x"), ("a.cls", b"1")]),
    );
    write(folder.path(), "classnames.txt", b"cat\ndog\n");
    assert_eq!(open(folder.path()).classes(), ["cat", "dog"]);
}

/// An MDS shard of (image, label) rows.
fn mds_shard(rows: &[(&[u8], i64)]) -> Vec<u8> {
    let description = json!({"column_names": ["image", "label"], "column_encodings": ["jpeg", "int"], "column_sizes": [null, 8]}).to_string();
    let size = |image: &[u8]| u32::try_from(4 + image.len() + 8).unwrap();
    let count = u32::try_from(rows.len()).unwrap();
    let mut at = 4 + 4 * (count + 1) + u32::try_from(description.len()).unwrap();
    let mut bytes = count.to_le_bytes().to_vec();
    bytes.extend_from_slice(&at.to_le_bytes());
    for (image, _) in rows {
        at += size(image);
        bytes.extend_from_slice(&at.to_le_bytes());
    }
    bytes.extend_from_slice(description.as_bytes());
    for (image, label) in rows {
        bytes.extend_from_slice(&u32::try_from(image.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(image);
        bytes.extend_from_slice(&label.to_le_bytes());
    }
    bytes
}

fn mds_index(name: &str, samples: usize) -> String {
    mds_index_of(&[(name.to_owned(), samples)])
}

fn mds_index_of(shards: &[(String, usize)]) -> String {
    let shard = |(name, samples): &(String, usize)| {
        let file = json!({"basename": name, "bytes": 0, "hashes": {}});
        json!({
            "column_encodings": ["jpeg", "int"], "column_names": ["image", "label"], "column_sizes": [null, 8], "compression": null,
            "format": "mds", "hashes": [], "raw_data": file, "samples": samples, "size_limit": 67_108_864, "version": 2, "zip_data": null
        })
    };
    json!({"version": 2, "shards": shards.iter().map(shard).collect::<Vec<_>>()}).to_string()
}

#[test]
fn more_mds_shards_than_are_kept_open_are_read_and_empty_ones_too() {
    let folder = tempdir().unwrap();
    let mut shards = Vec::new();
    for number in 0..40_usize {
        let name = format!("shard.{number:05}.mds");
        let label = i64::try_from(number).unwrap();
        let image = [7, u8::try_from(number).unwrap()];
        let rows: Vec<(&[u8], i64)> = vec![(&image, label); number % 3];
        write(folder.path(), &name, &mds_shard(&rows));
        shards.push((name, rows.len()));
    }
    write(
        folder.path(),
        "index.json",
        mds_index_of(&shards).as_bytes(),
    );
    let (outcomes, _) = read_source(folder.path());
    let labels = shards
        .iter()
        .zip(0..)
        .flat_map(|((_, samples), label)| vec![label; *samples]);
    for (number, label) in labels.enumerate() {
        let sample = outcomes[&number.to_string()].as_ref().unwrap();
        assert_eq!((sample.label, i64::from(sample.payload[1])), (label, label));
    }
    assert_eq!(outcomes.len(), 39);
}

fn mds_error(folder: &Path) -> Error {
    source::open(folder, SourceFormat::Auto, SourceConfig::default()).unwrap_err()
}

#[test]
fn damaged_mds_samples_fail_alone() {
    let folder = tempdir().unwrap();
    let rows: [(&[u8], i64); 3] = [(b"first", 1), (b"", 2), (b"third", 3)];
    let mut bytes = mds_shard(&rows);
    write(
        folder.path(),
        "index.json",
        mds_index("s.mds", 3).as_bytes(),
    );
    bytes.truncate(bytes.len() - 2);
    write(folder.path(), "s.mds", &bytes);
    let (outcomes, _) = read_source(folder.path());
    assert_eq!(outcomes["0"].as_ref().unwrap().label, 1);
    assert_eq!(outcomes["1"].as_ref().unwrap_err().kind(), ErrorKind::Empty);
    assert_eq!(
        outcomes["2"].as_ref().unwrap_err().kind(),
        ErrorKind::Truncated
    );
    // The second offset goes backwards, so that two samples make no sense.
    bytes[8..12].copy_from_slice(&5_u32.to_le_bytes());
    write(folder.path(), "s.mds", &bytes);
    let (outcomes, _) = read_source(folder.path());
    assert_eq!(
        outcomes["0"].as_ref().unwrap_err().kind(),
        ErrorKind::Malformed
    );
    assert_eq!(
        outcomes["1"].as_ref().unwrap_err().kind(),
        ErrorKind::Malformed
    );
}

#[test]
fn an_mds_shard_that_lies_about_itself_is_refused_before_any_sample() {
    let folder = tempdir().unwrap();
    let good = mds_shard(&[(b"image", 1)]);
    write(
        folder.path(),
        "index.json",
        mds_index("s.mds", 1).as_bytes(),
    );
    let refuse = |change: &dyn Fn(&mut Vec<u8>), kind: ErrorKind| {
        let mut bytes = good.clone();
        change(&mut bytes);
        write(folder.path(), "s.mds", &bytes);
        let error = mds_error(folder.path());
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains("s.mds"));
    };
    refuse(&|bytes| bytes[..4].fill(0xff), ErrorKind::Malformed);
    refuse(&|bytes| bytes[4..8].fill(0xff), ErrorKind::Malformed);
    refuse(&|bytes| bytes[4] += 1, ErrorKind::Malformed);
    refuse(&|bytes| bytes.truncate(2), ErrorKind::Truncated);
    refuse(&|bytes| bytes.truncate(9), ErrorKind::Truncated);
    write(folder.path(), "s.mds", &good);
    write(
        folder.path(),
        "index.json",
        mds_index("s.mds", u32::MAX as usize).as_bytes(),
    );
    assert_eq!(mds_error(folder.path()).kind(), ErrorKind::Malformed);
    write(
        folder.path(),
        "index.json",
        mds_index("../s.mds", 1).as_bytes(),
    );
    assert_eq!(mds_error(folder.path()).kind(), ErrorKind::Malformed);
    write(
        folder.path(),
        "index.json",
        mds_index("s.mds", 1)
            .replace("\"jpeg\"", "\"pkl\"")
            .as_bytes(),
    );
    assert_eq!(mds_error(folder.path()).kind(), ErrorKind::Unsupported);
    write(
        folder.path(),
        "index.json",
        br#"{"version": 3, "shards": []}"#,
    );
    assert_eq!(mds_error(folder.path()).kind(), ErrorKind::Version);
}
