//! WebDataset tars: grouping, labels, links, damage.

use backend_folder::{FolderConfig, FolderStore};
use loader_core::{ErrorKind, FetchRequest, NO_LABEL, Store};
use tempfile::tempdir;

use crate::support::{
    catalog, error, fetch, member, open, outcomes, part, paths, read_source, read_store, shards,
    special_member, tar, write,
};

#[test]
fn shards_of_one_name_are_refused_by_both_names() {
    let bytes = tar(&[("1.jpg", b"x")]);
    let folder = shards(&[("a.tar", &bytes), ("a.tgz", &bytes)]);
    let error = FolderStore::open(folder.path(), FolderConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(
        error.message().contains("a.tar") && error.message().contains("a.tgz"),
        "{error}"
    );
}

#[test]
fn samples_of_one_path_in_two_shards_are_one_error_that_names_both() {
    let folder = shards(&[
        ("a.tar", &tar(&[("b/c.jpg", b"1"), ("d.jpg", b"2")])),
        ("a/b.tar", &tar(&[("c.jpg", b"3")])),
    ]);
    let outcomes = outcomes(folder.path());
    assert_eq!(outcomes.len(), 2);
    let twice = error(&outcomes, "a/b/c");
    assert_eq!(twice.kind(), ErrorKind::Conflict);
    assert!(
        twice.message().contains("a.tar") && twice.message().contains("a/b.tar"),
        "{twice}"
    );
}

#[test]
fn a_brace_pattern_names_shards_below_its_folder() {
    let shard = |number: u8| tar(&[("x.jpg", &[number][..])]);
    let folder = shards(&[
        ("d/im-008.tar", &shard(8)),
        ("d/im-009.tar", &shard(9)),
        ("d/im-010.tar", &shard(10)),
        ("d/im-011.tar", &shard(11)),
    ]);
    let outcomes = outcomes(&folder.path().join("d/im-{008..010}.tar"));
    assert_eq!(paths(&outcomes), ["im-008/x", "im-009/x", "im-010/x"]);
}

#[test]
fn labels_are_demanded_of_all_shards_or_of_none() {
    let without = tar(&[
        ("1.jpg", b"x"),
        ("1.txt", b"caption"),
        ("README", b"no sample"),
    ]);
    let folder = shards(&[("a.tar", &without)]);
    assert_eq!(
        outcomes(folder.path())["a/1"].as_ref().unwrap().label,
        NO_LABEL
    );
    assert_eq!(open(folder.path()).left_out(), 1);
    write(
        folder.path(),
        "b.tar",
        &tar(&[("2.jpg", b"x"), ("2.cls", b" 12\n")]),
    );
    let outcomes = outcomes(folder.path());
    assert_eq!(outcomes["b/2"].as_ref().unwrap().label, 12);
    let missing = error(&outcomes, "a/1");
    assert_eq!(missing.kind(), ErrorKind::MissingPart);
    assert!(missing.message().contains("jpg, txt"), "{missing}");
}

#[test]
fn a_label_that_is_no_number_fails_alone() {
    let long = [b' '; 70];
    let folder = shards(&[(
        "a.tar",
        &tar(&[
            ("1.jpg", b"x"),
            ("1.cls", b"cat"),
            ("2.jpg", b"x"),
            ("2.cls", b"1.5"),
            ("3.jpg", b"x"),
            ("3.cls", &long),
            ("4.jpg", b"x"),
            ("4.cls", b"-7"),
        ]),
    )]);
    let outcomes = outcomes(folder.path());
    for path in ["a/1", "a/2", "a/3"] {
        assert_eq!(
            error(&outcomes, path).kind(),
            ErrorKind::Malformed,
            "{path}"
        );
    }
    assert_eq!(outcomes["a/4"].as_ref().unwrap().label, -7);
}

#[test]
fn a_part_called_cls_wins_over_longer_names() {
    let folder = shards(&[(
        "a.tar",
        &tar(&[
            ("1.jpg", b"x"),
            ("1.old.cls", b"1"),
            ("1.cls", b"2"),
            ("1.new.cls", b"3"),
        ]),
    )]);
    assert_eq!(outcomes(folder.path())["a/1"].as_ref().unwrap().label, 2);
}

#[test]
fn members_apart_are_put_together_in_the_order_of_the_archive() {
    let bytes = tar(&[
        ("b.jpg", b"B"),
        ("a.jpg", b"A"),
        ("b.txt", b"bb"),
        ("a.cls", b"1"),
        ("b.cls", b"2"),
    ]);
    let folder = shards(&[("s.tar", &bytes)]);
    let outcomes = outcomes(folder.path());
    assert_eq!(outcomes["s/b"].as_ref().unwrap().payload, "Bbb2");
    assert_eq!(outcomes["s/a"].as_ref().unwrap().payload, "A1");
}

#[test]
fn names_that_differ_in_case_alone_are_one_part_twice() {
    let folder = shards(&[(
        "s.tar",
        &tar(&[("a.jpg", b"1"), ("a.JPG", b"2"), ("A.jpg", b"3")]),
    )]);
    let outcomes = outcomes(folder.path());
    assert_eq!(error(&outcomes, "s/a").kind(), ErrorKind::Conflict);
    assert!(outcomes["s/A"].is_ok());
}

#[test]
fn links_are_followed_and_lost_ones_are_errors() {
    let mut bytes = member("d/a.jpg", b"bytes");
    bytes.extend(special_member("d/b.jpg", b"", b'1', "./d/a.jpg"));
    bytes.extend(special_member("d/c.jpg", b"", b'1', "d/b.jpg"));
    bytes.extend(special_member("e/s.jpg", b"", b'2', "../d/c.jpg"));
    bytes.extend(special_member("e/chain.jpg", b"", b'2', "s.jpg"));
    bytes.extend(special_member("later.jpg", b"", b'2', "plain"));
    bytes.extend(special_member("lost.jpg", b"", b'1', "gone.jpg"));
    bytes.extend(special_member("loop.jpg", b"", b'2', "loop.jpg"));
    bytes.extend(special_member("out.jpg", b"", b'2', "../../etc/passwd"));
    bytes.extend(member("plain", b"no dot"));
    let folder = shards(&[("s.tar", &bytes)]);
    let outcomes = outcomes(folder.path());
    for path in ["s/d/a", "s/d/b", "s/d/c", "s/e/s", "s/e/chain"] {
        assert_eq!(outcomes[path].as_ref().unwrap().payload, "bytes", "{path}");
    }
    assert_eq!(outcomes["s/later"].as_ref().unwrap().payload, "no dot");
    for path in ["s/lost", "s/loop", "s/out"] {
        assert_eq!(
            error(&outcomes, path).kind(),
            ErrorKind::Malformed,
            "{path}"
        );
    }
}

#[test]
fn a_link_to_a_label_is_a_label() {
    let mut bytes = tar(&[("a.cls", b"5"), ("a.jpg", b"x"), ("b.jpg", b"y")]);
    bytes.truncate(bytes.len() - 1024);
    bytes.extend(special_member("b.cls", b"", b'1', "a.cls"));
    let folder = shards(&[("s.tar", &bytes)]);
    assert_eq!(outcomes(folder.path())["s/b"].as_ref().unwrap().label, 5);
}

#[test]
fn hidden_members_and_folders_are_left_out() {
    let mut bytes = tar(&[
        ("._a.jpg", b"1"),
        ("__MACOSX/a.jpg", b"1"),
        (".git/x.jpg", b"1"),
        ("a.jpg", b"1"),
    ]);
    bytes.splice(0..0, special_member("d.v1", b"", b'5', ""));
    let folder = shards(&[("s.tar", &bytes)]);
    assert_eq!(outcomes(folder.path()).len(), 1);
    assert_eq!(open(folder.path()).left_out(), 3);
}

#[test]
fn only_the_bytes_of_wanted_parts_are_read() {
    let folder = shards(&[(
        "s.tar",
        &tar(&[("a.jpg", b"image"), ("a.seg.png", b"mask"), ("a.cls", b"1")]),
    )]);
    let store = open(folder.path());
    let mut request = FetchRequest::rows(store.summary().fingerprint, vec![0]);
    request.parts = Some(["CLS".to_owned(), "jpg".to_owned(), "none".to_owned()].into());
    let sample = fetch(&store, request).remove(&0).unwrap().unwrap();
    assert_eq!(sample.payload, "image1");
    assert_eq!(&sample.part("cls").unwrap()[..], b"1");
    assert_eq!(sample.parts.len(), 2);
}

#[test]
fn more_shards_than_may_be_open_are_read() {
    let folder = tempdir().unwrap();
    for number in 0..40 {
        write(
            folder.path(),
            &format!("{number:03}.tar"),
            &tar(&[("a.jpg", &[number])]),
        );
    }
    let mut config = FolderConfig::default();
    config.open_shards = 3;
    let store = FolderStore::open(folder.path(), config).unwrap();
    let outcomes = read_store(&store);
    assert_eq!(outcomes.len(), 40);
    for (number, outcome) in (0_u8..).zip(outcomes.values()) {
        assert_eq!(outcome.as_ref().unwrap().payload, [number][..]);
    }
}

#[test]
fn a_fingerprint_is_that_of_what_an_ingest_stores() {
    let folder = shards(&[
        ("b.tar", &tar(&[("1.jpg", b"x"), ("1.cls", b"3")])),
        ("a.x.tar", &tar(&[("2.jpg", b"xy"), ("2.cls", b"4")])),
    ]);
    let rows = read_source(folder.path()).0;
    let rows = rows.values().map(|outcome| outcome.as_ref().unwrap());
    let rows: Vec<_> = rows
        .map(|sample| {
            (
                sample.path.to_vec(),
                sample.payload.len() as u64,
                sample.label,
            )
        })
        .collect();
    let expected = loader_core::Fingerprint::of_rows(
        rows.iter()
            .map(|(path, nbytes, label)| (&path[..], *nbytes, *label)),
    );
    assert_eq!(open(folder.path()).summary().fingerprint, expected);
    assert!(catalog(&open(folder.path())).find(b"a.x/2").is_some());
}

#[test]
fn payloads_are_read_byte_for_byte_whatever_the_order_of_their_sizes() {
    let large: Vec<u8> = (0..100_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let folder = shards(&[(
        "s.tar",
        &tar(&[
            ("a.jpg", &large),
            ("a.png", &large[..50_000]),
            ("a.txt", b"t"),
            ("a.webp", &large[..9000]),
        ]),
    )]);
    let outcomes = outcomes(folder.path());
    let sample = outcomes["s/a"].as_ref().unwrap();
    assert_eq!(part(sample, "jpg"), large);
    assert_eq!(part(sample, "png"), large[..50_000]);
    assert_eq!(part(sample, "txt"), "t");
    assert_eq!(part(sample, "webp"), large[..9000]);
}

#[test]
fn long_targets_of_links_are_read_in_both_dialects() {
    let folder = "a_rather_long_folder_name/".repeat(6);
    let target = format!("{folder}a.jpg");
    let record = format!(" linkpath={target}\n");
    let record = format!("{}{record}", record.len() + 3);
    let bytes = [
        special_member("././@LongLink", format!("{target}\0").as_bytes(), b'L', ""),
        member("cut", b"bytes"),
        special_member("././@LongLink", format!("{target}\0").as_bytes(), b'K', ""),
        special_member("gnu.jpg", b"", b'1', "cut"),
        special_member("x", record.as_bytes(), b'x', ""),
        special_member("pax.jpg", b"", b'1', "cut"),
    ];
    let set = shards(&[("s.tar", &bytes.concat())]);
    let outcomes = outcomes(set.path());
    assert_eq!(outcomes.len(), 3);
    for outcome in outcomes.values() {
        assert_eq!(outcome.as_ref().unwrap().payload, "bytes");
    }
}

#[test]
fn old_headers_without_a_mark_are_read() {
    let mut bytes = tar(&[("a.jpg", b"bytes"), ("a.cls", b"3")]);
    for header in [0, 1024] {
        let block = &mut bytes[header..header + 512];
        block[257..265].fill(0);
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    let folder = shards(&[("s.tar", &bytes)]);
    assert_eq!(outcomes(folder.path())["s/a"].as_ref().unwrap().label, 3);
}
