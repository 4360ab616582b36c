//! One account of all bytes that a loader holds: in flight, unordered, ready, and lent to the consumer.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use tokio::sync::mpsc::UnboundedSender;

use crate::loader::ready::ConsumerEvent;

/// The account, shared by the engine and the leases of the batches that were handed over.
#[derive(Debug, Default)]
pub(crate) struct Held {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Held {
    pub(crate) fn add(&self, bytes: u64) {
        let now = self.now.fetch_add(bytes, Relaxed) + bytes;
        self.peak.fetch_max(now, Relaxed);
    }

    pub(crate) fn remove(&self, bytes: u64) {
        // Saturating, so that a wrong estimate can never wrap the account to "full for ever".
        self.now
            .fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_sub(bytes)))
            .expect("the closure always answers");
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Relaxed)
    }
}

/// The memory of a batch that the consumer has: as long as this lives, the bytes count against the budget.
pub struct Lease {
    bytes: u64,
    held: Arc<Held>,
    events: UnboundedSender<ConsumerEvent>,
}

impl Lease {
    pub(crate) fn new(bytes: u64, held: Arc<Held>, events: UnboundedSender<ConsumerEvent>) -> Self {
        Self {
            bytes,
            held,
            events,
        }
    }

    /// How many bytes are lent.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn announce(&self) {
        self.tell(i64::try_from(self.bytes).unwrap_or(i64::MAX));
    }

    fn tell(&self, change_bytes: i64) {
        // An epoch that has ended has nobody left to tell.
        let _ = self.events.send(ConsumerEvent::Lent(change_bytes));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.held.remove(self.bytes);
        self.tell(i64::try_from(self.bytes).map_or(i64::MIN, |bytes| -bytes));
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Lease({} bytes)", self.bytes)
    }
}
