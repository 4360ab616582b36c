//! Each command: open, run the task, answer.

use std::{ffi::OsString, os::unix::ffi::OsStringExt};

use loader_core::Result;

use super::{
    answer,
    arguments::{Bench, Info, Ingest, Inspect, Verify},
    bars::Bars,
    format, opening,
    output::{Output, note},
};
use crate::{
    bench::{self as bench_task, BenchOptions, BenchReport},
    info::{self as info_task, InfoReport},
    ingest::{self as ingest_task, IngestOptions, IngestReport},
    inspect::{self as inspect_task, InspectOptions},
    options::OpenOptions,
    pixels::{Orientation, Pixels},
    task::{Cancel, Outcome},
    verify::{self as verify_task, VerifyReport},
};

/// Failures that are shown one by one.
const FAILURES_SHOWN: usize = 20;

pub(super) fn ingest(arguments: &Ingest, output: &mut Output, cancel: &Cancel) -> u8 {
    match try_ingest(arguments, cancel) {
        Ok(outcome) => {
            if outcome.error.is_none() {
                show_failures(&outcome.report);
            }
            output.outcome(&outcome, outcome.report.failed > 0, answer::ingest)
        }
        Err(error) => output.not_begun::<IngestReport>(&error.during("ingest")),
    }
}

fn try_ingest(arguments: &Ingest, cancel: &Cancel) -> Result<Outcome<IngestReport>> {
    let options = OpenOptions::default().with_format(arguments.format.clone());
    let mut source = opening::source(&arguments.source, options, cancel)?;
    let destination = opening::destination(&arguments.to, cancel)?;
    let options = IngestOptions::default().with_on_error(arguments.on_error.into());
    Ok(ingest_task::ingest(
        &mut *source,
        &destination,
        &options,
        &Bars::new(),
        cancel,
    ))
}

fn show_failures(report: &IngestReport) {
    for error in report.failures.iter().take(FAILURES_SHOWN) {
        note(&format!("left out: {error}"));
    }
    let more = report.failed.saturating_sub(FAILURES_SHOWN as u64);
    if more > 0 {
        note(&format!("left out: {} more", format::count(more)));
    }
}

pub(super) fn info(arguments: &Info, output: &mut Output, cancel: &Cancel) -> u8 {
    match opening::data(&arguments.data.uri, cancel) {
        Ok(data) => {
            let outcome = Outcome {
                report: info_task::info(&data),
                error: None,
            };
            output.outcome(&outcome, false, answer::info)
        }
        Err(error) => output.not_begun::<InfoReport>(&error),
    }
}

pub(super) fn inspect(arguments: Inspect, output: &mut Output, cancel: &Cancel) -> u8 {
    match try_inspect(arguments, output, cancel) {
        Ok(Outcome {
            report,
            error: None,
        }) => u8::from(report.errors > 0),
        Ok(Outcome {
            error: Some(error), ..
        })
        | Err(error) => {
            // Whoever closed the pipe has seen enough.
            if output.is_closed() {
                return 0;
            }
            output.failed(&error.during("inspect"))
        }
    }
}

fn try_inspect(
    arguments: Inspect,
    output: &mut Output,
    cancel: &Cancel,
) -> Result<Outcome<inspect_task::InspectReport>> {
    let pixels = pixels(arguments.decode, arguments.orientation.into())?;
    let data = opening::data(&arguments.data.uri, cancel)?;
    let keys = arguments.keys.into_iter().map(OsString::into_vec).collect();
    if !output.is_json() {
        output.text(answer::INSPECT_HEADER);
    }
    let outcome =
        inspect_task::inspect(&data, &InspectOptions::new(keys, pixels), cancel, |found| {
            if output.is_json() {
                output.json(found);
            } else {
                output.text(&answer::inspect(found));
            }
            output.check_open()
        });
    Ok(outcome.in_store(data.uri()))
}

fn pixels(decode: bool, orientation: Orientation) -> Result<Option<Pixels>> {
    decode.then(|| Pixels::new(orientation)).transpose()
}

pub(super) fn verify(arguments: &Verify, output: &mut Output, cancel: &Cancel) -> u8 {
    let opened = pixels(arguments.decode, Orientation::Ignore)
        .and_then(|pixels| Ok((pixels, opening::data(&arguments.data.uri, cancel)?)));
    match opened {
        Ok((pixels, data)) => {
            let outcome = verify_task::verify(&data, pixels.as_ref(), &Bars::new(), cancel);
            let outcome = outcome.in_store(data.uri());
            output.outcome(&outcome, !outcome.report.is_sound(), answer::verify)
        }
        Err(error) => output.not_begun::<VerifyReport>(&error),
    }
}

#[cfg(feature = "folder")]
pub(super) fn export(
    arguments: &super::arguments::Export,
    output: &mut Output,
    cancel: &Cancel,
) -> u8 {
    match opening::data(&arguments.data.uri, cancel) {
        Ok(data) => {
            let outcome = crate::export::export(
                &data,
                &arguments.to,
                arguments.overwrite,
                &Bars::new(),
                cancel,
            );
            output.outcome(&outcome, false, |report| {
                format!(
                    "exported {} samples, {}",
                    format::count(report.samples),
                    format::bytes(report.bytes)
                )
            })
        }
        Err(error) => output.not_begun::<crate::export::ExportReport>(&error),
    }
}

pub(super) fn bench(arguments: &Bench, output: &mut Output, cancel: &Cancel) -> u8 {
    match opening::data(&arguments.data.uri, cancel) {
        Ok(data) => {
            let outcome = bench_task::bench(&data, &bench_options(arguments), &Bars::new(), cancel);
            let outcome = outcome.in_store(data.uri());
            output.outcome(&outcome, outcome.report.failures > 0, answer::bench)
        }
        Err(error) => output.not_begun::<BenchReport>(&error),
    }
}

fn bench_options(arguments: &Bench) -> BenchOptions {
    let mut options = BenchOptions {
        epochs: arguments.epochs,
        image_size: arguments.decode,
        think: arguments.think_ms,
        ..BenchOptions::default()
    };
    options.loader.batch_samples = arguments.batch;
    options.loader.order = arguments.order.into();
    options.loader.memory_bytes = arguments.memory;
    options.loader.seed = arguments.seed;
    if let Some(prefetch) = &arguments.prefetch {
        options.loader.prefetch = prefetch.clone();
    }
    options
}
