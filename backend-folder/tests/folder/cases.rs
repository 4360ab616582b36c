//! The generated folders, tars and MDS sets give the outcomes that their manifest names, in place and at ingest.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use backend_folder::{
    FolderConfig, FolderStore, KeySplit, SourceConfig, SourceFormat, layout_on_disk, source,
};
use loader_core::{ErrorKind, Row, SampleKey, Store};
use serde_json::Value;

use crate::support::{
    Outcomes, generated_cases, open, part, read_source, read_source_with, read_store, run,
};

fn cases(root: &Path, kind: &str) -> Vec<Value> {
    let manifest: Value =
        serde_json::from_slice(&fs::read(root.join("manifest.json")).unwrap()).unwrap();
    let cases = manifest["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|case| case["kind"] == kind);
    let cases: Vec<_> = cases.cloned().collect();
    assert!(!cases.is_empty(), "{kind}");
    cases
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

/// Compares what came with what the case's samples say; `prefix` comes before their keys.
fn compare(case: &Value, outcomes: &Outcomes, prefix: &str) {
    let name = text(case, "name");
    let mut named = BTreeSet::new();
    for sample in case["samples"].as_array().unwrap() {
        let wanted = text(sample, "outcome");
        let Some(key) = sample["key"].as_str() else {
            assert_eq!(wanted, "absent", "{name}");
            let file = sample["file"]
                .as_str()
                .or(sample["member"].as_str())
                .unwrap();
            assert!(!outcomes.contains_key(file), "{name}: {file} is no sample");
            continue;
        };
        let path = format!("{prefix}{key}");
        let outcome = outcomes.get(&path).unwrap_or_else(|| {
            panic!(
                "{name}: {path} did not come; there are {:?}",
                outcomes.keys()
            )
        });
        match (wanted, outcome) {
            ("ok" | "either", Ok(sample)) => {
                let image = sample.parts.iter().find(|part| part.is_image()).unwrap();
                assert!(part(sample, &image.name).len() > 20, "{name}: {path}");
            }
            ("error" | "either", Err(error)) => {
                assert!(error.kind().is_of_one_sample(), "{name}: {error}");
            }
            (wanted, outcome) => panic!("{name}: {path} should be {wanted}, is {outcome:?}"),
        }
        if let (Ok(outcome), Some(label)) = (outcome, sample["label"].as_i64()) {
            assert_eq!(outcome.label, label, "{name}: {path}");
        }
        named.insert(path);
    }
    for path in outcomes.keys().filter(|path| !named.contains(*path)) {
        // The dangling link is seen through the linked class folder too.
        assert!(
            name == "imagefolder_symlinks" && path == "linked/3.jpg",
            "{name}: {path} came, which nobody named"
        );
    }
}

#[test]
fn folders_are_read_as_their_manifest_says() {
    let root = generated_cases();
    for case in cases(&root, "imagefolder") {
        let path = root.join(text(&case, "path"));
        let store = open(&path);
        let in_place = read_store(&store);
        compare(&case, &in_place, "");
        let (ingested, left_out) = read_source(&path);
        compare(&case, &ingested, "");
        let absent = case["samples"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|sample| sample["outcome"] == "absent")
            .count();
        if text(&case, "name") != "imagefolder_symlinks" {
            assert_eq!(
                (store.left_out(), left_out),
                (absent as u64, absent as u64),
                "{case}"
            );
        }
        let classes: Vec<_> = case["classes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|class| class.as_str().unwrap())
            .collect();
        assert_eq!(
            store
                .summary()
                .classes
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
            classes
        );
        for (path_of_sample, sample) in in_place
            .iter()
            .filter_map(|(path, outcome)| Some((path, outcome.as_ref().ok()?)))
        {
            assert_eq!(sample.payload, fs::read(path.join(path_of_sample)).unwrap());
        }
    }
}

#[test]
fn two_normal_forms_of_a_name_are_two_classes_and_a_warning() {
    let root = generated_cases();
    let store = open(&root.join("imagefolder/unicode_names"));
    assert_eq!(store.warnings().len(), 1, "{:?}", store.warnings());
    assert!(store.warnings()[0].contains("e\\u{301}") || store.warnings()[0].contains("\\u{301}"));
}

#[test]
fn a_dangling_link_is_an_error_that_names_it_and_a_loop_ends() {
    let root = generated_cases();
    let store = open(&root.join("imagefolder/symlinks"));
    let outcomes = read_store(&store);
    let error = outcomes["real/3.jpg"].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Vanished);
    assert!(
        error.message().contains("real/3.jpg") && error.message().contains("gone.jpg"),
        "{error}"
    );
    assert_eq!(
        store.warnings().len(),
        2,
        "both loops are named: {:?}",
        store.warnings()
    );
}

fn stem(case: &Value) -> String {
    let path = text(case, "path").rsplit('/').next().unwrap();
    path.trim_end_matches(".gz")
        .trim_end_matches(".tar")
        .to_owned()
}

#[test]
fn tars_are_read_as_their_manifest_says() {
    let root = generated_cases();
    for case in cases(&root, "tar") {
        let path = root.join(text(&case, "path"));
        let prefix = format!("{}/", stem(&case));
        let (ingested, _) = read_source(&path);
        compare(&case, &ingested, &prefix);
        match FolderStore::open(&path, FolderConfig::default()) {
            Ok(store) => {
                let in_place = read_store(&store);
                compare(&case, &in_place, &prefix);
                for (path, outcome) in &in_place {
                    match (outcome, &ingested[path]) {
                        (Ok(here), Ok(there)) => assert_eq!(
                            (&here.payload, &here.parts, here.label),
                            (&there.payload, &there.parts, there.label)
                        ),
                        (Err(here), Err(there)) => assert_eq!(here.kind(), there.kind()),
                        (here, there) => panic!("{path} differs: {here:?} and {there:?}"),
                    }
                }
            }
            Err(error) => {
                assert!(text(&case, "name").contains("gz"), "{error}");
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(error.advice().unwrap().contains("ingest"));
            }
        }
    }
}

#[test]
fn errors_of_a_shard_say_what_was_seen() {
    let root = generated_cases();
    let outcomes = |name: &str| read_store(&open(&root.join(format!("tar/{name}.tar"))));
    let missing = outcomes("missing_member");
    let error = |outcomes: &Outcomes, path: &str| outcomes[path].as_ref().unwrap_err().clone();
    assert_eq!(
        error(&missing, "missing_member/m1").kind(),
        ErrorKind::MissingPart
    );
    assert!(
        error(&missing, "missing_member/m2")
            .message()
            .contains("no image")
            && error(&missing, "missing_member/m2")
                .message()
                .contains("cls")
    );
    let zero = outcomes("zero_byte");
    assert_eq!(error(&zero, "zero_byte/z0").kind(), ErrorKind::Empty);
    assert_eq!(error(&zero, "zero_byte/z1").kind(), ErrorKind::Empty);
    let twice = error(&outcomes("dup_member"), "dup_member/d0");
    assert_eq!(twice.kind(), ErrorKind::Conflict);
    assert!(twice.to_string().contains("shard dup_member"), "{twice}");
}

#[test]
fn the_option_cuts_names_at_the_last_dot() {
    let root = generated_cases();
    let case = cases(&root, "tar")
        .into_iter()
        .find(|case| case["name"] == "tar_dotted")
        .unwrap();
    let mut config = SourceConfig::default();
    config.key_split = KeySplit::LastDot;
    let (outcomes, _) = read_source_with(&root.join("tar/dotted.tar"), config);
    let by_first_dot = read_source(&root.join("tar/dotted.tar")).0;
    for sample in case["samples"].as_array().unwrap() {
        let last = &outcomes[&format!("dotted/{}", text(sample, "last_dot_key"))];
        let image = part(last.as_ref().unwrap(), text(sample, "last_dot_field"));
        let first = &by_first_dot[&format!("dotted/{}", text(sample, "key"))];
        assert_eq!(part(first.as_ref().unwrap(), text(sample, "field")), image);
    }
}

/// The files that `tar -x` leaves, by path.
fn unpacked(path: &Path) -> Vec<(String, Vec<u8>)> {
    fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(root, &path, files);
            } else {
                files.push((
                    path.strip_prefix(root)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                    fs::read(&path).unwrap(),
                ));
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    run(Command::new("tar")
        .arg("-xf")
        .arg(path)
        .arg("-C")
        .arg(folder.path()));
    let mut files = Vec::new();
    collect(folder.path(), folder.path(), &mut files);
    files.sort();
    files
}

#[test]
fn what_an_export_writes_is_what_tar_unpacks() {
    let root = generated_cases();
    for case in cases(&root, "tar") {
        let path = root.join(text(&case, "path"));
        let (outcomes, _) = read_source(&path);
        if outcomes.values().any(Result::is_err) {
            continue;
        }
        let stem = stem(&case);
        let mut written = Vec::new();
        for sample in outcomes.into_values().map(Result::unwrap) {
            let row = Row {
                path: sample.path.clone(),
                key: SampleKey::default(),
                nbytes: 0,
                checksum: None,
                label: 0,
                parts: std::sync::Arc::clone(&sample.parts),
                fields: sample.fields.clone(),
            };
            for (path, number) in layout_on_disk(&row).unwrap() {
                let path = path
                    .strip_prefix(&stem)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                written.push((path, part(&sample, &sample.parts[number].name).to_vec()));
            }
        }
        written.sort();
        let unpacked = unpacked(&path);
        assert!(!unpacked.is_empty());
        assert_eq!(written, unpacked, "{}", text(&case, "name"));
    }
}

#[test]
fn mds_sets_are_read_at_ingest_as_their_manifest_says() {
    let root = generated_cases();
    for case in cases(&root, "mds") {
        let path = root.join(text(&case, "path"));
        let in_place = FolderStore::open(&path, FolderConfig::default()).unwrap_err();
        assert_eq!(in_place.kind(), ErrorKind::Unsupported);
        assert!(in_place.advice().unwrap().contains("farhaul ingest"));
        if case["shard_outcome"] == "ok" {
            let (outcomes, left_out) = read_source(&path);
            compare(&case, &outcomes, "");
            assert_eq!((outcomes.len(), left_out), (5, 0));
            assert!(part(outcomes["0"].as_ref().unwrap(), "image.jpg").starts_with(b"\xff\xd8"));
        } else {
            let error =
                source::open(&path, SourceFormat::Auto, SourceConfig::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(error.message().contains("shard.00001.mds"), "{error}");
        }
    }
}
