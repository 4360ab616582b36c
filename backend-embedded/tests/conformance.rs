//! The contracts of a store and its writer.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use backend_embedded::{EmbeddedConfig, EmbeddedStore, EmbeddedWriter};
use conformance::{
    harness::{Subject, Tamper},
    samples::DataSet,
    writer_suite::{WriterSubject, ingest},
};
use heed::{CommitOrAbort, types::Bytes};
use loader_core::{Catalog, SampleKey};

async fn subject(set: DataSet) -> Subject {
    let folder = tempfile::tempdir().unwrap();
    let writer = EmbeddedWriter::open_or_create(folder.path(), EmbeddedConfig::default()).unwrap();
    ingest(&writer, &set).await.unwrap();
    let store = EmbeddedStore::open(folder.path(), EmbeddedConfig::default()).unwrap();
    let place = folder.path().join("data.mdb");
    let payloads: Vec<_> = set
        .samples
        .into_iter()
        .map(|sample| sample.payload)
        .collect();
    let index = store.index().clone();
    Subject::from(store)
        .keeping(folder)
        .with_tamper(move |key, how| {
            let row = (0..index.summary().samples)
                .find(|row| index.key(*row) == key)
                .unwrap();
            let of_key = |payload: &&bytes::Bytes| {
                SampleKey::of_content(index.path(row), loader_core::identity::checksum(payload))
                    == key
            };
            let payload = payloads.iter().find(of_key).unwrap();
            match how {
                // Neither the store nor LMDB is told: this is what a failing disk does.
                Tamper::Change => flip(&place, payload),
                Tamper::Remove => remove(&place, key),
            }
            std::future::ready(())
        })
}

/// Flips a bit of a payload wherever the file has it.
fn flip(place: &Path, payload: &[u8]) {
    let file = File::options().write(true).open(place).unwrap();
    let whole = std::fs::read(place).unwrap();
    let starts = 0..whole.len().saturating_sub(payload.len());
    let found: Vec<_> = starts
        .filter(|start| whole[*start..].starts_with(payload))
        .collect();
    assert!(!found.is_empty(), "the payload is nowhere in the file");
    for start in found {
        file.write_all_at(&[payload[0] ^ 1], start as u64).unwrap();
    }
}

/// Deletes a payload as a program that knows nothing of farhaul would.
#[allow(unsafe_code, reason = "opening LMDB is unsafe")]
fn remove(place: &Path, key: SampleKey) {
    // heed opens a folder only once a process, so the same files get a second folder.
    let twin = tempfile::tempdir().unwrap();
    for name in ["data.mdb", "lock.mdb"] {
        std::fs::hard_link(place.with_file_name(name), twin.path().join(name)).unwrap();
    }
    let mut options = heed::EnvOpenOptions::new();
    options.max_dbs(8).max_readers(1024);
    // SAFETY: the file is whole, and both environments share one lock file.
    let environment = unsafe { options.open(twin.path()) }.unwrap();
    let transaction = environment.write_txn().unwrap();
    let deleted = environment.create_databases_and_commit(transaction, |opener, transaction| {
        let table = opener.create_database::<Bytes, Bytes>(transaction, Some("payload"))?;
        let deleted = table.delete(transaction, &key.0)?;
        assert!(deleted, "there is no payload to delete");
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(()))
    });
    deleted.unwrap();
}

mod store {
    conformance::store_suite!(super::subject);
}

mod damage {
    conformance::damage_suite!(super::subject);
}

mod writer {
    use super::*;

    fn writer(config: EmbeddedConfig) -> WriterSubject {
        let folder = tempfile::tempdir().unwrap();
        let writer = EmbeddedWriter::open_or_create(folder.path(), config.clone()).unwrap();
        let place = folder.path().to_owned();
        let open = move || std::future::ready(EmbeddedStore::open(&place, config.clone()));
        WriterSubject::new(writer, open).keeping(folder)
    }

    mod as_it_comes {
        use super::*;
        conformance::writer_suite!(|| std::future::ready(writer(EmbeddedConfig::default())));
    }

    mod with_a_small_limit {
        use super::*;
        conformance::writer_suite!(|| {
            let mut config = EmbeddedConfig::default();
            config.max_payload_bytes = 2_000_000;
            std::future::ready(writer(config))
        });
    }
}
