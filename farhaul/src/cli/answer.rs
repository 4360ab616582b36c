//! Reports as text for people.

use super::format::{bytes, count, few, table};
use crate::{
    bench::BenchReport, info::InfoReport, ingest::IngestReport, inspect::Inspected,
    verify::VerifyReport,
};

pub(super) fn ingest(report: &IngestReport) -> String {
    let mut rows = vec![(
        "written",
        format!("{} samples, {}", count(report.samples), bytes(report.bytes)),
    )];
    rows.push((
        "already there",
        format!("{} samples", count(report.skipped)),
    ));
    for (name, number) in [("failed", report.failed), ("left out", report.left_out)] {
        if number > 0 {
            rows.push((name, count(number)));
        }
    }
    if let Some(summary) = &report.published {
        rows.push((
            "published",
            format!(
                "{} samples, {}",
                count(summary.samples),
                bytes(summary.bytes)
            ),
        ));
    }
    rows.push(("time", format!("{:.2} s", report.seconds)));
    table(&rows)
}

pub(super) fn info(report: &InfoReport) -> String {
    let fields: Vec<_> = report
        .fields
        .iter()
        .map(|(name, kind)| format!("{name} ({kind})"))
        .collect();
    table(&[
        ("samples", count(report.samples)),
        ("bytes", bytes(report.bytes)),
        ("classes", few(&report.classes)),
        ("fields", few(&fields)),
        ("fingerprint", report.fingerprint.to_string()),
    ])
}

pub(super) const INSPECT_HEADER: &str =
    "outcome      label      bytes     size            mean rgb  key";

pub(super) fn inspect(found: &Inspected) -> String {
    let label = found
        .label
        .map_or("-".to_owned(), |label| label.to_string());
    let size = found
        .width
        .zip(found.height)
        .map_or("-".to_owned(), |(width, height)| {
            format!("{width}x{height}")
        });
    let mean = found.mean.map_or("-".to_owned(), |[red, green, blue]| {
        format!("{red:.0} {green:.0} {blue:.0}")
    });
    let why = found
        .error
        .as_ref()
        .map_or(String::new(), |error| format!(": {}", error.message()));
    let outcome = found.error_kind.unwrap_or(found.outcome);
    format!(
        "{outcome:12} {label:>5} {:>10} {size:>8} {mean:>19}  {}{why}",
        bytes(found.bytes),
        found.key
    )
}

pub(super) fn verify(report: &VerifyReport) -> String {
    table(&[
        ("samples", count(report.samples)),
        ("ok", count(report.ok)),
        ("corrupt", few(&report.corrupt)),
        ("missing", few(&report.missing)),
        ("orphans", few(&report.orphans)),
    ])
}

pub(super) fn bench(report: &BenchReport) -> String {
    table(&[
        (
            "samples",
            format!(
                "{}, {} in {:.2} s",
                count(report.samples),
                bytes(report.bytes),
                report.seconds
            ),
        ),
        (
            "rate",
            format!(
                "{:.0} samples/s, {:.1} MB/s",
                report.samples_per_s, report.megabytes_per_s
            ),
        ),
        ("first batch", format!("{:.3} s", report.first_batch_s)),
        (
            "waited",
            format!("{:.1} % of the time", report.stall_share * 100.0),
        ),
        (
            "memory",
            format!(
                "{} own, {} mapped",
                bytes(report.peak_rss_bytes),
                bytes(report.mapped_bytes)
            ),
        ),
        (
            "held",
            format!(
                "{} at most, window {}",
                bytes(report.held_bytes_max),
                bytes(report.window_bytes_max)
            ),
        ),
        (
            "asked again",
            format!(
                "{} retries, {} hedges",
                count(report.retries),
                count(report.hedges)
            ),
        ),
        ("failures", count(report.failures)),
    ])
}
