//! Where answers go: stdout for what was asked, stderr for everything else.

use std::io::{self, ErrorKind, Write};

use loader_core::{Error, Result};
use serde::Serialize;

use super::{exit_code, failure::Failure};
use crate::task::Outcome;

/// Writes answers in the form that was asked for.
#[derive(Debug)]
pub(super) struct Output {
    json: bool,
    closed: bool,
    broken: Option<Error>,
}

/// The object that `--json` prints: the report's keys, and the error where there is one.
#[derive(Serialize)]
struct Object<'a, R: Serialize> {
    #[serde(flatten)]
    report: Option<&'a R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Self {
            json,
            closed: false,
            broken: None,
        }
    }

    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// True once the reader of stdout has gone away.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The answer of a task: its report as JSON or as text, then its error. Gives the exit code; `failed` is a check's verdict.
    pub(super) fn outcome<R: Serialize>(
        &mut self,
        outcome: &Outcome<R>,
        failed: bool,
        text: impl FnOnce(&R) -> String,
    ) -> u8 {
        let failure = outcome.error.as_ref().map(Failure::from);
        if self.json {
            self.json(&Object {
                report: Some(&outcome.report),
                error: failure.as_ref(),
            });
        } else {
            self.text(&text(&outcome.report));
        }
        match &outcome.error {
            Some(error) => {
                say(error);
                exit_code(error)
            }
            None => u8::from(failed),
        }
    }

    /// A command that has no report.
    pub(super) fn failed(&mut self, error: &Error) -> u8 {
        if self.json {
            self.failure::<()>(None, &error.into());
        }
        say(error);
        exit_code(error)
    }

    /// A task that could not begin: its JSON has every key all the same, with the values of an empty report.
    pub(super) fn not_begun<R: Serialize + Default>(&mut self, error: &Error) -> u8 {
        if self.json {
            self.failure(Some(&R::default()), &error.into());
        }
        say(error);
        exit_code(error)
    }

    /// The object of a failure, whatever is known besides.
    pub(super) fn failure<R: Serialize>(&mut self, report: Option<&R>, failure: &Failure) {
        self.json(&Object {
            report,
            error: Some(failure),
        });
    }

    /// One line of JSON.
    pub(super) fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_string(value) {
            Ok(line) => self.text(&line),
            Err(error) => say(&Error::new(
                loader_core::ErrorKind::Internal,
                "the answer is no JSON",
            )
            .caused_by(error)),
        }
    }

    /// A line, or several.
    pub(super) fn text(&mut self, text: &str) {
        let mut stdout = io::stdout().lock();
        if let Err(error) = writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
            match error.kind() {
                ErrorKind::BrokenPipe => self.closed = true,
                _ => self.broken = Some(Error::io("stdout cannot be written", error)),
            }
        }
    }

    /// Ends a stream of lines whose reader has gone away, or that cannot be written.
    pub(super) fn check_open(&self) -> Result<()> {
        match &self.broken {
            Some(error) => Err(error.clone()),
            None if self.closed => Err(Error::new(
                loader_core::ErrorKind::Cancelled,
                "nobody reads stdout",
            )),
            None => Ok(()),
        }
    }

    /// The exit code after the last line: an answer that could not be written was not given.
    pub(super) fn close(self, code: u8) -> u8 {
        match &self.broken {
            Some(error) => {
                say(error);
                exit_code(error)
            }
            None => code,
        }
    }
}

/// Tells a person, on stderr.
fn say(error: &Error) {
    note(&format!("farhaul: {error}"));
    if let Some(hint) = error.advice() {
        note(&format!("hint: {hint}"));
    }
}

/// A line on stderr, where somebody reads it.
pub(super) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
