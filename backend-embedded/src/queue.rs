//! Puts that wait for one another are written together: a commit waits for the disk, and four groups wait no longer for
//! it than one.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use loader_core::{Error, ErrorKind, NewSample, Result, Row, SampleKey, identity::checksum};

/// Payload bytes that are written in one transaction at most, beyond its first group.
const BATCH_BYTES: u64 = 32 << 20;

/// One group of samples on its way into the store.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) samples: Vec<NewSample>,
    /// A row a sample.
    pub(crate) rows: Vec<Row>,
    /// Payload bytes of all samples.
    bytes: u64,
    /// Which samples were written now, once that is known.
    outcome: OnceLock<Result<Vec<bool>>>,
}

impl Group {
    /// Names and sums up the samples; this reads all their bytes.
    pub(crate) fn new(samples: Vec<NewSample>) -> Arc<Self> {
        let rows: Vec<Row> = samples.iter().map(row).collect();
        let bytes = rows.iter().map(|row| row.nbytes).sum();
        Arc::new(Self {
            samples,
            rows,
            bytes,
            outcome: OnceLock::new(),
        })
    }
}

fn row(sample: &NewSample) -> Row {
    let checksum = checksum(&sample.payload);
    Row {
        path: sample.path.clone(),
        key: SampleKey::of_content(&sample.path, checksum),
        nbytes: sample.payload.len() as u64,
        checksum: Some(checksum),
        label: sample.label,
        parts: Arc::clone(&sample.parts),
        fields: sample.fields.clone(),
    }
}

/// Groups that wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<VecDeque<Arc<Group>>>,
    /// Held by the thread that writes, for itself and for whoever waits.
    turn: Mutex<()>,
}

impl Queue {
    /// Waits until `group` is written, by this thread or by another one that had its turn earlier.
    ///
    /// `write` writes some groups in one transaction and tells of each sample whether it was written now.
    pub(crate) fn run(
        &self,
        group: &Arc<Group>,
        write: impl Fn(&[Arc<Group>]) -> Result<Vec<Vec<bool>>>,
    ) -> Result<Vec<bool>> {
        self.waiting().push_back(Arc::clone(group));
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(outcome) = group.outcome.get() {
                return outcome.clone();
            }
            let batch = self.batch();
            if batch.is_empty() {
                // The thread that took it had a panic.
                return Err(Error::new(
                    ErrorKind::Internal,
                    "a group of samples was not written",
                ));
            }
            match write(&batch) {
                Ok(outcomes) => settle(&batch, outcomes.into_iter().map(Ok)),
                // What one group cannot have (space, above all) must not be denied to the others.
                Err(_) if batch.len() > 1 => {
                    let alone = |group| {
                        write(std::slice::from_ref(group)).map(|outcomes| outcomes.concat())
                    };
                    settle(&batch, batch.iter().map(alone));
                }
                Err(error) => settle(&batch, [Err(error)].into_iter()),
            }
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<Arc<Group>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn batch(&self) -> Vec<Arc<Group>> {
        let mut waiting = self.waiting();
        let mut bytes = 0;
        let mut count = 0;
        for group in waiting.iter() {
            bytes += group.bytes;
            if count > 0 && bytes > BATCH_BYTES {
                break;
            }
            count += 1;
        }
        waiting.drain(..count).collect()
    }
}

fn settle(batch: &[Arc<Group>], outcomes: impl Iterator<Item = Result<Vec<bool>>>) {
    for (group, outcome) in batch.iter().zip(outcomes) {
        // Only the thread that has the turn gets here, and it takes a group once.
        let _ = group.outcome.set(outcome);
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use loader_core::Part;

    use super::*;

    fn group(number: usize) -> Arc<Group> {
        let sample = NewSample {
            path: format!("{number}").into(),
            label: 0,
            parts: Part::sequence([("bin", 1)]),
            payload: vec![1].into(),
            fields: loader_core::Fields::new(),
        };
        Group::new(vec![sample])
    }

    #[test]
    fn groups_that_wait_are_written_together() {
        let (queue, batches) = (Queue::default(), Mutex::new(Vec::new()));
        let start = Barrier::new(8);
        let write = |batch: &[Arc<Group>]| {
            batches.lock().unwrap().push(batch.len());
            thread::sleep(std::time::Duration::from_millis(50));
            Ok(batch.iter().map(|_| vec![true]).collect())
        };
        thread::scope(|scope| {
            for number in 0..8 {
                let (queue, start) = (&queue, &start);
                scope.spawn(move || {
                    start.wait();
                    assert_eq!(queue.run(&group(number), write).unwrap(), [true]);
                });
            }
        });
        let batches = batches.into_inner().unwrap();
        assert_eq!(
            batches.iter().sum::<usize>(),
            8,
            "each group was written once"
        );
        assert!(
            batches.len() < 8,
            "no group waited for another: {batches:?}"
        );
    }

    #[test]
    fn a_group_that_fails_does_not_take_others_with_it() {
        let queue = Queue::default();
        let (bad, good) = (group(0), group(1));
        queue.waiting().push_back(Arc::clone(&bad));
        let write = |batch: &[Arc<Group>]| {
            if batch.iter().any(|group| Arc::ptr_eq(group, &bad)) {
                return Err(Error::new(ErrorKind::DiskFull, "full"));
            }
            Ok(batch.iter().map(|_| vec![true]).collect())
        };
        assert_eq!(queue.run(&good, write).unwrap(), [true]);
        assert_eq!(
            bad.outcome.get().unwrap().as_ref().unwrap_err().kind(),
            ErrorKind::DiskFull
        );
    }
}
