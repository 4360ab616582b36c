//! Gzip shards: listed once, then each is unpacked once more from front to back, and every byte goes where its sample needs it.

use std::{
    collections::{HashMap, VecDeque},
    fs::File,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

use loader_core::{Catalog, Error, ErrorKind, NewSample, Result, Sample};

use super::{ahead::SAMPLE_BYTES, new_sample, queue::ByteQueue};
use crate::{
    config::SourceConfig,
    failure, read,
    tar::{Archive, GzipArchive},
    tars::{Extent, Shard, TarCatalog},
};

/// How many times the read-ahead one shard may hold of samples whose members are not side by side.
const SCATTERED: u64 = 4;

type Entry = Result<NewSample>;

/// Hands out the samples of all gzip shards; the threads start with the first call.
#[derive(Debug)]
pub(super) struct GzipShards {
    work: Arc<Work>,
    threads: usize,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Work {
    catalog: Arc<TarCatalog>,
    /// By shard, its rows.
    rows: Vec<Vec<u32>>,
    next: AtomicUsize,
    queue: ByteQueue<Entry>,
    scattered_limit: u64,
}

impl GzipShards {
    pub(super) fn new(
        catalog: Arc<TarCatalog>,
        rows: Vec<Vec<u32>>,
        config: &SourceConfig,
    ) -> Self {
        let threads = config.read_threads.clamp(1, 64).min(rows.len());
        let queue = ByteQueue::new(config.read_ahead_bytes, threads);
        let scattered_limit = config.read_ahead_bytes.saturating_mul(SCATTERED);
        let work = Work {
            catalog,
            rows,
            next: AtomicUsize::new(0),
            queue,
            scattered_limit,
        };
        Self {
            work: Arc::new(work),
            threads,
            workers: Vec::new(),
        }
    }

    pub(super) fn expected(&self) -> u64 {
        self.work.rows.iter().map(|rows| rows.len() as u64).sum()
    }

    pub(super) fn next_sample(&mut self) -> Option<Entry> {
        if self.workers.is_empty()
            && let Err(error) = self.start()
        {
            return Some(Err(error));
        }
        self.work.queue.pop()
    }

    /// Starts as many threads as the system gives: an error where that is none, and then there are no samples.
    fn start(&mut self) -> Result<()> {
        while self.workers.len() < self.threads {
            let work = Arc::clone(&self.work);
            match thread::Builder::new().spawn(move || work.run()) {
                Ok(worker) => self.workers.push(worker),
                Err(error) => {
                    for _ in self.workers.len()..self.threads {
                        self.work.queue.leave();
                    }
                    self.threads = self.workers.len();
                    if self.threads == 0 {
                        return Err(failure::no_thread(error));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for GzipShards {
    fn drop(&mut self) {
        self.work.queue.close();
        for worker in self.workers.drain(..) {
            drop(worker.join());
        }
    }
}

/// Leaves the queue also where the thread panics.
struct Leaves<'a>(&'a ByteQueue<Entry>);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Work {
    fn run(&self) {
        let _leaves = Leaves(&self.queue);
        loop {
            let shard = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(rows) = self.rows.get(shard) else {
                return;
            };
            if !rows.is_empty() && self.shard(&self.catalog.shards[shard], rows).is_none() {
                return;
            }
        }
    }

    /// All samples of one shard; `None` where nobody wants more.
    fn shard(&self, shard: &Shard, rows: &[u32]) -> Option<()> {
        let (mut extents, mut missing) = (Vec::new(), HashMap::new());
        for row in rows {
            if let Some(error) = self.catalog.problem(*row as usize) {
                self.send(Err(error), 0)?;
                continue;
            }
            let before = extents.len();
            self.catalog.extents(*row as usize, &mut extents);
            missing.insert(*row, extents.len() - before);
        }
        extents.sort_by_key(|extent| extent.offset);
        let mut unpacking = Unpacking {
            work: self,
            missing,
            pending: HashMap::new(),
            order: VecDeque::new(),
            held: 0,
        };
        match unpacking.run(shard, &extents)? {
            Ok(()) => Some(()),
            // What is left of the shard cannot be had any more: an outcome for every sample all the same.
            Err(error) => {
                let mut left: Vec<_> = unpacking.missing.into_keys().collect();
                left.sort_unstable();
                left.into_iter().try_for_each(|row| {
                    self.send(Err(error.clone().at(self.catalog.path(row as usize))), 0)
                })
            }
        }
    }

    fn send(&self, entry: Entry, nbytes: u64) -> Option<()> {
        let nbytes = nbytes.saturating_add(SAMPLE_BYTES);
        self.queue.push(entry, nbytes).then_some(())
    }

    fn sample(&self, row: u32, payload: Vec<u8>) -> NewSample {
        let row = row as usize;
        new_sample(Sample {
            key: self.catalog.key(row),
            path: self.catalog.path(row).into(),
            label: self.catalog.label(row as u64),
            parts: self.catalog.parts(row),
            payload: payload.into(),
        })
    }
}

/// A shard while it is unpacked.
struct Unpacking<'a> {
    work: &'a Work,
    /// Pieces that each row still waits for; rows that are done or failed are gone from it.
    missing: HashMap<u32, usize>,
    pending: HashMap<u32, Vec<u8>>,
    /// Rows in the order in which they began.
    order: VecDeque<u32>,
    held: u64,
}

impl Unpacking<'_> {
    fn run(&mut self, shard: &Shard, extents: &[Extent]) -> Option<Result<()>> {
        let opened = read::open(&shard.path).and_then(|file| {
            read::check_unchanged(&file, &shard.path, shard.nbytes, shard.modified)?;
            Ok(file)
        });
        let mut archive = match opened {
            Ok(file) => GzipArchive::new(file),
            Err(error) => return Some(Err(error)),
        };
        // Pieces at one offset are links to one member: read once, copied to each.
        for same in extents.chunk_by(|left, right| left.offset == right.offset) {
            if same
                .iter()
                .all(|extent| !self.missing.contains_key(&extent.row))
            {
                continue;
            }
            let longest = same.iter().map(|extent| extent.nbytes).max().unwrap_or(0);
            let mut bytes = match read::buffer(longest.into(), u32::MAX.into()) {
                Ok(bytes) => bytes,
                Err(error) => return Some(Err(error)),
            };
            bytes.resize(longest as usize, 0);
            match archive.read_at(same[0].offset, &mut bytes) {
                Ok(read) if read == bytes.len() => {}
                Ok(_) => return Some(Err(failure::changed(&shard.path))),
                Err(error) => return Some(Err(Self::broken(shard, error))),
            }
            for extent in same {
                self.place(*extent, &bytes)?;
            }
        }
        Some(Ok(()))
    }

    /// The listing could unpack it: now it either is another file or cannot be read.
    fn broken(shard: &Shard, error: std::io::Error) -> Error {
        let is_same = File::open(&shard.path)
            .map_err(|error| failure::reading(&shard.path, error))
            .and_then(|file| {
                read::check_unchanged(&file, &shard.path, shard.nbytes, shard.modified)
            });
        is_same
            .err()
            .unwrap_or_else(|| failure::reading(&shard.path, error))
    }

    fn place(&mut self, extent: Extent, bytes: &[u8]) -> Option<()> {
        let Some(missing) = self.missing.get_mut(&extent.row) else {
            return Some(());
        };
        *missing -= 1;
        let is_complete = *missing == 0;
        if !self.pending.contains_key(&extent.row) {
            self.begin(extent.row)?;
        }
        let Some(payload) = self.pending.get_mut(&extent.row) else {
            return Some(());
        };
        let (start, nbytes) = (extent.at as usize, extent.nbytes as usize);
        payload[start..start + nbytes].copy_from_slice(&bytes[..nbytes]);
        if !is_complete {
            return Some(());
        }
        let payload = self.finish(extent.row);
        let nbytes = payload.len() as u64;
        self.work
            .send(Ok(self.work.sample(extent.row, payload)), nbytes)
    }

    fn begin(&mut self, row: u32) -> Option<()> {
        let nbytes = self.work.catalog.payload_bytes(row as usize);
        while self.held > 0 && self.held + nbytes > self.work.scattered_limit {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            if !self.pending.contains_key(&oldest) {
                continue;
            }
            self.finish(oldest);
            let error = Error::new(
                ErrorKind::TooLarge,
                "the members of the sample lie too far apart in a gzip shard",
            )
            .hint("unpack the shard first: gunzip SHARD.tar.gz")
            .at(self.work.catalog.path(oldest as usize));
            self.work.send(Err(error), 0)?;
        }
        self.held += nbytes;
        self.order.push_back(row);
        self.pending
            .insert(row, vec![0; usize::try_from(nbytes).unwrap_or(0)]);
        Some(())
    }

    fn finish(&mut self, row: u32) -> Vec<u8> {
        self.missing.remove(&row);
        let payload = self.pending.remove(&row).unwrap_or_default();
        self.held -= payload.len() as u64;
        while self
            .order
            .front()
            .is_some_and(|row| !self.pending.contains_key(row))
        {
            self.order.pop_front();
        }
        payload
    }
}
