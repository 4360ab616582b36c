//! What the tests share: reading everything, small tars, and where the cases are.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use backend_folder::{FolderConfig, FolderStore, SourceConfig, SourceFormat, source};
use bytes::Bytes;
use conformance::cases;
use futures_util::StreamExt;
use loader_core::{
    Catalog, Error, FetchRequest, NewSample, Result, Sample, Store, identity::checksum,
};
use tempfile::{TempDir, tempdir};

/// Outcomes by path.
pub(crate) type Outcomes = BTreeMap<String, Result<NewSample>>;

pub(crate) fn open(path: &Path) -> FolderStore {
    FolderStore::open(path, FolderConfig::default()).unwrap()
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap()
}

pub(crate) fn catalog(store: &FolderStore) -> std::sync::Arc<dyn Catalog> {
    runtime().block_on(store.catalog()).unwrap()
}

/// All outcomes of a request, by target.
pub(crate) fn fetch(store: &FolderStore, request: FetchRequest) -> BTreeMap<usize, Result<Sample>> {
    let stream = store.fetch(request);
    runtime().block_on(
        stream
            .map(|fetched| (fetched.target, fetched.outcome))
            .collect(),
    )
}

/// Everything in place.
pub(crate) fn read_store(store: &FolderStore) -> Outcomes {
    let catalog = catalog(store);
    let summary = store.summary();
    assert_eq!(summary.samples, catalog.len());
    let rows = (0..catalog.len()).collect();
    let outcomes = fetch(store, FetchRequest::rows(summary.fingerprint, rows));
    assert_eq!(outcomes.len() as u64, catalog.len(), "one outcome a row");
    let outcomes = outcomes.into_iter().map(|(target, outcome)| {
        let row = catalog.row(target as u64);
        let outcome = outcome.map(|sample| {
            assert_eq!(
                (&sample.path, sample.key, &sample.parts),
                (&row.path, row.key, &row.parts)
            );
            assert_eq!(sample.payload.len() as u64, row.nbytes);
            NewSample {
                path: sample.path,
                label: sample.label,
                parts: sample.parts,
                payload: sample.payload,
                fields: row.fields,
            }
        });
        if let Err(error) = &outcome {
            assert_eq!(error.path(), Some(&row.path), "{error}");
            assert!(error.store().is_some());
        }
        (row.path.to_string(), outcome)
    });
    outcomes.collect()
}

/// Everything as an ingest reads it, and what is left out.
pub(crate) fn read_source(path: &Path) -> (Outcomes, u64) {
    read_source_with(path, SourceConfig::default())
}

pub(crate) fn read_source_with(path: &Path, config: SourceConfig) -> (Outcomes, u64) {
    let mut source = source::open(path, SourceFormat::Auto, config).unwrap();
    let mut outcomes = Outcomes::new();
    while let Some(outcome) = source.next_sample() {
        let path = match &outcome {
            Ok(sample) => sample.path.to_string(),
            Err(error) => {
                assert!(error.kind().is_of_one_sample(), "{error}");
                error
                    .path()
                    .expect("an error of a sample names it")
                    .to_string()
            }
        };
        assert!(
            outcomes.insert(path.clone(), outcome).is_none(),
            "{path} came twice"
        );
    }
    assert_eq!(source.expected_samples(), Some(outcomes.len() as u64));
    (outcomes, source.left_out())
}

pub(crate) fn part(sample: &NewSample, name: &str) -> Bytes {
    let part = sample
        .parts
        .iter()
        .find(|part| part.name.eq_ignore_ascii_case(name))
        .expect("the part is there");
    let start = usize::try_from(part.offset).unwrap();
    sample
        .payload
        .slice(start..start + usize::try_from(part.nbytes).unwrap())
}

pub(crate) fn write(root: &Path, relative: &str, bytes: &[u8]) {
    let path = root.join(relative);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A ustar member.
pub(crate) fn member(name: &str, data: &[u8]) -> Vec<u8> {
    special_member(name, data, b'0', "")
}

pub(crate) fn special_member(name: &str, data: &[u8], flag: u8, link: &str) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..107].copy_from_slice(b"0000644");
    block[124..135].copy_from_slice(format!("{:011o}", data.len()).as_bytes());
    block[156] = flag;
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend_from_slice(data);
    block.resize(block.len().next_multiple_of(512), 0);
    block
}

pub(crate) fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes: Vec<u8> = members
        .iter()
        .flat_map(|(name, data)| member(name, data))
        .collect();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The folder of the real files; `None` where a machine without them runs the tests by hand.
pub(crate) fn real_files() -> Option<PathBuf> {
    let files = cases::real_files()?;
    Some(files[0].path.parent().unwrap().to_owned())
}

/// The generated cases: made once by the generator as it is now.
pub(crate) fn generated_cases() -> PathBuf {
    let generator = include_bytes!("../../../conformance/cases/generate_cases.py");
    let version = checksum(generator);
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cases-{version:016x}"));
    if !made.exists() {
        let making = made.with_extension(format!(
            "{}-{:?}",
            process::id(),
            std::thread::current().id()
        ));
        cases::generate(&making);
        // Another test may have been faster: then there is one already, and this one goes.
        if fs::rename(&making, &made).is_err() {
            fs::remove_dir_all(&making).unwrap();
        }
    }
    made
}

pub(crate) fn shards(shards: &[(&str, &[u8])]) -> TempDir {
    let folder = tempdir().unwrap();
    for (name, bytes) in shards {
        write(folder.path(), name, bytes);
    }
    folder
}

/// Outcomes in place, after a look that an ingest gives the same.
pub(crate) fn outcomes(path: &Path) -> Outcomes {
    let in_place = read_store(&open(path));
    let (ingested, _) = read_source(path);
    assert_eq!(in_place.len(), ingested.len());
    for ((path, here), (_, there)) in in_place.iter().zip(&ingested) {
        match (here, there) {
            (Ok(here), Ok(there)) => assert_eq!(
                (&here.path, here.label, &here.payload),
                (&there.path, there.label, &there.payload)
            ),
            (Err(here), Err(there)) => assert_eq!(
                (here.kind(), here.message()),
                (there.kind(), there.message())
            ),
            (here, there) => panic!("{path}: {here:?} in place, {there:?} at ingest"),
        }
    }
    in_place
}

pub(crate) fn paths(outcomes: &Outcomes) -> Vec<&str> {
    outcomes.keys().map(String::as_str).collect()
}

pub(crate) fn error<'a>(outcomes: &'a Outcomes, path: &str) -> &'a Error {
    outcomes[path].as_ref().unwrap_err()
}
