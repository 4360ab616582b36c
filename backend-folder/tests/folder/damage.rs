//! Tars that are cut, lie, or change while they are read.

use std::fs;

use backend_folder::{FolderConfig, FolderStore};
use loader_core::ErrorKind;
use proptest::prelude::*;

use crate::support::{
    Outcomes, error, member, open, outcomes, paths, read_source, read_store, run, shards,
    special_member, tar,
};

/// Three members, the second one's header broken at this byte.
fn broken_header(at: usize, value: u8) -> Outcomes {
    let mut bytes = [
        member("a.jpg", b"1"),
        member("b.jpg", b"2"),
        member("c.jpg", b"3"),
    ]
    .concat();
    bytes[1024 + at] = value;
    let other = tar(&[("d.jpg", b"4")]);
    let folder = shards(&[("s.tar", &bytes), ("t.tar", &other)]);
    outcomes(folder.path())
}

#[test]
fn a_damaged_header_costs_its_own_sample_where_the_next_one_is_found() {
    let outcomes = broken_header(105, b'9');
    assert_eq!(paths(&outcomes), ["s/a", "s/b", "s/c", "t/d"]);
    let damaged = error(&outcomes, "s/b");
    assert_eq!(damaged.kind(), ErrorKind::Malformed);
    assert!(
        damaged.message().contains("shard s") && damaged.message().contains("1024"),
        "{damaged}"
    );
    assert_eq!(outcomes["s/c"].as_ref().unwrap().payload, "3");
}

#[test]
fn a_header_whose_size_leads_nowhere_ends_the_shard_with_an_error_that_names_its_sample() {
    for (at, value) in [(126, b'7'), (130, b'x'), (124, 0xff)] {
        let outcomes = broken_header(at, value);
        assert_eq!(paths(&outcomes), ["s/a", "s/b", "t/d"]);
        assert_eq!(error(&outcomes, "s/b").kind(), ErrorKind::Malformed);
    }
}

#[test]
fn a_block_that_is_no_header_ends_the_shard_with_an_error_that_names_it() {
    let outcomes = broken_header(257, b'x');
    assert_eq!(paths(&outcomes), ["s", "s/a", "t/d"]);
    assert_eq!(error(&outcomes, "s").kind(), ErrorKind::Malformed);
    assert!(error(&outcomes, "s").message().contains("shard s"));
}

#[test]
fn a_name_without_its_member_is_an_error() {
    let long = format!("{}.jpg", "x".repeat(120));
    let bytes = [
        member("a.jpg", b"1"),
        special_member("././@LongLink", long.as_bytes(), b'L', ""),
    ]
    .concat();
    let folder = shards(&[("s.tar", &bytes)]);
    let outcomes = outcomes(folder.path());
    assert_eq!(
        error(&outcomes, &format!("s/{}", "x".repeat(120))).kind(),
        ErrorKind::Truncated
    );
    assert!(outcomes["s/a"].is_ok());
}

#[test]
fn a_member_that_claims_more_than_there_is_is_cut_and_named() {
    for size in [
        &b"77777777777\0"[..],
        b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"\x80\0\0\0\0\0\0\x10\0\0\0\0",
    ] {
        let mut bytes = [
            member("a.jpg", b"1"),
            member("b.cls", b"2"),
            member("b.jpg", b"3"),
        ]
        .concat();
        let header = &mut bytes[2048..2560];
        header[124..136].copy_from_slice(size);
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let folder = shards(&[("s.tar", &bytes)]);
        let outcomes = outcomes(folder.path());
        let cut = error(&outcomes, "s/b");
        assert_eq!(cut.kind(), ErrorKind::Truncated);
        assert!(
            cut.message().contains("b.jpg") && cut.message().contains("shard s"),
            "{cut}"
        );
        assert_eq!(
            error(&outcomes, "s/a").kind(),
            ErrorKind::MissingPart,
            "others have a label"
        );
    }
}

#[test]
fn extended_records_have_limits_and_change_sizes() {
    let huge = special_member("x", &vec![b'1'; 2 << 20], b'x', "");
    let folder = shards(&[("s.tar", &[member("a.jpg", b"1"), huge].concat())]);
    let cut = outcomes(folder.path());
    assert_eq!(error(&cut, "s").kind(), ErrorKind::TooLarge);

    // The header says 1 byte, the records say 3: the records are right.
    let mut bytes = special_member("x", b"10 size=3\n", b'x', "");
    bytes.extend(special_member("a.jpg", b"1", b'0', ""));
    bytes[1536..1539].copy_from_slice(b"123");
    bytes.extend(member("b.jpg", b"2"));
    let folder = shards(&[("s.tar", &bytes)]);
    assert_eq!(
        outcomes(folder.path())["s/a"].as_ref().unwrap().payload,
        "123"
    );
}

#[test]
fn a_sample_above_the_limit_is_refused_before_anything_is_allocated() {
    let folder = shards(&[(
        "s.tar",
        &tar(&[
            ("a.jpg", &[1; 60]),
            ("a.png", &[1; 60]),
            ("b.jpg", &[1; 101]),
            ("c.jpg", &[1; 100]),
        ]),
    )]);
    let mut config = FolderConfig::default();
    config.max_sample_bytes = 100;
    let outcomes = read_store(&FolderStore::open(folder.path(), config).unwrap());
    assert_eq!(error(&outcomes, "s/a").kind(), ErrorKind::TooLarge);
    assert_eq!(error(&outcomes, "s/b").kind(), ErrorKind::TooLarge);
    assert!(outcomes["s/c"].is_ok());
}

#[test]
fn a_shard_that_changes_or_goes_fails_its_samples_alone() {
    let bytes = tar(&[("a.jpg", b"1")]);
    let folder = shards(&[
        ("changed.tar", &bytes),
        ("gone.tar", &bytes),
        ("same.tar", &bytes),
    ]);
    let store = open(folder.path());
    assert!(
        read_store(&store).values().all(Result::is_ok),
        "all shards are open now"
    );
    fs::write(
        folder.path().join("changed.tar"),
        tar(&[("a.jpg", b"12345"), ("b.jpg", b"1")]),
    )
    .unwrap();
    fs::remove_file(folder.path().join("gone.tar")).unwrap();
    let outcomes = read_store(&store);
    assert_eq!(error(&outcomes, "changed/a").kind(), ErrorKind::Changed);
    assert!(outcomes["gone/a"].is_ok(), "an open file outlives its name");
    assert!(outcomes["same/a"].is_ok());
    let fresh = shards(&[("gone.tar", &bytes), ("same.tar", &bytes)]);
    let store = open(fresh.path());
    fs::remove_file(fresh.path().join("gone.tar")).unwrap();
    let outcomes = read_store(&store);
    assert_eq!(error(&outcomes, "gone/a").kind(), ErrorKind::Vanished);
    assert!(outcomes["same/a"].is_ok());
}

/// Three samples of two parts, the second one larger than a block.
fn three_samples() -> Vec<u8> {
    let image = [0xab; 700];
    let members: [(&str, &[u8]); 6] = [
        ("0.cls", b"0"),
        ("0.jpg", b"zero"),
        ("1.cls", b"1"),
        ("1.jpg", &image),
        ("2.cls", b"2"),
        ("2.jpg", b"two"),
    ];
    tar(&members)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cut_shard_delivers_what_is_whole_and_loses_nothing_in_silence(cut in 0_usize..6000, compress: bool) {
        let whole = three_samples();
        let cut = cut.min(whole.len());
        // Another shard says what every sample must have.
        let other = tar(&[("x.jpg", b"x"), ("x.cls", b"1")]);
        let folder = shards(&[("s.tar", &whole[..cut]), ("t.tar", &other)]);
        let outcomes = if compress {
            run(std::process::Command::new("gzip").arg(folder.path().join("s.tar")));
            read_source(folder.path()).0
        } else {
            outcomes(folder.path())
        };
        // The last byte of each sample's content, and where its first header begins.
        for (number, (start, end)) in [(0, 1540), (2048, 4284), (4608, 6147)].into_iter().enumerate() {
            let outcome = outcomes.get(&format!("s/{number}"));
            if cut >= end {
                prop_assert!(outcome.is_some_and(Result::is_ok), "{number} is whole at {cut}");
            } else if cut > start {
                let failed = outcome.is_some_and(Result::is_err) || outcomes.get("s").is_some_and(Result::is_err);
                prop_assert!(failed, "{number} is cut at {cut}: {outcomes:?}");
            } else {
                prop_assert!(outcome.is_none());
            }
        }
    }

    #[test]
    fn no_damage_makes_it_panic(damage in prop::collection::vec((0_usize..6200, any::<u8>()), 1..12), reseal: bool) {
        let mut bytes = three_samples();
        for (at, byte) in damage {
            let at = at % bytes.len();
            bytes[at] = byte;
            if reseal {
                let header = &mut bytes[at / 512 * 512..][..512];
                header[148..156].fill(b' ');
                let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
                header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            }
        }
        let folder = shards(&[("s.tar", &bytes)]);
        // Sparse members differ between the two by design; that neither panics is what counts.
        let _ = read_store(&open(folder.path()));
        let _ = read_source(folder.path());
    }
}
