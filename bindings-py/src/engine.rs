//! The engine's loader and epochs of any mode behind one type: Python does not know generics.

use std::time::Duration;

use farhaul::{Collate, Delivered, Epoch, Failure, Loader, Result, State, Stats, Step};

use crate::content::Content;

/// A loader of any mode.
pub(crate) trait AnyLoader: Send {
    fn batches_left(&self) -> u64;
    fn epoch(&self) -> u64;
    /// Makes the next start begin this epoch; the state says so at once.
    fn set_epoch(&mut self, epoch: u64);
    fn start(&mut self) -> Result<Box<dyn AnyEpoch>>;
    fn state(&self) -> State;
    fn load_state(&mut self, state: &State) -> Result<()>;
    fn stats(&self) -> Stats;
    fn failures(&self) -> Vec<Failure>;
}

/// An epoch of any mode.
pub(crate) trait AnyEpoch: Send {
    fn next_within(&mut self, patience: Duration) -> Result<Step<Content>>;
}

impl<C> AnyLoader for Loader<C>
where
    C: Collate,
    Content: From<C::Batch>,
{
    fn batches_left(&self) -> u64 {
        self.batches_left()
    }

    fn epoch(&self) -> u64 {
        self.epoch()
    }

    fn set_epoch(&mut self, epoch: u64) {
        self.set_epoch(epoch);
    }

    fn start(&mut self) -> Result<Box<dyn AnyEpoch>> {
        Ok(Box::new(self.start()?))
    }

    fn state(&self) -> State {
        self.state()
    }

    fn load_state(&mut self, state: &State) -> Result<()> {
        self.load_state(state)
    }

    fn stats(&self) -> Stats {
        self.stats()
    }

    fn failures(&self) -> Vec<Failure> {
        self.failures()
    }
}

impl<B: Send + 'static> AnyEpoch for Epoch<B>
where
    Content: From<B>,
{
    fn next_within(&mut self, patience: Duration) -> Result<Step<Content>> {
        Ok(match self.next_within(patience)? {
            Step::Batch(delivered) => {
                let Delivered {
                    batch,
                    samples,
                    payload_bytes,
                    failures,
                    lease,
                } = delivered;
                Step::Batch(Delivered {
                    batch: batch.into(),
                    samples,
                    payload_bytes,
                    failures,
                    lease,
                })
            }
            Step::Pending => Step::Pending,
            Step::End => Step::End,
        })
    }
}
