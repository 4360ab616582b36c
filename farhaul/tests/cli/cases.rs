//! The odd images, folders, tars and sets give what their manifests say, in place and after an ingest.

use std::{collections::BTreeMap, path::Path};

use conformance::cases::{Case, CaseSample, Cases, Kind, Outcome, generate, real_files};
use serde_json::Value;

use crate::support::{Ran, run, text};

/// The manifests give means with two decimals.
const ROUNDING: f64 = 0.01;

type Lines = BTreeMap<String, Value>;

fn inspected(uri: &str, orientation: &str) -> (Lines, Ran) {
    let ran = run([
        "inspect",
        uri,
        "--decode",
        "--json",
        "--orientation",
        orientation,
    ]);
    let lines: Lines = ran
        .lines()
        .into_iter()
        .map(|line| (line["key"].as_str().unwrap_or_default().to_owned(), line))
        .collect();
    let expected = i32::from(lines.values().any(|line| line["outcome"] == "error"));
    if !lines.contains_key("") {
        assert_eq!(ran.code, Some(expected), "{ran:?}");
    }
    (lines, ran)
}

/// The lines in place (`None` where that is refused) and after an ingest that leaves bad samples out.
fn both(path: &Path, scratch: &Path) -> (Option<Lines>, Option<Lines>) {
    let (in_place, ran) = inspected(text(path), "ignore");
    let in_place = if ran.code == Some(3) {
        None
    } else {
        Some(in_place)
    };
    let store = scratch.join("store");
    let ingest = run([
        "ingest",
        text(path),
        "--to",
        text(&store),
        "--on-error",
        "skip",
        "--json",
    ]);
    let ingested = matches!(ingest.code, Some(0 | 1)).then(|| inspected(text(&store), "ignore").0);
    assert!(ingested.is_some() || ingest.code == Some(3), "{ingest:?}");
    (in_place, ingested)
}

fn key(case: &Case, sample: &CaseSample) -> String {
    let name = case.path.rsplit('/').next().unwrap();
    match (case.kind, &sample.key) {
        (Kind::Image, _) => name.to_owned(),
        (Kind::Tar, Some(key)) => format!(
            "{}/{key}",
            name.trim_end_matches(".gz").trim_end_matches(".tar")
        ),
        (_, Some(key)) => key.clone(),
        (_, None) => sample
            .file
            .clone()
            .or_else(|| sample.member.clone())
            .unwrap(),
    }
}

/// `was_ingested`: bad samples may have been refused on the way in.
fn compare(case: &Case, lines: &Lines, was_ingested: bool) {
    for sample in &case.samples {
        let (key, about) = (key(case, sample), &case.name);
        let line = lines.get(&key);
        let is_ok = line.is_some_and(|line| line["outcome"] == "ok");
        match sample.outcome {
            Outcome::Absent => assert!(line.is_none(), "{about}: {key} is no sample"),
            Outcome::Ok => assert!(is_ok, "{about}: {key} should be ok: {line:?}"),
            Outcome::Error => assert!(
                !is_ok && (was_ingested || line.is_some()),
                "{about}: {key}: {line:?}"
            ),
            Outcome::Either => assert!(was_ingested || line.is_some(), "{about}: {key}"),
        }
        let Some(line) = line.filter(|_| is_ok) else {
            if let Some(line) = line {
                assert!(
                    line["error_kind"].is_string() && line["width"].is_null(),
                    "{about}: {line}"
                );
            }
            continue;
        };
        check_pixels(
            line,
            sample.width.zip(sample.height),
            sample.mean,
            sample.tolerance,
            about,
        );
        if let Some(label) = sample.label {
            assert_eq!(line["label"], label, "{about}: {key}");
        }
    }
}

fn check_pixels(
    line: &Value,
    size: Option<(u32, u32)>,
    mean: Option<[f64; 3]>,
    tolerance: Option<f64>,
    about: &str,
) {
    if let Some((width, height)) = size {
        assert_eq!(
            (&line["width"], &line["height"]),
            (&width.into(), &height.into()),
            "{about}"
        );
    }
    for (channel, wanted) in mean.iter().flatten().enumerate() {
        let found = line["mean"][channel].as_f64().unwrap();
        assert!(
            (found - wanted).abs() <= tolerance.unwrap_or(1.5) + ROUNDING,
            "{about}: channel {channel} is {found}, not {wanted}"
        );
    }
}

#[test]
fn every_made_case_is_as_its_manifest_says_in_place_and_after_an_ingest() {
    let folder = tempfile::tempdir().unwrap();
    let cases: Cases = generate(&folder.path().join("cases"));
    assert!(cases.cases.len() > 50);
    for case in &cases.cases {
        let scratch = folder.path().join("scratch").join(&case.name);
        std::fs::create_dir_all(&scratch).unwrap();
        let (in_place, ingested) = both(&case.at(&cases), &scratch);
        let is_read_at_ingest_alone = case.kind == Kind::Mds || case.name.contains("gz");
        match in_place {
            Some(lines) => compare(case, &lines, false),
            None => assert!(
                is_read_at_ingest_alone,
                "{} cannot be read in place",
                case.name
            ),
        }
        match ingested {
            Some(lines) => compare(case, &lines, true),
            None => assert_eq!(
                case.shard_outcome,
                Some(Outcome::Error),
                "{} cannot be ingested",
                case.name
            ),
        }
        if let (Some(classes), Kind::ImageFolder) = (&case.classes, case.kind) {
            let info = run(["info", text(&scratch.join("store")), "--json"]).exits(0);
            assert_eq!(
                info.json()["classes"],
                serde_json::json!(classes),
                "{}",
                case.name
            );
        }
    }
}

#[test]
fn orientation_is_applied_or_ignored_for_pixels_and_sizes_alike() {
    let folder = tempfile::tempdir().unwrap();
    let cases: Cases = generate(&folder.path().join("cases"));
    let mut seen = 0;
    for case in &cases.cases {
        let Some(sample) = case
            .samples
            .first()
            .filter(|sample| sample.orientation.is_some())
        else {
            continue;
        };
        let path = case.at(&cases);
        let (stored, _) = inspected(text(&path), "ignore");
        let (turned, _) = inspected(text(&path), "apply");
        let [width, height] = sample.oriented_wh.unwrap();
        let key = key(case, sample);
        check_pixels(
            &stored[&key],
            sample.width.zip(sample.height),
            sample.mean,
            sample.tolerance,
            &case.name,
        );
        check_pixels(
            &turned[&key],
            Some((width, height)),
            sample.mean,
            sample.tolerance,
            &case.name,
        );
        seen += 1;
    }
    assert_eq!(seen, 8);
}

#[test]
fn every_real_picture_is_as_its_table_says() {
    let Some(files) = real_files() else { return };
    let mut seen = 0;
    for file in &files {
        let Some(outcome) = file.outcome() else {
            continue;
        };
        let (lines, ran) = inspected(text(&file.path), "ignore");
        let line = lines
            .get(&file.name)
            .unwrap_or_else(|| panic!("{}: {ran:?}", file.name));
        match outcome {
            Outcome::Ok => assert_eq!(line["outcome"], "ok", "{line}"),
            Outcome::Error => assert_eq!(line["outcome"], "error", "{line}"),
            Outcome::Either | Outcome::Absent => {}
        }
        if line["outcome"] == "ok" {
            let size = file.shape.map(|[width, height, _]| (width, height));
            check_pixels(line, size, file.mean, file.tolerance, &file.name);
        }
        seen += 1;
    }
    assert!(seen > 15);
}
