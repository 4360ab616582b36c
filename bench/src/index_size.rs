//! The index of a million samples: bytes a sample on disk beside its path, time to open, memory that opening takes.

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use index::{Index, IndexBuilder};
use loader_core::sample::{Fields, Part, Row};
use loader_core::{SampleKey, SamplePath};
use serde_json::{Value, json};

use crate::memory;

const SAMPLES: u64 = 1_000_000;

/// Builds the index of an ImageNet-like data set, writes it, opens it again.
pub(crate) fn measure() -> Value {
    let file = std::env::temp_dir().join(format!("farhaul-bench-index-{}", std::process::id()));
    let path_bytes = write(&file);
    let file_bytes = fs::metadata(&file).map_or(0, |metadata| metadata.len());
    let before = memory::own_bytes();
    let started = Instant::now();
    let opened = Index::open(&file).expect("the file was written a moment ago");
    let open_ms = started.elapsed().as_secs_f64() * 1e3;
    let record = json!({
        "samples": opened.summary().samples,
        "file_bytes": file_bytes,
        "path_bytes": path_bytes,
        "bytes_a_sample_without_path": (precise(file_bytes) - precise(path_bytes)) / precise(SAMPLES),
        "open_ms": open_ms,
        "own_bytes_of_opening": memory::own_bytes().saturating_sub(before),
    });
    // Nothing depends on it any more; where it cannot be removed the system's own cleaning will.
    let _ = fs::remove_file(&file);
    record
}

/// Writes the index and returns how many bytes all of its paths have.
fn write(file: &std::path::Path) -> u64 {
    let mut builder = IndexBuilder::new();
    let mut path_bytes = 0;
    for number in 0..SAMPLES {
        let label = number / 1000;
        let path = format!("n{label:08}/n{label:08}_{number}.JPEG");
        path_bytes += path.len() as u64;
        let nbytes = 60_000 + number.wrapping_mul(0x9e37_79b9) % 100_000;
        let parts: Arc<[Part]> = Arc::from([Part {
            name: "JPEG".into(),
            offset: 0,
            nbytes,
            media_type: "image/jpeg".into(),
        }]);
        builder.push(&Row {
            key: SampleKey::of_content(path.as_bytes(), number),
            path: SamplePath::from(path),
            nbytes,
            checksum: Some(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            label: i64::try_from(label).expect("a thousand classes"),
            parts,
            fields: Fields::default(),
        });
    }
    let classes: Vec<String> = (0..SAMPLES / 1000)
        .map(|label| format!("n{label:08}"))
        .collect();
    let mut out = fs::File::create(file).expect("the folder for temporary files can be written to");
    builder
        .finish(classes)
        .write(&mut out)
        .expect("there is room for the index");
    path_bytes
}

/// A count as a float; those here are far below 2⁵².
#[allow(
    clippy::cast_precision_loss,
    reason = "counts of this module fit the mantissa"
)]
fn precise(count: u64) -> f64 {
    count as f64
}
