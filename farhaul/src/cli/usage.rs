//! Wrong usage, and help: what clap answers, as text or as JSON.

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory, error::ErrorKind};

use super::{arguments::Arguments, failure::Failure, output::Output};
use crate::{bench::BenchReport, info::InfoReport, ingest::IngestReport, verify::VerifyReport};

/// Prints help on stdout, or what is wrong: on stderr, and as JSON on stdout where that was asked for.
pub(super) fn answer(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let wants_json = arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .any(|argument| argument == "--json");
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            Output::new(false).text(error.to_string().trim_end());
            ExitCode::SUCCESS
        }
        _ if wants_json => {
            let operation = operation(arguments);
            let (message, hint) = split(&error.to_string());
            fail(
                &operation,
                &Failure::usage(operation.clone(), message, hint),
            );
            ExitCode::from(2)
        }
        _ => {
            // Nothing is left to say it to where stderr is closed.
            let _ = error.print();
            ExitCode::from(2)
        }
    }
}

/// The keys of the command's answer are there however wrongly it was typed.
fn fail(operation: &str, failure: &Failure) {
    let mut output = Output::new(true);
    match operation {
        "ingest" => output.failure(Some(&IngestReport::default()), failure),
        "info" => output.failure(Some(&InfoReport::default()), failure),
        "verify" => output.failure(Some(&VerifyReport::default()), failure),
        #[cfg(feature = "folder")]
        "export" => output.failure(Some(&crate::export::ExportReport::default()), failure),
        "bench" => output.failure(Some(&BenchReport::default()), failure),
        _ => output.failure::<()>(None, failure),
    }
}

/// The subcommand, where it is one.
fn operation(arguments: &[OsString]) -> String {
    let command = Arguments::command();
    let typed = arguments
        .iter()
        .skip(1)
        .find_map(|argument| command.find_subcommand(argument));
    typed.map_or(String::new(), |known| known.get_name().to_owned())
}

/// The first paragraph is what is wrong; tips say what was meant.
fn split(text: &str) -> (String, Option<String>) {
    let mut paragraphs = text.split("\n\n");
    let message = paragraphs.next().unwrap_or_default().trim();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let tips: Vec<_> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("tip: "))
        .collect();
    let hint = if tips.is_empty() {
        "see farhaul --help".to_owned()
    } else {
        tips.join("; ")
    };
    (
        message.split_whitespace().collect::<Vec<_>>().join(" "),
        Some(hint),
    )
}
