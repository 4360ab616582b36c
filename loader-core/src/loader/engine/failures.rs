//! What a bad sample does: end the epoch, leave a gap, or make room for another of its class.

use super::{Engine, assembly::Spot, requests::Target};
use crate::{
    collate::{Collate, Failure},
    error::{Error, ErrorKind, Result},
    loader::{
        config::OnError,
        permutation::{Permutation, mix},
    },
    sample::Sample,
};

/// How many substitutes are tried for one bad sample.
const SUBSTITUTE_LIMIT: u32 = 4;
/// How many rows are looked at here and there for a substitute, before those of its class are looked for one after another.
const SUBSTITUTE_SEARCH: u64 = 4096;
/// How many rows are looked at one after another: the engine stands still meanwhile, a few milliseconds at the most.
const SUBSTITUTE_SCAN: usize = 1 << 20;

impl<C: Collate> Engine<C> {
    /// A sample is bad: what follows is the policy's choice.
    pub(super) fn failed(&mut self, spot: Spot, target: Target, error: Error) -> Result<()> {
        let error = self.named(error, target.row);
        if self.parts.config.on_error == OnError::Fail {
            // Told by the error itself; a list of one would only repeat it.
            return Err(
                error.hint("skip or substitute bad samples with on_error, or repair the data set")
            );
        }
        if target.substitute == 0 {
            self.failures += 1;
        }
        let position = self.ahead.in_epoch(target.position);
        let failure = Failure {
            position,
            row: target.row,
            substitute: None,
            error: error.clone(),
        };
        self.failing.entry(target.position).or_insert(failure);
        let allowed = self
            .parts
            .config
            .max_errors
            .allowed(self.ahead.plan.ordinals());
        if self.failures > allowed {
            let message = format!("{} samples failed, {allowed} are allowed", self.failures);
            return Err(Error::new(ErrorKind::TooManyErrors, message)
                .during("loader")
                .hint("the loader lists the failures; raise max_errors or repair the data set")
                .caused_by(error));
        }
        if self.parts.config.on_error == OnError::Substitute
            && target.substitute < SUBSTITUTE_LIMIT
            && let Some(row) = self.substitute_for(target)
        {
            self.substitutes.insert(target.position, spot);
            let bytes = self.ahead.payload_bytes(row);
            self.requests.queue_first(Target {
                row,
                substitute: target.substitute + 1,
                bytes,
                ..target
            });
            return Ok(());
        }
        let slot = self.assembly.take(spot)?;
        let slot_bytes = self.filled(target.position, &slot, 0);
        self.assembly
            .skip(spot, self.ahead.ordinal(target.position), slot, slot_bytes);
        self.report(spot, target, None);
        Ok(())
    }

    pub(super) fn substituted(&mut self, target: Target, outcome: Result<Sample>) -> Result<()> {
        let Some(spot) = self.substitutes.remove(&target.position) else {
            return Ok(());
        };
        match outcome {
            Ok(sample) => {
                self.parts.held.add(sample.payload.len() as u64);
                self.dispatch(spot, target, sample)
            }
            Err(error) if error.is_of_one_sample() || error.is_transient() => {
                self.failed(spot, target, error)
            }
            Err(error) => Err(self.named(error, target.row)),
        }
    }

    /// Another row of the same class, chosen by seed, epoch, position and attempt.
    fn substitute_for(&self, target: Target) -> Option<u64> {
        let catalog = self.ahead.catalog.as_ref()?;
        let failed = self.ahead.row(target.position);
        let label = catalog.label(failed);
        let seed =
            mix(self.parts.state.seed ^ failed.rotate_left(32)) ^ u64::from(target.substitute);
        let order = Permutation::new(catalog.len(), seed, self.parts.state.epoch);
        let fits = |row: &u64| *row != failed && *row != target.row && catalog.label(*row) == label;
        let mut anywhere = (0..catalog.len().min(SUBSTITUTE_SEARCH)).map(|at| order.at(at));
        let start = order.at(0);
        let onwards = (start..catalog.len()).chain(0..start);
        anywhere
            .find(fits)
            .or_else(|| onwards.take(SUBSTITUTE_SCAN).find(fits))
    }

    /// Tells with its batch what became of a sample that had failed.
    pub(super) fn report(&mut self, spot: Spot, target: Target, substitute: Option<u64>) {
        if let Some(failure) = self.failing.remove(&target.position) {
            self.assembly.report(
                spot.batch,
                Failure {
                    substitute,
                    ..failure
                },
            );
        }
    }

    pub(super) fn named(&self, error: Error, row: u64) -> Error {
        match &self.ahead.catalog {
            Some(catalog) if error.path().is_none() => error.at(catalog.row(row).path),
            _ => error,
        }
    }
}
