//! From an answer to a filled slot: the way of one sample through the engine.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Instant,
};

use super::{
    Done, Engine,
    assembly::Spot,
    requests::{Answer, Target},
};
use crate::{
    collate::{Collate, SampleSeed, Tag},
    error::{ErrorKind, Result},
    loader::{reorder::Place, workers::catch},
    prefetch::{Arrival, Completion},
    sample::Sample,
};

/// How often a position is asked for again after transient failures that the store's own retries did not cure.
const LOST_LIMIT: u32 = 4;

impl<C: Collate> Engine<C> {
    pub(super) fn answered(&mut self, answer: Answer) -> Result<()> {
        let Answer {
            target,
            started,
            fetched,
        } = answer;
        let now = Instant::now();
        if target.substitute > 0 {
            return self.substituted(target, fetched.outcome);
        }
        let position = target.position;
        let bytes = fetched
            .outcome
            .as_ref()
            .map_or(0, |sample| sample.payload.len() as u64);
        let mut completion = Completion {
            position,
            bytes,
            started,
            lane: fetched.lane,
            arrival: Arrival::Duplicate,
        };
        let Some(wanted) = self.wanted.get_mut(&position) else {
            self.policy.completed(now, completion);
            return Ok(());
        };
        let expected = wanted.payload_bytes;
        match fetched.outcome {
            Err(error) if error.is_transient() => {
                if error.kind() == ErrorKind::Overloaded {
                    self.policy.overloaded(now, fetched.lane, None);
                }
                wanted.copies -= 1;
                if wanted.copies > 0 {
                    self.policy.completed(now, completion);
                    return Ok(());
                }
                self.wanted.remove(&position);
                self.parts.held.remove(expected);
                self.release(position);
                let times = self.lost.entry(position).or_default();
                *times += 1;
                if *times > LOST_LIMIT {
                    return Err(self.named(error, target.row));
                }
                self.parts.counters.retries.fetch_add(1, Relaxed);
                completion.arrival = Arrival::Lost;
                self.policy.completed(now, completion);
                return Ok(());
            }
            Err(error) if !error.is_of_one_sample() => {
                return Err(self.named(error, target.row));
            }
            outcome => {
                completion.arrival = if outcome.is_ok() {
                    Arrival::Delivered
                } else {
                    Arrival::Failed
                };
                self.arrived.insert(position, outcome);
            }
        }
        self.wanted.remove(&position);
        self.lost.remove(&position);
        self.parts.held.remove(expected);
        self.parts.held.add(bytes);
        self.policy.completed(now, completion);
        self.reorder.arrived(position, &mut self.places);
        for place in std::mem::take(&mut self.places) {
            self.placed(place)?;
        }
        Ok(())
    }

    fn placed(&mut self, place: Place) -> Result<()> {
        let slot = usize::try_from(place.slot).expect("a batch size is checked to be small");
        let spot = Spot {
            batch: place.batch,
            slot,
        };
        let row = self.ahead.row(place.ordinal);
        let target = Target {
            position: place.ordinal,
            row,
            substitute: 0,
            bytes: 0,
            lane: None,
            avoid: None,
        };
        match self
            .arrived
            .remove(&place.ordinal)
            .expect("a place is given to what has arrived")
        {
            Ok(sample) => self.dispatch(spot, target, sample),
            Err(error) => self.failed(spot, target, error),
        }
    }

    /// Sends a sample into its slot: here if that costs nothing, else on a worker thread.
    pub(super) fn dispatch(&mut self, spot: Spot, target: Target, sample: Sample) -> Result<()> {
        let mut slot = self.assembly.take(spot)?;
        let position = self.ahead.in_epoch(target.position);
        let tag = Tag {
            position,
            row: target.row,
            path: sample.path.clone(),
            label: sample.label,
        };
        let payload_bytes = sample.payload.len() as u64;
        let seed = SampleSeed {
            seed: self.parts.state.seed,
            epoch: self.parts.state.epoch,
        };
        if !self.parts.collate.is_heavy() {
            let outcome = self.parts.collate.place(&mut slot, sample, seed);
            return self.settled(Done {
                spot,
                target,
                slot,
                tag,
                payload_bytes,
                outcome,
            });
        }
        let collate = Arc::clone(&self.parts.collate);
        let done = self.done_sender.clone();
        self.jobs_out += 1;
        self.parts.workers.run(move || {
            let outcome = catch(|| collate.place(&mut slot, sample, seed));
            // An epoch that was given up has nobody left to tell.
            let _ = done.send(Done {
                spot,
                target,
                slot,
                tag,
                payload_bytes,
                outcome,
            });
        });
        Ok(())
    }

    pub(super) fn finished(&mut self, done: Done<C::Slot>) -> Result<()> {
        self.jobs_out -= 1;
        // The payload was dropped on the worker thread; from here on only the slot is held.
        self.parts.held.remove(done.payload_bytes);
        self.settled(done)
    }

    fn settled(&mut self, done: Done<C::Slot>) -> Result<()> {
        let Done {
            spot,
            target,
            slot,
            tag,
            payload_bytes,
            outcome,
        } = done;
        match outcome {
            Ok(()) => {
                let filled_bytes = self.filled(target.position, &slot, payload_bytes);
                let held = if self.parts.collate.is_heavy() {
                    filled_bytes
                } else {
                    payload_bytes + filled_bytes
                };
                self.assembly.fill(
                    spot,
                    self.ahead.ordinal(target.position),
                    slot,
                    tag,
                    payload_bytes,
                    held,
                );
                self.report(spot, target, (target.substitute > 0).then_some(target.row));
                Ok(())
            }
            Err(error) => {
                if !self.parts.collate.is_heavy() {
                    self.parts.held.remove(payload_bytes);
                }
                self.assembly.put_back(spot, slot);
                self.failed(spot, target, error.at(tag.path))
            }
        }
    }

    /// Books what a slot really takes in place of what was set aside for it, and learns from the difference.
    pub(super) fn filled(&mut self, position: u64, slot: &C::Slot, payload_bytes: u64) -> u64 {
        self.release(position);
        let filled_bytes = self.parts.collate.filled_bytes(slot);
        self.parts.held.add(filled_bytes);
        let expected = self.parts.collate.slot_bytes(payload_bytes);
        if payload_bytes > 0 && expected > 0 {
            #[expect(clippy::cast_precision_loss, reason = "a ratio of two sizes")]
            let scale = filled_bytes as f64 / expected as f64;
            // Follows the last sixteen or so: enough to be steady, and soon enough after the first.
            self.slot_scale =
                (self.slot_scale + (scale - self.slot_scale) / 16.0).clamp(0.01, 1000.0);
        }
        filled_bytes
    }
}
