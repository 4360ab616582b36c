//! Ingest: samples of a source into a store, idempotent and resumable, in bounded memory.

use std::time::Instant;

use loader_core::{Error, ErrorKind, Source, Summary};
use serde::{Deserialize, Serialize};

use self::run::Ingest;
use crate::{
    destination::Destination,
    task::{Cancel, Outcome, Progress},
};

mod classes;
mod run;

/// Failures that a report lists; more are counted.
const FAILURES_LISTED: usize = 1000;

/// What a bad sample of the source does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBadSample {
    /// It ends the ingest, and nothing is published.
    #[default]
    Fail,
    /// It is counted and left out; the rest is published.
    Skip,
}

/// How an ingest works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct IngestOptions {
    /// What a bad sample does. Default `fail`.
    pub on_error: OnBadSample,
    /// Payload bytes that may wait to be written, besides one sample. Default 32 MiB; more helps far stores.
    pub memory_bytes: u64,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            on_error: OnBadSample::Fail,
            memory_bytes: 32 << 20,
        }
    }
}

impl IngestOptions {
    /// The defaults with another answer to bad samples.
    #[must_use]
    pub fn with_on_error(mut self, on_error: OnBadSample) -> Self {
        self.on_error = on_error;
        self
    }
}

/// What an ingest did.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct IngestReport {
    /// Samples written now.
    pub samples: u64,
    /// Payload bytes of them.
    pub bytes: u64,
    /// Samples whose payload was there already.
    pub skipped: u64,
    /// Samples that are bad or could not be stored.
    pub failed: u64,
    /// Things in the source that are no samples.
    pub left_out: u64,
    /// Time that it took.
    pub seconds: f64,
    /// The first thousand failures.
    #[serde(skip)]
    pub failures: Vec<Error>,
    /// What the data set is now; `None` where nothing was published.
    #[serde(skip)]
    pub published: Option<Summary>,
}

/// Writes a source into a store and publishes it, together with what is published there already.
///
/// A path of the source replaces the row that has it, other rows stay. Classes of the data set keep their labels; new ones
/// follow at the end, and labels are matched by class name. Nothing is visible before the end; after a crash or
/// [`Cancel`] the same ingest goes on where it was, since payloads that are there are not written again.
///
/// Memory: `options.memory_bytes`, the source's own read-ahead, the largest sample, and about 140 bytes and two paths a row (the
/// source's listing, a set of the paths seen, the rows); while the index is written, at the end, its lasting form twice besides:
/// about 80 bytes and two paths a row more. (Measured: a tar of 10⁶ tiny members holds 200 MB of anonymous memory, and 290 MB
/// for the moment of publishing.)
///
/// # Errors
/// In the outcome: a bad sample under [`OnBadSample::Fail`], what the source or store met, [`ErrorKind::Cancelled`].
pub fn ingest(
    source: &mut dyn Source,
    destination: &Destination,
    options: &IngestOptions,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Outcome<IngestReport> {
    let begun = Instant::now();
    let mut report = IngestReport::default();
    progress.started("ingest", source.expected_samples());
    for warning in source.warnings() {
        progress.warned(&warning);
    }
    let result = Ingest::begin(source, destination, options).and_then(|mut run| {
        let result = run.pour(source, progress, cancel, &mut report);
        // What is under way is kept whatever happened: a rerun finds it.
        let drained = run.drain(progress, &mut report);
        report.left_out = source.left_out();
        result.and(drained)?;
        cancel.check()?;
        report.published = Some(run.publish()?);
        Ok(())
    });
    progress.finished();
    report.seconds = begun.elapsed().as_secs_f64();
    let result = result.map_err(|error| match error.kind() {
        ErrorKind::Cancelled => error.hint(
            "nothing was published; what was written stays, and the same ingest goes on from there",
        ),
        _ => error,
    });
    Outcome::new(report, result, "ingest")
}

#[cfg(test)]
mod tests;
