//! Progress on stderr: a bar on a terminal, a line now and then elsewhere.

use std::{
    io::{IsTerminal, stderr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::{format, output::note};
use crate::task::Progress;

/// Time between two plain lines.
const PERIOD: Duration = Duration::from_secs(10);

/// Shows how far a task is.
#[derive(Debug)]
pub(super) struct Bars {
    is_terminal: bool,
    step: Mutex<Option<Step>>,
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    expected: Option<u64>,
    samples: u64,
    bytes: u64,
    begun: Instant,
    told: Instant,
    bar: Option<ProgressBar>,
}

impl Bars {
    pub(super) fn new() -> Self {
        Self {
            is_terminal: stderr().is_terminal(),
            step: Mutex::new(None),
        }
    }

    fn step(&self) -> MutexGuard<'_, Option<Step>> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Bars {
    fn started(&self, name: &'static str, expected: Option<u64>) {
        let bar = self.is_terminal.then(|| bar(name, expected));
        let now = Instant::now();
        *self.step() = Some(Step {
            name,
            expected,
            samples: 0,
            bytes: 0,
            begun: now,
            told: now,
            bar,
        });
    }

    fn advanced(&self, samples: u64, bytes: u64) {
        let mut step = self.step();
        let Some(step) = &mut *step else { return };
        step.samples += samples;
        step.bytes += bytes;
        if let Some(bar) = &step.bar {
            bar.set_position(step.samples);
            bar.set_message(step.rate());
        } else if step.told.elapsed() >= PERIOD {
            step.told = Instant::now();
            let of = step.expected.map_or(String::new(), |expected| {
                format!(" of {}", format::count(expected))
            });
            note(&format!(
                "{}: {}{of} samples, {}",
                step.name,
                format::count(step.samples),
                step.rate()
            ));
        }
    }

    fn warned(&self, warning: &str) {
        let line = || note(&format!("warning: {warning}"));
        match self.step().as_ref().and_then(|step| step.bar.as_ref()) {
            Some(bar) => bar.suspend(line),
            None => line(),
        }
    }

    fn finished(&self) {
        if let Some(bar) = self.step().take().and_then(|step| step.bar) {
            bar.finish_and_clear();
        }
    }
}

impl Step {
    /// Bytes so far and per second.
    fn rate(&self) -> String {
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-9);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate to look at"
        )]
        let rate = (self.bytes as f64 / seconds) as u64;
        format!("{}, {}/s", format::bytes(self.bytes), format::bytes(rate))
    }
}

fn bar(name: &'static str, expected: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(expected, ProgressDrawTarget::stderr_with_hz(8));
    let template = match expected {
        Some(_) => "{prefix:>16} {wide_bar} {pos}/{len} samples  {msg}  {left}",
        None => "{prefix:>16} {spinner} {pos}  {msg}",
    };
    let left = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        // A bar that cannot be written shows less; nothing else follows.
        let _ = write!(out, "{} s left", state.eta().as_secs());
    };
    let style = ProgressStyle::with_template(template)
        .expect("the template is a constant that a test renders");
    bar.set_style(style.with_key("left", left));
    bar.set_prefix(name);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_templates_are_understood() {
        for expected in [None, Some(3)] {
            bar("ingest", expected).finish_and_clear();
        }
    }

    #[test]
    fn steps_may_be_told_of_in_any_order() {
        let bars = Bars::new();
        bars.advanced(1, 1);
        bars.finished();
        bars.warned("nothing is under way");
        bars.started("verify", Some(2));
        bars.warned("something is");
        bars.advanced(1, 1);
        bars.started("bench", None);
        bars.finished();
    }
}
