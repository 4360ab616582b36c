//! The shared cases: odd pictures with the answers that they deserve.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use bytes::Bytes;
use decode::{DecodeConfig, Geometry, Image, ImageCollate, Layout, decode};
use loader_core::{Collate, ErrorKind, Part, Result, Sample, SampleKey, collate::SampleSeed};
use serde_json::Value;

/// A picture and what it should give.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// `ok`, `error` or `either`.
    pub(crate) outcome: String,
    pub(crate) size: Option<(u32, u32)>,
    pub(crate) mean: Option<[f64; 3]>,
    pub(crate) tolerance: f64,
}

impl Case {
    /// Decodes it and compares with what is expected; returns what was decoded.
    pub(crate) fn check(&self) -> Option<Image> {
        let outcome = decode(&self.bytes, &DecodeConfig::default());
        self.check_outcome(outcome)
    }

    fn check_outcome(&self, outcome: Result<Image>) -> Option<Image> {
        match (self.outcome.as_str(), outcome) {
            ("ok" | "either", Ok(image)) => {
                assert!(!image.is_partial, "{}", self.name);
                assert_eq!(
                    Some((image.width, image.height)),
                    self.size,
                    "{}",
                    self.name
                );
                assert_eq!(
                    image.pixels.len(),
                    image.width as usize * image.height as usize * 3,
                    "{}",
                    self.name
                );
                for (got, wanted) in image.mean().into_iter().zip(self.mean.expect("a mean")) {
                    let differs = (got - wanted).abs() > self.tolerance + 0.011;
                    assert!(
                        !differs,
                        "{}: mean {:?}, wanted {:?}",
                        self.name,
                        image.mean(),
                        self.mean
                    );
                }
                Some(image)
            }
            ("error" | "either", Err(error)) => {
                assert!(error.kind().is_of_one_sample(), "{}: {error}", self.name);
                assert_eq!(error.operation(), "decode", "{}: {error}", self.name);
                None
            }
            (wanted, got) => panic!(
                "{}: {wanted} wanted, got {got:?}",
                self.name,
                got = got.map(|image| image.mean())
            ),
        }
    }

    /// The kind of error that it gives.
    pub(crate) fn error(&self) -> ErrorKind {
        decode(&self.bytes, &DecodeConfig::default())
            .expect_err(&self.name)
            .kind()
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a crate lies in its workspace")
        .to_path_buf()
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| number.try_into().ok())
}

fn means(value: &Value) -> Option<[f64; 3]> {
    let list = value.as_array()?;
    Some([0, 1, 2].map(|channel| list[channel].as_f64().expect("a mean is a number")))
}

/// The picture cases of the generator, and the files of its image folders that are samples.
pub(crate) fn generated() -> Vec<Case> {
    // Made once: Python takes longer than all that is done with them.
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(generate).clone()
}

fn generate() -> Vec<Case> {
    let folder = tempfile::tempdir().unwrap();
    let ours = workspace().join("conformance/cases/generate_cases.py");
    let script = if ours.exists() {
        ours
    } else {
        shared().join("generate_cases.py")
    };
    let run = Command::new("python3")
        .arg(&script)
        .arg(folder.path())
        .output()
        .expect("python3 runs");
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let manifest: Value =
        serde_json::from_slice(&fs::read(folder.path().join("manifest.json")).unwrap()).unwrap();
    let mut cases = Vec::new();
    for case in manifest["cases"].as_array().unwrap() {
        let (kind, path) = (
            case["kind"].as_str().unwrap(),
            case["path"].as_str().unwrap(),
        );
        for sample in case["samples"].as_array().unwrap() {
            let outcome = sample["outcome"].as_str().unwrap().to_owned();
            let file = match (kind, sample["file"].as_str()) {
                ("image", Some(file)) => folder.path().join(file),
                ("imagefolder", Some(file)) if outcome == "ok" => {
                    folder.path().join(path).join(file)
                }
                _ => continue,
            };
            // Names that are no UTF-8 are spelt otherwise in the manifest; they are the business of the folder's tests.
            let Ok(bytes) = fs::read(&file) else { continue };
            cases.push(Case {
                name: file
                    .strip_prefix(folder.path())
                    .unwrap()
                    .display()
                    .to_string(),
                bytes,
                outcome,
                size: number(&sample["w"]).zip(number(&sample["h"])),
                mean: means(&sample["mean"]),
                tolerance: sample["tol"].as_f64().unwrap_or(0.0),
            });
        }
    }
    assert!(cases.len() > 40, "{} cases", cases.len());
    cases
}

/// One picture of the generator by its file name.
pub(crate) fn generated_image(name: &str) -> Case {
    let wanted = format!("image/{name}");
    generated()
        .into_iter()
        .find(|case| case.name == wanted)
        .unwrap_or_else(|| panic!("no case {name}"))
}

/// The folder of the shared cases.
fn shared() -> PathBuf {
    env::var_os("FARHAUL_CASES").map_or_else(|| workspace().join("../shared/cases"), PathBuf::from)
}

/// The picture files met in the wild; none where they are not at hand, which fails under CI.
pub(crate) fn real() -> Vec<Case> {
    let folder = shared();
    let Ok(index) = fs::read_to_string(folder.join("files/index.tsv")) else {
        assert!(
            env::var_os("CI").is_none_or(|value| value != "true"),
            "the real cases are missing at {}",
            folder.display()
        );
        eprintln!(
            "the real cases are not at {}: nothing is compared with them",
            folder.display()
        );
        return Vec::new();
    };
    let mut lines = index
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name: &str| {
        header
            .iter()
            .position(|title| *title == name)
            .expect("a column of the index")
    };
    let (name, expected, size) = (column("name"), column("expected"), column("WxHxC_stored"));
    let (mean, tolerance) = (column("mean_RGB"), column("tolerance"));
    let numbers = |text: &str, separator| {
        text.split(separator)
            .map(|number| number.parse::<f64>().unwrap())
            .collect::<Vec<_>>()
    };
    let case = |row: Vec<&str>| {
        let size = (!row[size].is_empty()).then(|| numbers(row[size], 'x'));
        let mean = (!row[mean].is_empty()).then(|| numbers(row[mean], ','));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small whole numbers"
        )]
        Case {
            name: row[name].to_owned(),
            bytes: fs::read(folder.join("files").join(row[name])).unwrap(),
            outcome: row[expected].to_owned(),
            size: size.map(|size| (size[0] as u32, size[1] as u32)),
            mean: mean.map(|mean| [mean[0], mean[1], mean[2]]),
            tolerance: row[tolerance].parse().unwrap_or(0.0),
        }
    };
    lines
        .filter(|row| matches!(row[expected], "ok" | "error" | "either"))
        .map(case)
        .collect()
}

/// One of the real files; `None` where they are not at hand.
pub(crate) fn real_image(name: &str) -> Option<Case> {
    let mut cases = real();
    if cases.is_empty() {
        return None;
    }
    let at = cases
        .iter()
        .position(|case| case.name == name)
        .unwrap_or_else(|| panic!("no real case {name}"));
    Some(cases.swap_remove(at))
}

/// A photograph that is kept with the tests.
pub(crate) fn photo(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/decode/data")
        .join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A sample of one picture.
pub(crate) fn sample(path: &str, bytes: &[u8]) -> Sample {
    let parts = Part::sequence([("jpg", bytes.len() as u64)]);
    let key = SampleKey::of_content(path.as_bytes(), 0);
    Sample {
        key,
        path: path.into(),
        label: 0,
        parts,
        payload: Bytes::copy_from_slice(bytes),
    }
}

/// One picture in a batch of one.
pub(crate) fn place_one(
    config: DecodeConfig,
    geometry: Geometry,
    layout: Layout,
    seed: SampleSeed,
    path: &str,
    bytes: &[u8],
) -> Vec<u8> {
    let collate = ImageCollate::new(config, geometry, layout).unwrap();
    let mut slots = collate.slots(1).unwrap();
    collate
        .place(&mut slots[0], sample(path, bytes), seed)
        .unwrap();
    slots[0].to_vec()
}
