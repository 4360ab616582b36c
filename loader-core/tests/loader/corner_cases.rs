//! A store, a policy and collations that bring the engine's corner cases about.

use std::{sync::Arc, time::Instant};

use futures_util::stream::BoxStream;
use loader_core::{
    Capability, Catalog, Collate, Error, ErrorKind, FetchRequest, Fetched, Lane, Result, Row,
    Sample, SampleKey, Store, Summary,
    collate::{Filled, SampleSeed, Tag},
    memory::MemoryStore,
    prefetch::{Action, Completion, Outlook, PrefetchSnapshot, Prefetcher, Taken},
};

/// A local store that takes one request of two samples at a time.
#[derive(Debug)]
pub(crate) struct Narrow(pub(crate) MemoryStore);

impl std::fmt::Display for Narrow {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(out)
    }
}

#[async_trait::async_trait]
impl Store for Narrow {
    fn capability(&self) -> Capability {
        let mut capability = self.0.capability();
        (
            capability.local,
            capability.request_samples,
            capability.requests_in_flight,
        ) = (true, 2, 1);
        capability
    }

    fn summary(&self) -> Summary {
        self.0.summary()
    }

    async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        self.0.catalog().await
    }

    fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched> {
        assert!(request.targets.len() <= 2);
        self.0.fetch(request)
    }

    fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
        self.0.keys()
    }

    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
        self.0.metadata()
    }
}

/// Asks for everything at once, gives half of it up before it can have come, and asks again.
#[derive(Debug, Default)]
pub(crate) struct Fickle {
    next: u64,
    cancelled: bool,
    again: u64,
}

impl Prefetcher for Fickle {
    fn completed(&mut self, _: Instant, _: Completion) {}
    fn taken(&mut self, _: Instant, _: Taken) {}
    fn lent(&mut self, _: Instant, _: i64) {}
    fn overloaded(&mut self, _: Instant, _: Lane, _: Option<Instant>) {}

    fn next(&mut self, _: Instant, outlook: &Outlook<'_>) -> Action {
        let issue = |position| Action::Issue {
            position,
            lane: None,
        };
        if self.next < outlook.positions {
            self.next += 1;
            return issue(self.next - 1);
        }
        if self.again < outlook.positions {
            self.cancelled = !self.cancelled;
            if self.cancelled {
                return Action::Cancel {
                    position: self.again,
                };
            }
            self.again += 2;
            return issue(self.again - 2);
        }
        Action::Wait { until: None }
    }

    fn snapshot(&self) -> PrefetchSnapshot {
        PrefetchSnapshot::default()
    }
}

/// Pictures that are a hundred times larger than their files let expect.
#[derive(Debug)]
pub(crate) struct Swelling;

impl Collate for Swelling {
    type Slot = Vec<u8>;
    type Batch = Vec<Vec<u8>>;

    fn slot_bytes(&self, payload_bytes: u64) -> u64 {
        payload_bytes
    }

    fn filled_bytes(&self, slot: &Vec<u8>) -> u64 {
        slot.len() as u64
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn slots(&self, samples: usize) -> Result<Vec<Vec<u8>>> {
        Ok(vec![Vec::new(); samples])
    }

    fn place(&self, slot: &mut Vec<u8>, sample: Sample, _: SampleSeed) -> Result<()> {
        *slot = vec![0; sample.payload.len() * 100];
        Ok(())
    }

    fn finish(&self, slots: Vec<Filled<Vec<u8>>>) -> Vec<Vec<u8>> {
        let slots = slots.into_iter().map(|filled| match filled {
            Filled::Sample { slot, .. } | Filled::Failed(slot) | Filled::Padding(slot) => slot,
        });
        slots.collect()
    }
}

/// A collation that works on the threads and breaks down on one sample.
#[derive(Debug)]
pub(crate) struct Fragile;

impl Collate for Fragile {
    type Slot = u64;
    type Batch = Vec<Option<(u64, Tag)>>;

    fn slot_bytes(&self, _: u64) -> u64 {
        8
    }

    fn filled_bytes(&self, _: &u64) -> u64 {
        8
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn slots(&self, samples: usize) -> Result<Vec<u64>> {
        Ok(vec![0; samples])
    }

    fn place(&self, slot: &mut u64, sample: Sample, seed: SampleSeed) -> Result<()> {
        assert!(!sample.path.ends_with(b"00013.jpg"), "on purpose");
        if sample.path.ends_with(b"00014.jpg") {
            return Err(Error::new(ErrorKind::Truncated, "on purpose"));
        }
        *slot = seed.epoch * 1000 + sample.payload.len() as u64;
        Ok(())
    }

    fn finish(&self, slots: Vec<Filled<u64>>) -> Self::Batch {
        let samples = slots.into_iter().map(|filled| match filled {
            Filled::Sample { slot, tag } => Some((slot, tag)),
            Filled::Failed(_) | Filled::Padding(_) => None,
        });
        samples.collect()
    }
}
