//! The index as its users see it: built, written, mapped and looked up.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    path::Path,
    sync::Arc,
};

use arrow_array::{
    ArrayRef, Float32Array, Int16Array, NullArray, RecordBatch, StringArray, StructArray,
};
use arrow_ipc::{reader::FileReader, writer::FileWriter};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use index::{Index, IndexBuilder, from_catalog};
use loader_core::{Catalog, ErrorKind, FieldValue, Fingerprint, Part, Row, SampleKey};
use proptest::prelude::*;

fn row(path: &str, nbytes: u64, label: i64) -> Row {
    Row {
        path: path.into(),
        key: SampleKey::of_content(path.as_bytes(), nbytes),
        nbytes,
        checksum: Some(nbytes.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        label,
        parts: Part::sequence([("jpg", nbytes)]),
        fields: BTreeMap::new(),
    }
}

fn build(rows: &[Row], classes: &[&str]) -> Index {
    let mut builder = IndexBuilder::new();
    builder.extend(rows);
    builder.finish(classes.iter().map(ToString::to_string).collect::<Vec<_>>())
}

fn rows(index: &Index) -> Vec<Row> {
    (0..index.len()).map(|number| index.row(number)).collect()
}

fn write(index: &Index, path: &Path) {
    index.write(&mut File::create(path).unwrap()).unwrap();
}

/// Rows with everything that an index can hold.
fn varied() -> Vec<Row> {
    let mut rows = vec![
        row("b/caf\u{e9}.jpg", 10, 1),
        row("a/1.jpg", 20, 0),
        Row {
            checksum: None,
            ..row("c/no checksum.jpg", 0, -1)
        },
        Row {
            parts: Part::sequence([("jpg", 30), ("cls", 3)]),
            ..row("shard/1", 33, 7)
        },
        Row {
            parts: Part::sequence([("jpg", 5), ("seg.png", 4), ("json", 1)]),
            ..row("shard/2", 10, 7)
        },
        Row {
            path: vec![b'z', 0xff, 0].into(),
            ..row("z", 1, 2)
        },
        Row {
            nbytes: u64::from(u32::MAX) + 5,
            parts: Part::sequence([("bin", u64::from(u32::MAX)), ("x", 5)]),
            ..row("big", 0, 3)
        },
    ];
    let scattered = Part {
        name: "a".into(),
        offset: 4,
        nbytes: 2,
        media_type: "x/y".into(),
    };
    rows.push(Row {
        parts: Arc::from([scattered]),
        ..row("scattered", 9, 0)
    });
    let fields = [
        ("flag", FieldValue::Bool(true)),
        ("width", FieldValue::Int(-640)),
        ("score", FieldValue::Float(0.25)),
        ("caption", FieldValue::Text("a cat \u{1f408}".into())),
        ("box", FieldValue::IntList(vec![1, 2, 3])),
        ("mean", FieldValue::FloatList(vec![0.5, -0.5])),
        (
            "tags",
            FieldValue::TextList(vec!["x".into(), String::new()]),
        ),
    ];
    rows[0].fields = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    rows[3].fields = fields
        .iter()
        .take(3)
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    rows
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(|a, b| a.path.cmp(&b.path));
    rows
}

#[test]
fn every_row_comes_back_in_path_order() {
    let index = build(&varied(), &["ant", "bee"]);
    assert_eq!(rows(&index), sorted(varied()));
    let read = Index::from_bytes(index.to_bytes().unwrap()).unwrap();
    assert_eq!(rows(&read), sorted(varied()));
    assert_eq!(read.summary(), index.summary());
    assert_eq!(read.fields()["tags"], "list<text>");
    assert_eq!(&*read.classes(), ["ant", "bee"]);
}

#[test]
fn the_summary_is_what_the_rows_say() {
    let rows = sorted(varied());
    let summary = build(&rows, &[]).summary();
    assert_eq!(
        summary.fingerprint,
        Fingerprint::of_rows(
            rows.iter()
                .map(|row| (&row.path[..], row.nbytes, row.label))
        )
    );
    assert_eq!(summary.samples, rows.len() as u64);
    assert_eq!(
        summary.bytes,
        rows.iter().map(|row| row.nbytes).sum::<u64>()
    );
}

#[test]
fn of_rows_with_one_path_the_last_stays() {
    let mut builder = IndexBuilder::new();
    let with_field = Row {
        fields: [("old".to_owned(), FieldValue::Int(1))].into(),
        ..row("a", 1, 1)
    };
    for row in [
        &with_field,
        &row("b", 2, 2),
        &row("a", 3, 3),
        &row("a", 4, 4),
    ] {
        builder.push(row);
    }
    let index = builder.finish([]);
    assert_eq!(rows(&index), [row("a", 4, 4), row("b", 2, 2)]);
    assert!(
        index.fields().is_empty(),
        "the only row with the field was replaced"
    );
}

#[test]
fn an_old_manifest_and_new_rows_merge() {
    let old = build(&[row("a", 1, 0), row("c", 1, 0)], &["x"]);
    let mut builder = IndexBuilder::new();
    builder.extend((0..old.len()).map(|number| old.row(number)));
    builder.extend([row("b", 2, 1), row("c", 9, 1)]);
    assert_eq!(
        rows(&builder.finish([])),
        [row("a", 1, 0), row("b", 2, 1), row("c", 9, 1)]
    );
}

#[test]
fn a_row_is_found_by_its_exact_path() {
    let index = build(&varied(), &[]);
    for number in 0..index.len() {
        assert_eq!(index.find(index.path(number)), Some(number));
    }
    assert_eq!(index.find(b"a/"), None);
    assert_eq!(index.find(b""), None);
    assert_eq!(index.find(b"zz"), None);
    assert_eq!(
        index
            .rows_of_label(7)
            .map(|number| index.path(number))
            .collect::<Vec<_>>(),
        [b"shard/1", b"shard/2"]
    );
    assert!(index.paths().is_sorted());
}

#[test]
fn an_empty_data_set_has_an_index() {
    let index = build(&[], &["only"]);
    let read = Index::from_bytes(index.to_bytes().unwrap()).unwrap();
    assert_eq!((read.len(), read.summary().samples), (0, 0));
    assert_eq!(read.find(b"a"), None);
    assert_eq!(&*read.classes(), ["only"]);
}

#[test]
fn other_classes_make_another_file_over_the_same_rows() {
    let index = Index::from_bytes(build(&varied(), &["x"]).to_bytes().unwrap()).unwrap();
    let renamed = from_catalog(&index, &["y".to_owned()]).unwrap();
    assert!(
        renamed.snapshot().is_none(),
        "the old file has the old classes"
    );
    let read = Index::from_bytes(renamed.to_bytes().unwrap()).unwrap();
    assert_eq!(&*read.classes(), ["y"]);
    assert_eq!(rows(&read), rows(&index));
}

#[test]
fn columns_of_an_opened_file_lie_in_its_map() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.arrow");
    write(&build(&varied(), &[]), &path);
    let index = Index::open(&path).unwrap();
    let snapshot = index.snapshot().unwrap();
    assert_eq!(snapshot.len() as u64, path.metadata().unwrap().len());
    let map = snapshot.as_ptr_range();
    assert!(
        map.contains(&index.path(0).as_ptr()),
        "paths were copied out of the map"
    );
    assert!(
        map.contains(&index.sample_path(1).as_bytes().as_ptr()),
        "a path was copied out of the map"
    );
}

#[test]
fn an_opened_index_outlives_its_file_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.arrow");
    write(&build(&varied(), &[]), &path);
    let index = Index::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(rows(&index), sorted(varied()));
    assert_eq!(Index::open(&path).unwrap_err().kind(), ErrorKind::NotFound);
}

/// Bytes of the file a row beyond its path.
fn overhead(rows: &[Row]) -> f64 {
    let paths: usize = rows.iter().map(|row| row.path.len()).sum();
    let bytes = build(rows, &["a", "b"]).to_bytes().unwrap().len() - paths;
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let overhead = bytes as f64 / rows.len() as f64;
    overhead
}

#[test]
fn a_sample_takes_at_most_64_bytes_and_its_path() {
    let folder: Vec<_> = (0..10_000)
        .map(|number| row(&format!("class/{number:08}.JPEG"), number, 0))
        .collect();
    assert!(overhead(&folder) <= 64.0, "{}", overhead(&folder));
    let two = |number: u64| Part::sequence([("jpg", number), ("cls", 3)]);
    let tar: Vec<_> = (0..10_000)
        .map(|number| Row {
            parts: two(number),
            ..row(&format!("shard/{number:08}"), number + 3, 0)
        })
        .collect();
    assert!(overhead(&tar) <= 64.0, "{}", overhead(&tar));
}

#[test]
fn a_file_cut_at_any_length_is_a_typed_error() {
    let whole = build(&varied(), &["x"]).to_bytes().unwrap();
    for length in 0..whole.len() {
        let error = Index::from_bytes(whole.slice(..length)).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed),
            "{length}: {error}"
        );
    }
}

#[test]
fn other_files_are_no_index() {
    for bytes in [
        &b"hello, this is no Arrow file"[..],
        b"ARROW1\0\0ARROW1",
        b"ARROW1\0\0\xff\xff\xff\x7fARROW1",
        &[0; 4096],
    ] {
        assert!(
            Index::from_bytes(Bytes::copy_from_slice(bytes)).is_err(),
            "{bytes:?}"
        );
    }
}

#[test]
fn bytes_that_are_not_aligned_are_read_as_well() {
    let whole = build(&varied(), &["x"]).to_bytes().unwrap();
    for shift in 1..8 {
        let mut shifted = vec![0; shift];
        shifted.extend_from_slice(&whole);
        let index = Index::from_bytes(Bytes::from(shifted).slice(shift..)).unwrap();
        assert_eq!(rows(&index), sorted(varied()));
    }
}

/// Reads everything that an index offers; what it says does not matter.
fn touch(index: &Index) {
    for row in rows(index) {
        let _ = index.find(&row.path);
    }
    let _ = (
        index.summary(),
        index.rows_of_label(0).count(),
        index.paths().count(),
    );
}

#[test]
fn a_file_with_any_byte_changed_never_panics() {
    let whole = build(&varied(), &["x"]).to_bytes().unwrap();
    for place in 0..whole.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = whole.to_vec();
            bytes[place] ^= change;
            if let Ok(index) = Index::from_bytes(bytes.into()) {
                touch(&index);
            }
        }
    }
}

proptest! {
    #[test]
    fn a_file_with_many_bytes_changed_never_panics(changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..12)) {
        let mut bytes = build(&varied(), &["x"]).to_bytes().unwrap().to_vec();
        for (place, value) in changes {
            let place = usize::from(place) % bytes.len();
            bytes[place] = value;
        }
        if let Ok(index) = Index::from_bytes(bytes.into()) {
            touch(&index);
        }
    }

    #[test]
    fn any_rows_come_back(entries in proptest::collection::btree_map(
        proptest::collection::vec(any::<u8>(), 0..12),
        (any::<u64>(), any::<i64>(), any::<Option<u64>>(), proptest::collection::vec(0_u64..1000, 0..4), any::<Option<i64>>()),
        0..40,
    ), turn in any::<bool>()) {
        let expected: Vec<Row> = entries.into_iter().map(|(path, (nbytes, label, checksum, parts, field))| {
            let parts: Vec<_> = parts.iter().map(|length| ("jpg", *length)).collect();
            let sum = parts.iter().map(|part| part.1).sum();
            let nbytes = if parts.is_empty() { nbytes } else { sum };
            Row {
                key: SampleKey::of_content(&path, nbytes),
                path: path.into(),
                nbytes,
                checksum,
                label,
                parts: Part::sequence(parts),
                fields: field.map(|value| ("n".to_owned(), FieldValue::Int(value))).into_iter().collect(),
            }
        }).collect();
        let mut pushed = expected.clone();
        if turn {
            pushed.reverse();
        }
        let index = Index::from_bytes(build(&pushed, &[]).to_bytes().unwrap()).unwrap();
        prop_assert_eq!(rows(&index), expected);
    }
}

#[test]
fn a_million_rows_are_built_opened_and_found() {
    let mut builder = IndexBuilder::new();
    let path = |number: u64| format!("n{:04}/{number:010}.JPEG", number % 1000);
    for number in 0..1_000_000 {
        builder.push(&row(
            &path(number),
            number,
            i64::try_from(number % 1000).unwrap(),
        ));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("index.arrow");
    write(&builder.finish([]), &file);
    let index = Index::open(&file).unwrap();
    assert_eq!(index.len(), 1_000_000);
    for number in (0..1_000_000).step_by(997) {
        let found = index.find(path(number).as_bytes()).unwrap();
        assert_eq!(index.nbytes(found), number);
    }
}

#[test]
fn the_file_of_version_1_is_read_for_ever() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/version-1.arrow");
    let index = Index::open(golden).unwrap();
    assert_eq!(rows(&index), sorted(varied()));
    assert_eq!(&*index.classes(), ["ant", "bee"]);
    assert_eq!(index.fingerprint(), build(&varied(), &[]).fingerprint());
}

/// The golden file as Arrow's own reader sees it, written again with another header and further columns.
fn rewritten(change: impl Fn(&mut serde_json::Value), extra: Vec<(&str, ArrayRef)>) -> Bytes {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/version-1.arrow");
    let batch = FileReader::try_new(File::open(golden).unwrap(), None)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let schema = batch.schema();
    let mut header = serde_json::from_str(&schema.metadata()["farhaul"]).unwrap();
    change(&mut header);
    // New columns come first, so that every later one is misread unless they are stepped over exactly.
    let mut fields: Vec<_> = extra
        .iter()
        .map(|(name, array)| Arc::new(Field::new(*name, array.data_type().clone(), true)))
        .collect();
    fields.extend(schema.fields().iter().cloned());
    let mut arrays: Vec<_> = extra.into_iter().map(|(_, array)| array).collect();
    arrays.extend(batch.columns().iter().cloned());
    let metadata = HashMap::from([("farhaul".to_owned(), header.to_string())]);
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
    let mut writer = FileWriter::try_new(Vec::new(), &schema).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap().into()
}

#[test]
fn a_later_minor_version_with_unknown_columns_is_read() {
    let count = varied().len();
    let texts = || Arc::new(StringArray::from(vec![Some("t"); count]));
    let pair = StructArray::from(vec![
        (
            Arc::new(Field::new("x", DataType::Utf8, true)),
            texts() as ArrayRef,
        ),
        (
            Arc::new(Field::new("y", DataType::Float32, true)),
            Arc::new(Float32Array::from(vec![1.5; count])) as ArrayRef,
        ),
    ]);
    let extra: Vec<(&str, ArrayRef)> = vec![
        ("later text", texts()),
        ("later pair", Arc::new(pair)),
        (
            "field:half known",
            Arc::new(Int16Array::from(vec![None; count])),
        ),
        ("later null", Arc::new(NullArray::new(count))),
    ];
    let bytes = rewritten(
        |header| {
            header["version"] = serde_json::json!([1, 7]);
            header["later"] = serde_json::json!({ "a": [1] });
        },
        extra,
    );
    assert_eq!(rows(&Index::from_bytes(bytes).unwrap()), sorted(varied()));
}

#[test]
fn an_unknown_major_version_is_named() {
    let error = Index::from_bytes(rewritten(
        |header| header["version"] = serde_json::json!([2, 0]),
        vec![],
    ))
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Version);
    assert!(
        error.message().contains("2.0") && error.message().contains("version 1"),
        "{error}"
    );
}

#[test]
fn a_header_that_contradicts_the_columns_is_corrupt() {
    for (key, value) in [
        ("samples", serde_json::json!(3)),
        ("layouts", serde_json::json!([])),
    ] {
        let error =
            Index::from_bytes(rewritten(|header| header[key] = value.clone(), vec![])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{key}");
    }
}
