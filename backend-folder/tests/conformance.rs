//! The contract of a store, clause by clause, for both layouts.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::{collections::BTreeMap, ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::Path, sync::Arc};

use backend_folder::{FolderConfig, FolderFormat, FolderStore};
use conformance::{
    harness::{Subject, Tamper},
    samples::DataSet,
};
use loader_core::{NewSample, Store};
use tempfile::TempDir;

mod image_folder {
    use conformance::samples::Form;

    conformance::store_suite!(Form::ImageFolder, super::image_folder);
    conformance::clauses!(
        store_suite,
        conformance::harness::Stores::new(Form::ImageFolder, super::image_folder),
        [a_payload_that_is_gone_is_vanished_and_the_others_come]
    );
}

mod web_dataset {
    use conformance::samples::Form;

    conformance::store_suite!(Form::WebDataset, super::web_dataset);
}

async fn image_folder(set: DataSet) -> Subject {
    let folder = tempfile::tempdir().unwrap();
    for class in &set.classes {
        fs::create_dir(folder.path().join(class)).unwrap();
    }
    for sample in &set.samples {
        let path = folder.path().join(OsStr::from_bytes(&sample.path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &sample.payload).unwrap();
    }
    subject(folder, FolderFormat::ImageFolder)
}

async fn web_dataset(set: DataSet) -> Subject {
    let folder = tempfile::tempdir().unwrap();
    let mut shards: BTreeMap<String, Vec<u8>> =
        BTreeMap::from([("shard-000000".to_owned(), Vec::new())]);
    for sample in &set.samples {
        let path = str::from_utf8(&sample.path).unwrap();
        let (shard, key) = path.split_once('/').unwrap();
        let shard = shards.entry(shard.to_owned()).or_default();
        append(key, sample, shard);
    }
    let names = set.classes.join("\n") + "\n";
    fs::write(folder.path().join("classnames.txt"), names).unwrap();
    for (name, mut bytes) in shards {
        bytes.resize(bytes.len() + 1024, 0);
        fs::write(folder.path().join(name + ".tar"), bytes).unwrap();
    }
    subject(folder, FolderFormat::WebDataset)
}

fn subject(folder: TempDir, format: FolderFormat) -> Subject {
    let mut config = FolderConfig::default();
    config.format = format;
    let store = FolderStore::open(folder.path(), config).unwrap();
    let catalog = store.manifest().catalog;
    let root = folder.path().to_owned();
    let tamper = move |key, how| {
        assert_eq!(
            how,
            Tamper::Remove,
            "a changed file is known by its size and time, not by its bytes"
        );
        let mut rows = (0..catalog.len()).map(|row| catalog.row(row));
        remove(&root, &rows.find(|row| row.key == key).unwrap().path);
        async {}
    };
    Subject::new(Arc::new(store) as Arc<dyn Store>)
        .keeping(folder)
        .with_tamper(tamper)
}

fn remove(root: &Path, path: &[u8]) {
    fs::remove_file(root.join(OsStr::from_bytes(path))).unwrap();
}

/// Writes the members of a sample, with long names as GNU does it.
fn append(key: &str, sample: &NewSample, shard: &mut Vec<u8>) {
    for part in &*sample.parts {
        let name = format!("{key}.{}", part.name);
        let start = usize::try_from(part.offset).unwrap();
        let data = &sample.payload[start..start + usize::try_from(part.nbytes).unwrap()];
        if name.len() > 100 {
            member("././@LongLink", b'L', name.as_bytes(), shard);
        }
        member(&name[..name.len().min(90)], b'0', data, shard);
    }
}

fn member(name: &str, flag: u8, data: &[u8], shard: &mut Vec<u8>) {
    let mut block = [0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..135].copy_from_slice(format!("{:011o}", data.len()).as_bytes());
    block[156] = flag;
    block[257..265].copy_from_slice(b"ustar  \0");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    shard.extend_from_slice(&block);
    shard.extend_from_slice(data);
    shard.resize(shard.len().next_multiple_of(512), 0);
}
