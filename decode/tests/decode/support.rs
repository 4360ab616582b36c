//! The shared cases: odd pictures with the answers that they deserve.

use std::{fs, path::Path, sync::OnceLock};

use bytes::Bytes;
use conformance::cases::{self, Kind, Outcome};
use decode::{DecodeConfig, Geometry, Image, ImageCollate, Layout, decode};
use loader_core::{Collate, ErrorKind, Part, Result, Sample, SampleKey, collate::SampleSeed};

/// A picture and what it should give.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) outcome: Outcome,
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
        match (self.outcome, outcome) {
            (Outcome::Ok | Outcome::Either, Ok(image)) => {
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
            (Outcome::Error | Outcome::Either, Err(error)) => {
                assert!(error.kind().is_of_one_sample(), "{}: {error}", self.name);
                assert_eq!(error.operation(), "decode", "{}: {error}", self.name);
                None
            }
            (wanted, got) => panic!(
                "{}: {wanted:?} wanted, got {got:?}",
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

/// The picture cases of the generator, and the files of its image folders that are samples.
pub(crate) fn generated() -> Vec<Case> {
    // Made once: Python takes longer than all that is done with them.
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(generate).clone()
}

fn generate() -> Vec<Case> {
    let folder = tempfile::tempdir().unwrap();
    let made = cases::generate(&folder.path().join("cases"));
    let mut cases = Vec::new();
    for case in &made.cases {
        for sample in &case.samples {
            let file = match (case.kind, &sample.file) {
                (Kind::Image, Some(file)) => made.folder.join(file),
                (Kind::ImageFolder, Some(file)) if sample.outcome == Outcome::Ok => {
                    case.at(&made).join(file)
                }
                _ => continue,
            };
            // Names that are no UTF-8 are spelt otherwise in the manifest; they are the business of the folder's tests.
            let Ok(bytes) = fs::read(&file) else { continue };
            cases.push(Case {
                name: file
                    .strip_prefix(&made.folder)
                    .unwrap()
                    .display()
                    .to_string(),
                bytes,
                outcome: sample.outcome,
                size: sample.width.zip(sample.height),
                mean: sample.mean,
                tolerance: sample.tolerance.unwrap_or(0.0),
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

/// The picture files met in the wild; none where they are not at hand, which fails under CI.
pub(crate) fn real() -> Vec<Case> {
    let pictures = cases::real_files().into_iter().flatten();
    let case = |file: cases::RealFile| {
        Some(Case {
            outcome: file.outcome()?,
            bytes: fs::read(&file.path).unwrap(),
            name: file.name,
            size: file.shape.map(|[width, height, _]| (width, height)),
            mean: file.mean,
            tolerance: file.tolerance.unwrap_or(0.0),
        })
    };
    pictures.filter_map(case).collect()
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
