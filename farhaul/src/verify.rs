//! Verify: every payload against its checksum, over any store.

use futures_util::StreamExt;
use loader_core::{Catalog, ErrorKind, Result, Row, Sample, SampleKey};
use serde::Serialize;

use crate::{
    dataset::Dataset,
    pixels::Pixels,
    sweep::sweep,
    task::{Cancel, Outcome, Progress},
};

/// Keys that are asked from the store between two looks at whether to stop.
const KEYS_AT_ONCE: usize = 4096;

/// What a verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Samples looked at.
    pub samples: u64,
    /// Samples that are as they should be.
    pub ok: u64,
    /// Paths of samples whose bytes are not what was recorded, may not be read, or do not decode where that was asked for.
    pub corrupt: Vec<String>,
    /// Paths of samples that the store has no longer.
    pub missing: Vec<String>,
    /// Names of payloads that no manifest names; no failure.
    pub orphans: Vec<String>,
}

impl VerifyReport {
    /// True where nothing is corrupt or missing.
    pub fn is_sound(&self) -> bool {
        self.corrupt.is_empty() && self.missing.is_empty()
    }
}

enum Verdict {
    Ok { bytes: u64 },
    Corrupt(Row),
    Missing(Row),
}

/// Reads every payload and compares it with its checksum; with `pixels` its image is decoded too.
///
/// Memory: a few megabytes a core, and 8 bytes a row.
///
/// # Errors
/// In the outcome: what the store as a whole met, [`ErrorKind::Cancelled`]. Bad samples are findings, not errors.
pub fn verify(
    data: &Dataset,
    pixels: Option<&Pixels>,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Outcome<VerifyReport> {
    let mut report = VerifyReport::default();
    let result = data.catalog().and_then(|catalog| {
        progress.started("verify", Some(catalog.len()));
        let payloads = payloads(data, &*catalog, pixels, progress, cancel, &mut report);
        progress.finished();
        payloads?;
        progress.started("look for orphans", None);
        let orphans = orphans(data, &*catalog, progress, cancel, &mut report);
        progress.finished();
        orphans
    });
    Outcome::new(report, result, "verify")
}

fn payloads(
    data: &Dataset,
    catalog: &dyn Catalog,
    pixels: Option<&Pixels>,
    progress: &dyn Progress,
    cancel: &Cancel,
    report: &mut VerifyReport,
) -> Result<()> {
    let work = |row: Row, sample: Result<Sample>| judge(row, sample, pixels);
    sweep(data, catalog, cancel, work, |verdict| {
        report.samples += 1;
        let mut done = 0;
        match verdict? {
            Verdict::Ok { bytes } => {
                report.ok += 1;
                done = bytes;
            }
            Verdict::Corrupt(row) => report.corrupt.push(row.path.to_string()),
            Verdict::Missing(row) => report.missing.push(row.path.to_string()),
        }
        progress.advanced(1, done);
        Ok(())
    })
}

fn judge(row: Row, sample: Result<Sample>, pixels: Option<&Pixels>) -> Result<Verdict> {
    let checked = sample.and_then(|sample| match pixels {
        Some(pixels) => pixels.of(&sample).map(|_| sample.payload.len()),
        None => Ok(sample.payload.len()),
    });
    match checked {
        Ok(bytes) => Ok(Verdict::Ok {
            bytes: bytes as u64,
        }),
        Err(error) if matches!(error.kind(), ErrorKind::Vanished | ErrorKind::NotFound) => {
            Ok(Verdict::Missing(row))
        }
        Err(error) if error.is_of_one_sample() => Ok(Verdict::Corrupt(row)),
        Err(error) => Err(error.at(row.path)),
    }
}

/// Keys are hashes, so their first eight bytes tell them apart: one in 2⁶⁴ per pair is taken for another.
fn orphans(
    data: &Dataset,
    catalog: &dyn Catalog,
    progress: &dyn Progress,
    cancel: &Cancel,
    report: &mut VerifyReport,
) -> Result<()> {
    let mut known: Vec<u64> = (0..catalog.len())
        .map(|row| prefix(catalog.key(row)))
        .collect();
    known.sort_unstable();
    let mut keys = data.store().keys();
    loop {
        cancel.check()?;
        let (back, found) = data.wait(async move {
            let mut found = Vec::new();
            while found.len() < KEYS_AT_ONCE
                && let Some(key) = keys.next().await
            {
                found.push(key);
            }
            (keys, found)
        })?;
        if found.is_empty() {
            return Ok(());
        }
        keys = back;
        progress.advanced(found.len() as u64, 0);
        for key in found {
            let key = key?;
            if known.binary_search(&prefix(key)).is_err() {
                report.orphans.push(key.to_string());
            }
        }
    }
}

fn prefix(key: SampleKey) -> u64 {
    u64::from_be_bytes(*key.0.first_chunk().expect("a key has 16 bytes"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use loader_core::{Fields, NewSample, Part, memory::MemoryStore};

    use super::*;
    use crate::task::Silent;

    #[test]
    fn corrupt_missing_and_orphaned_payloads_are_told_apart() {
        let sample = |number: i64| NewSample {
            path: format!("{number}").into(),
            label: 0,
            parts: Part::sequence([("jpg", 1)]),
            payload: Bytes::from(format!("{number}")),
            fields: Fields::new(),
        };
        let store = MemoryStore::from_samples((0..5).map(sample), vec![]).unwrap();
        let data = Dataset::over(Arc::new(store.clone())).unwrap();
        let key = |row| data.catalog().unwrap().key(row);
        store.tamper(key(1), Some(Bytes::from_static(b"x")));
        store.tamper(key(3), None);
        store.tamper(SampleKey([7; 16]), Some(Bytes::from_static(b"orphan")));
        let report = verify(&data, None, &Silent, &Cancel::default())
            .into_result()
            .unwrap();
        assert_eq!((report.samples, report.ok), (5, 3));
        assert_eq!(
            (report.corrupt.as_slice(), report.missing.as_slice()),
            (&["1".to_owned()][..], &["3".to_owned()][..])
        );
        assert_eq!(report.orphans, ["07".repeat(16)]);
        assert!(!report.is_sound());
    }
}
