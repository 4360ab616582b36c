//! The odd image files that every crate's tests share: made ones with their manifest, and real ones with their table.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

mod table;

/// Small odd data sets, made by `cases/generate_cases.py` into a folder.
#[derive(Debug, Clone, Deserialize)]
pub struct Cases {
    /// A digest over all files.
    pub digest: String,
    /// The cases.
    pub cases: Vec<Case>,
    /// Where they were made.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// What kind of thing lies at a case's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One image file.
    Image,
    /// A folder with a folder for each class.
    ImageFolder,
    /// A WebDataset shard.
    Tar,
    /// A folder of MosaicML shards.
    Mds,
}

/// What a correct loader does with a sample, a file or an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It is delivered with the values given.
    Ok,
    /// A typed error that names it.
    Error,
    /// Delivered with the values given, or a typed error.
    Either,
    /// It is no sample at all and is not counted.
    Absent,
}

/// One odd data set.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What lies at `path`.
    pub kind: Kind,
    /// Where it lies, relative to the folder of all cases.
    pub path: String,
    /// What a correct loader does, in words.
    pub rule: String,
    /// Its samples.
    pub samples: Vec<CaseSample>,
    /// Class names by label, where the case is about them.
    pub classes: Option<Vec<String>>,
    /// What becomes of the archive as a whole.
    pub shard_outcome: Option<Outcome>,
}

/// One sample of a case.
#[derive(Debug, Clone, Deserialize)]
pub struct CaseSample {
    /// What a correct loader does with it.
    pub outcome: Outcome,
    /// Its key; for tars without the shard.
    pub key: Option<String>,
    /// Its label.
    pub label: Option<i64>,
    /// Its file: of an image relative to the folder of all cases, of an image folder relative to that folder.
    pub file: Option<String>,
    /// Its member in a tar.
    pub member: Option<String>,
    /// Its field in a tar.
    pub field: Option<String>,
    /// Its key under the rule of the last dot.
    pub last_dot_key: Option<String>,
    /// Its field under the rule of the last dot.
    pub last_dot_field: Option<String>,
    /// Its size in bytes.
    pub bytes: Option<u64>,
    /// Its width in pixels, as stored.
    #[serde(rename = "w")]
    pub width: Option<u32>,
    /// Its height in pixels, as stored.
    #[serde(rename = "h")]
    pub height: Option<u32>,
    /// The mean of red, green and blue over all pixels.
    pub mean: Option<[f64; 3]>,
    /// How far each mean may be off.
    #[serde(rename = "tol")]
    pub tolerance: Option<f64>,
    /// Its Exif orientation.
    pub orientation: Option<u32>,
    /// Width and height after its orientation was applied.
    pub oriented_wh: Option<[u32; 2]>,
}

impl Case {
    /// Where the case lies.
    pub fn at(&self, cases: &Cases) -> PathBuf {
        cases.folder.join(&self.path)
    }
}

/// Makes all cases in `out`, which must not exist or be empty.
///
/// # Panics
/// Where `python3` is missing or fails, or its manifest cannot be read: without cases there is no test.
pub fn generate(out: &Path) -> Cases {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/generate_cases.py");
    let done = Command::new("python3").arg(&script).arg(out).output();
    let done = done.unwrap_or_else(|error| panic!("python3 is needed to make the cases: {error}"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{} failed: {said}", script.display());
    let manifest =
        fs::read_to_string(out.join("manifest.json")).expect("the script writes a manifest");
    let cases: Cases = serde_json::from_str(&manifest)
        .expect("the manifest has the form that the script describes");
    Cases {
        folder: out.to_path_buf(),
        ..cases
    }
}

/// One real file, and what a correct loader does with it.
#[derive(Debug, Clone)]
pub struct RealFile {
    /// Its name.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// What is odd about it.
    pub what_is_odd: String,
    /// What a correct loader does with it: for a picture `ok`, `error` or `either`; for an archive in words.
    pub expected: String,
    /// Width, height and channels as stored, where it is a picture.
    pub shape: Option<[u32; 3]>,
    /// The mean of red, green and blue over all pixels.
    pub mean: Option<[f64; 3]>,
    /// How far each mean may be off.
    pub tolerance: Option<f64>,
    /// What else there is to know.
    pub note: String,
}

impl RealFile {
    /// What a correct loader does with it, where that is one word.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.expected.as_str() {
            "ok" => Some(Outcome::Ok),
            "error" => Some(Outcome::Error),
            "either" => Some(Outcome::Either),
            _ => None,
        }
    }
}

/// The real files, in the order of their table: from the folder that `FARHAUL_CASES` names, else from `shared/cases` beside the
/// workspace. `None`, with a line on stderr, where they are not there.
///
/// # Panics
/// Where they are not there though `CI` is `true`, or their table cannot be read.
pub fn real_files() -> Option<Vec<RealFile>> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases");
    let folder = env::var_os("FARHAUL_CASES")
        .map_or_else(beside, PathBuf::from)
        .join("files");
    let Ok(text) = fs::read_to_string(folder.join("index.tsv")) else {
        let missing = format!(
            "no real files at {}: FARHAUL_CASES names the folder that has them",
            folder.display()
        );
        assert_ne!(env::var("CI").as_deref(), Ok("true"), "{missing}");
        eprintln!("{missing}");
        return None;
    };
    Some(table::real_files(&text, &folder))
}
