//! The demonstration: photographs into a store, checked, and read for one epoch.

use loader_core::Result;
use serde::Serialize;

use super::{
    answer,
    arguments::Demo,
    bars::Bars,
    output::{Output, note},
};
use crate::{
    bench::{BenchOptions, BenchReport, bench},
    ingest::{IngestOptions, ingest},
    options::OpenOptions,
    registry::{create_at, open_at, open_source_at},
    task::{Cancel, Outcome, Progress},
    verify::verify,
};

/// What the demonstration did.
#[derive(Debug, Default, Serialize)]
struct DemoReport {
    /// Samples that were verified.
    verified: u64,
    #[serde(flatten)]
    epoch: BenchReport,
}

pub(super) fn demo(arguments: &Demo, output: &mut Output, cancel: &Cancel) -> u8 {
    let mut report = DemoReport::default();
    let bars = Bars::new();
    let result = run(arguments, &mut report, &bars, cancel);
    let outcome = Outcome {
        report,
        error: result.err().map(|error| error.during("demo")),
    };
    output.outcome(&outcome, false, |report| answer::bench(&report.epoch))
}

fn run(
    arguments: &Demo,
    report: &mut DemoReport,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<()> {
    let options = OpenOptions::default();
    let store = arguments.out.join("store");
    let mut source = open_source_at(&arguments.photos, &options)?;
    let destination = create_at(&store, &options)?;
    let ingested = ingest(
        &mut *source,
        &destination,
        &IngestOptions::default(),
        progress,
        cancel,
    )
    .into_result()?;
    note(&format!(
        "ingested into {}\n{}",
        store.display(),
        answer::ingest(&ingested)
    ));
    drop(destination);

    let data = open_at(&store, &options)?;
    let verified = verify(&data, None, progress, cancel).into_result()?;
    note(&format!("verified\n{}", answer::verify(&verified)));
    report.verified = verified.ok;

    let outcome = bench(&data, &BenchOptions::default(), progress, cancel);
    report.epoch = outcome.report;
    note("one epoch, raw bytes, shuffled");
    outcome.into_result().map(|_| ())
}
