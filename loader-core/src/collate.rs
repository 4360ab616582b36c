//! How samples become a batch. The engine owns time and threads; what a batch *is* belongs to who implements this.

use std::{fmt::Debug, sync::Arc};

use crate::{
    error::{Error, Result},
    identity::SamplePath,
    sample::Sample,
};

/// What the randomness of one sample in one epoch may depend on: never on threads, ranks or the place in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleSeed {
    /// The user's seed.
    pub seed: u64,
    /// The epoch.
    pub epoch: u64,
}

/// Makes batches: each sample goes once into a slot of its batch, where it stays.
///
/// # Contract
/// - `slots` makes the memory of a whole batch; slots are filled on several threads at once, in any order.
/// - `place` is deterministic from (seed, epoch, path), whatever the thread and slot; it blocks on nothing.
/// - A slot whose sample failed is left out of the batch or masked, as [`Filled::Failed`] in `finish` says.
pub trait Collate: Debug + Send + Sync + 'static {
    /// The place of one sample in a batch under way.
    type Slot: Send + 'static;
    /// What the consumer gets.
    type Batch: Send + 'static;

    /// Memory that a sample is expected to take in its slot, from the size of its payload; bytes, and besides a payload that
    /// is kept. An estimate: the engine corrects it by what filled slots turn out to take.
    fn slot_bytes(&self, payload_bytes: u64) -> u64;
    /// Memory that a slot takes, bytes, besides a payload that is kept.
    fn filled_bytes(&self, slot: &Self::Slot) -> u64;
    /// True where `place` costs so much that it belongs on the worker threads. The payload is then let go after `place`;
    /// otherwise it is kept and counted as part of the batch.
    fn is_heavy(&self) -> bool;
    /// The empty slots of a batch.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TooLarge`] where the memory cannot be had.
    fn slots(&self, samples: usize) -> Result<Vec<Self::Slot>>;
    /// Puts a sample into its slot.
    ///
    /// # Errors
    /// What is wrong with the sample; the error policy decides what follows.
    fn place(&self, slot: &mut Self::Slot, sample: Sample, seed: SampleSeed) -> Result<()>;
    /// Makes the batch of its slots, in their order.
    fn finish(&self, slots: Vec<Filled<Self::Slot>>) -> Self::Batch;
}

/// A slot when its batch is complete.
#[derive(Debug)]
pub enum Filled<S> {
    /// It holds a sample.
    Sample {
        /// What was placed.
        slot: S,
        /// Which sample it is.
        tag: Tag,
    },
    /// Its sample failed and was skipped.
    Failed(S),
    /// No sample was meant for it: the last batch is filled up to the fixed size and masked.
    Padding(S),
}

/// Which sample a slot holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Position in the epoch, over all ranks.
    pub position: u64,
    /// Row of the data set.
    pub row: u64,
    /// Source path.
    pub path: SamplePath,
    /// Label.
    pub label: i64,
}

/// A sample that failed, for the ledger and the report.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Position in the epoch, over all ranks.
    pub position: u64,
    /// Row of the data set.
    pub row: u64,
    /// The row delivered in its place, under `substitute`.
    pub substitute: Option<u64>,
    /// Why.
    pub error: Error,
}

/// Batches of bare samples: no copy, no work.
#[derive(Debug, Clone, Copy, Default)]
pub struct Raw;

/// What [`Raw`] makes.
#[derive(Debug, Default)]
pub struct RawBatch {
    /// The samples, in the batch's order.
    pub samples: Vec<Sample>,
    /// Which they are.
    pub tags: Vec<Tag>,
}

impl Collate for Raw {
    type Slot = Option<Sample>;
    type Batch = RawBatch;

    fn slot_bytes(&self, _: u64) -> u64 {
        0
    }

    fn filled_bytes(&self, _: &Self::Slot) -> u64 {
        0
    }

    fn is_heavy(&self) -> bool {
        false
    }

    fn slots(&self, samples: usize) -> Result<Vec<Self::Slot>> {
        Ok((0..samples).map(|_| None).collect())
    }

    fn place(&self, slot: &mut Self::Slot, sample: Sample, _: SampleSeed) -> Result<()> {
        *slot = Some(sample);
        Ok(())
    }

    fn finish(&self, slots: Vec<Filled<Self::Slot>>) -> RawBatch {
        let mut batch = RawBatch::default();
        for filled in slots {
            if let Filled::Sample {
                slot: Some(sample),
                tag,
            } = filled
            {
                batch.samples.push(sample);
                batch.tags.push(tag);
            }
        }
        batch
    }
}

/// A collation behind a pointer is one too.
impl<C: Collate> Collate for Arc<C> {
    type Slot = C::Slot;
    type Batch = C::Batch;

    fn slot_bytes(&self, payload_bytes: u64) -> u64 {
        (**self).slot_bytes(payload_bytes)
    }

    fn filled_bytes(&self, slot: &Self::Slot) -> u64 {
        (**self).filled_bytes(slot)
    }

    fn is_heavy(&self) -> bool {
        (**self).is_heavy()
    }

    fn slots(&self, samples: usize) -> Result<Vec<Self::Slot>> {
        (**self).slots(samples)
    }

    fn place(&self, slot: &mut Self::Slot, sample: Sample, seed: SampleSeed) -> Result<()> {
        (**self).place(slot, sample, seed)
    }

    fn finish(&self, slots: Vec<Filled<Self::Slot>>) -> Self::Batch {
        (**self).finish(slots)
    }
}
