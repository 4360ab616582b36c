//! Inspect: what each sample is, one after another.

use std::collections::BTreeMap;

use loader_core::{
    Catalog, Error, ErrorKind, Fields, Result, Row, Sample, SamplePath, uri::percent_decode,
};
use serde::Serialize;

use crate::{
    dataset::Dataset,
    pixels::{Look, Pixels},
    sweep::sweep,
    task::{Cancel, Outcome},
};

/// What is looked at.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct InspectOptions {
    /// Source paths of the samples to look at, in the order wanted; none for all. Bytes that are no UTF-8 may be `%XX`.
    pub keys: Vec<Vec<u8>>,
    /// Decodes each image; `None` leaves width, height and mean out.
    pub pixels: Option<Pixels>,
}

impl InspectOptions {
    /// These paths (none for all), decoded where `pixels` are given.
    pub fn new(keys: Vec<Vec<u8>>, pixels: Option<Pixels>) -> Self {
        Self { keys, pixels }
    }
}

/// One sample as it was found.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Inspected {
    /// Its source path, bytes that are no UTF-8 as `%XX`.
    pub key: String,
    /// Its label; `None` for a path that the data set lacks.
    pub label: Option<i64>,
    /// Its fields.
    pub fields: Fields,
    /// `ok` or `error`.
    pub outcome: &'static str,
    /// The kind of its error.
    pub error_kind: Option<&'static str>,
    /// Width, pixels; `None` unless it was decoded.
    pub width: Option<u32>,
    /// Height, pixels; `None` unless it was decoded.
    pub height: Option<u32>,
    /// Means of red, green and blue; `None` unless it was decoded.
    pub mean: Option<[f64; 3]>,
    /// Its payload, bytes.
    #[serde(skip)]
    pub bytes: u64,
    /// Its error in full.
    #[serde(skip)]
    pub error: Option<Error>,
}

/// How many samples were inspected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InspectReport {
    /// Samples that are well.
    pub ok: u64,
    /// Samples that are not, unknown paths included.
    pub errors: u64,
}

/// Hands each sample to `sink` as soon as it and those before it are known: in path order, or in that of the keys asked for.
///
/// # Errors
/// In the outcome: the first error of `sink`, what the index met, [`ErrorKind::Cancelled`]. A bad sample is only counted.
pub fn inspect(
    data: &Dataset,
    options: &InspectOptions,
    cancel: &Cancel,
    mut sink: impl FnMut(&Inspected) -> Result<()>,
) -> Outcome<InspectReport> {
    let mut report = InspectReport::default();
    let mut hand_on = |inspected: Inspected| {
        match inspected.error {
            None => report.ok += 1,
            Some(_) => report.errors += 1,
        }
        sink(&inspected)
    };
    let pixels = options.pixels.as_ref();
    let result = data.catalog().and_then(|catalog| {
        if options.keys.is_empty() {
            return sweep(
                data,
                &*catalog,
                cancel,
                |row, sample| look(row, sample, pixels),
                hand_on,
            );
        }
        for key in &options.keys {
            cancel.check()?;
            hand_on(match find(&*catalog, key) {
                Some(row) => look(catalog.row(row), data.sample(row), pixels),
                None => unknown(key),
            })?;
        }
        Ok(())
    });
    Outcome::new(report, result, "inspect")
}

/// The row of a path, literally or as it is shown: bytes that are no UTF-8 as `%XX`.
fn find(catalog: &dyn Catalog, key: &[u8]) -> Option<u64> {
    let shown = || percent_decode(std::str::from_utf8(key).ok()?).ok();
    catalog.find(key).or_else(|| catalog.find(&shown()?))
}

fn look(row: Row, sample: Result<Sample>, pixels: Option<&Pixels>) -> Inspected {
    let looked = sample.and_then(|sample| pixels.map(|pixels| pixels.of(&sample)).transpose());
    let (look, error) = match looked {
        Ok(look) => (look, None),
        Err(error) => (None, Some(error.at(row.path.clone()))),
    };
    Inspected {
        label: Some(row.label),
        fields: row.fields,
        bytes: row.nbytes,
        ..of(&row.path, look, error)
    }
}

fn unknown(key: &[u8]) -> Inspected {
    let path = SamplePath::from(key);
    let error = Error::new(ErrorKind::NotFound, "the data set has no such sample")
        .during("inspect")
        .at(path.clone());
    of(&path, None, Some(error))
}

fn of(path: &SamplePath, look: Option<Look>, error: Option<Error>) -> Inspected {
    Inspected {
        key: path.to_string(),
        label: None,
        fields: BTreeMap::new(),
        outcome: if error.is_some() { "error" } else { "ok" },
        error_kind: error.as_ref().map(|error| error.kind().name()),
        width: look.map(|look| look.width),
        height: look.map(|look| look.height),
        mean: look.map(|look| look.mean),
        bytes: 0,
        error,
    }
}
