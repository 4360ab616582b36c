//! Batches under way: their slots, what is in them and what is missing.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    collate::{Collate, Failure, Filled, Tag},
    error::Result,
    loader::{plan::Plan, ready::Ready},
};

/// Where a sample is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) batch: u64,
    pub(super) slot: usize,
}

enum Slot<S> {
    Empty(S),
    /// On a worker thread, or waiting for a substitute.
    Away,
    Done(Filled<S>),
}

struct Open<S> {
    slots: Vec<Slot<S>>,
    missing: u64,
    ordinals: Vec<u64>,
    payload_bytes: u64,
    held_bytes: u64,
    failures: Vec<Failure>,
}

/// The batches of an epoch that are not complete.
pub(super) struct Assembly<C: Collate> {
    collate: Arc<C>,
    open: BTreeMap<u64, Open<C::Slot>>,
    next: u64,
    end: u64,
    first_batch: u64,
    plan: Plan,
}

impl<C: Collate> Assembly<C> {
    /// For the batches that are left of a plan, `first_batch` of which were handed over before.
    pub(super) fn new(collate: Arc<C>, plan: Plan, first_batch: u64) -> Self {
        let end = plan.batches().saturating_sub(first_batch);
        Self {
            collate,
            open: BTreeMap::new(),
            next: 0,
            end,
            first_batch,
            plan,
        }
    }

    /// True where every batch has been handed on.
    pub(super) fn is_finished(&self) -> bool {
        self.next >= self.end
    }

    /// Takes an empty slot to be filled.
    ///
    /// # Errors
    /// Where there is no memory for the batch.
    pub(super) fn take(&mut self, spot: Spot) -> Result<C::Slot> {
        self.ensure(spot.batch)?;
        let open = self.open.get_mut(&spot.batch).expect("it was just made");
        match std::mem::replace(&mut open.slots[spot.slot], Slot::Away) {
            Slot::Empty(slot) => Ok(slot),
            Slot::Away | Slot::Done(_) => unreachable!("the reorder window gives each slot once"),
        }
    }

    /// Puts a slot back that waits for a substitute.
    pub(super) fn put_back(&mut self, spot: Spot, slot: C::Slot) {
        if let Some(open) = self.open.get_mut(&spot.batch) {
            open.slots[spot.slot] = Slot::Empty(slot);
        }
    }

    /// A slot has got its sample. `held_bytes` stay held with the batch.
    pub(super) fn fill(
        &mut self,
        spot: Spot,
        ordinal: u64,
        slot: C::Slot,
        tag: Tag,
        payload_bytes: u64,
        held_bytes: u64,
    ) {
        self.settle(spot, ordinal, Filled::Sample { slot, tag });
        if let Some(open) = self.open.get_mut(&spot.batch) {
            open.payload_bytes += payload_bytes;
            open.held_bytes += held_bytes;
        }
    }

    /// A slot stays without a sample.
    pub(super) fn skip(&mut self, spot: Spot, ordinal: u64, slot: C::Slot, held_bytes: u64) {
        self.settle(spot, ordinal, Filled::Failed(slot));
        if let Some(open) = self.open.get_mut(&spot.batch) {
            open.held_bytes += held_bytes;
        }
    }

    /// Notes a failure in the report of its batch.
    pub(super) fn report(&mut self, batch: u64, failure: Failure) {
        if let Some(open) = self.open.get_mut(&batch) {
            open.failures.push(failure);
        }
    }

    /// Takes out the failures of all batches that are not complete.
    pub(super) fn failures(&mut self) -> Vec<Failure> {
        let open = self.open.values_mut();
        open.flat_map(|open| std::mem::take(&mut open.failures))
            .collect()
    }

    /// The next batch, once all its slots are settled.
    ///
    /// # Errors
    /// Where there is no memory for an empty batch.
    pub(super) fn complete(&mut self) -> Result<Option<Ready<C::Batch>>> {
        if self.is_finished() {
            return Ok(None);
        }
        if self.plan.batch_len(self.first_batch + self.next) == 0 {
            self.ensure(self.next)?;
        }
        if self
            .open
            .get(&self.next)
            .is_none_or(|open| open.missing > 0)
        {
            return Ok(None);
        }
        let open = self.open.remove(&self.next).expect("it was just looked at");
        self.next += 1;
        let mut samples = 0;
        let filled = open.slots.into_iter().map(|slot| match slot {
            Slot::Empty(slot) => Filled::Padding(slot),
            Slot::Done(filled) => {
                samples += u64::from(matches!(filled, Filled::Sample { .. }));
                filled
            }
            Slot::Away => unreachable!("no slot is missing"),
        });
        let filled: Vec<_> = filled.collect();
        Ok(Some(Ready {
            batch: self.collate.finish(filled),
            ordinals: open.ordinals,
            samples,
            payload_bytes: open.payload_bytes,
            held_bytes: open.held_bytes,
            failures: open.failures,
        }))
    }

    fn settle(&mut self, spot: Spot, ordinal: u64, filled: Filled<C::Slot>) {
        if let Some(open) = self.open.get_mut(&spot.batch) {
            open.slots[spot.slot] = Slot::Done(filled);
            open.ordinals.push(ordinal);
            open.missing -= 1;
        }
    }

    fn ensure(&mut self, batch: u64) -> Result<()> {
        if self.open.contains_key(&batch) {
            return Ok(());
        }
        let number = self.first_batch + batch;
        let missing = self.plan.batch_len(number);
        let slots = usize::try_from(self.plan.batch_slots(number))
            .expect("a batch size is checked to be small");
        let slots = self
            .collate
            .slots(slots)?
            .into_iter()
            .map(Slot::Empty)
            .collect();
        let open = Open {
            slots,
            missing,
            ordinals: Vec::new(),
            payload_bytes: 0,
            held_bytes: 0,
            failures: Vec::new(),
        };
        self.open.insert(batch, open);
        Ok(())
    }
}
