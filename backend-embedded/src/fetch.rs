//! Fetching: group by group on the blocking threads, each inside one short read transaction.
//!
//! A stream works only while it is polled: one group is read ahead of the one being handed out, nothing waits in a
//! channel, and dropping the stream leaves at most that group to finish and be forgotten.

use std::{ops::Range, os::fd::AsFd, sync::Arc};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use loader_core::{
    Catalog, Error, ErrorKind, FetchRequest, Fetched, Lane, NO_LABEL, Part, Result, Sample,
    SampleKey, SamplePath, Targets, identity::checksum, memory::keep_parts,
};
use tokio::{runtime::Handle, task::JoinHandle, time::Instant};

use crate::{
    environment::Reading,
    error::{from_io, from_lmdb},
    store::Shared,
};

/// A group ends with the sample that brings it to so many bytes, so that the first samples come soon.
const GROUP_BYTES: u64 = 1 << 20;
/// Targets in a group at most.
const GROUP_TARGETS: usize = 256;
/// Bytes of a request that the system is told to read ahead from a cold disk.
const READ_AHEAD_BYTES: u64 = 64 << 20;

/// What a fetch works with.
struct Work {
    shared: Arc<Shared>,
    request: FetchRequest,
}

/// A group of outcomes, and the target that the next one starts with.
type Group = (Vec<Fetched>, usize);

pub(crate) fn fetch(shared: Arc<Shared>, request: FetchRequest) -> BoxStream<'static, Fetched> {
    let work = Arc::new(Work { shared, request });
    stream::unfold(
        (work, 0, None),
        |(work, start, running): (_, usize, Option<JoinHandle<Group>>)| async move {
            if start >= work.request.targets.len() {
                return None;
            }
            let (group, next) = match running {
                Some(running) => finished(&work, start, running).await,
                None => match spawn(&work, start) {
                    Some(running) => finished(&work, start, running).await,
                    None => work.group(start),
                },
            };
            let ahead = if next < work.request.targets.len() {
                spawn(&work, next)
            } else {
                None
            };
            Some((stream::iter(group), (work, next, ahead)))
        },
    )
    .flatten()
    .boxed()
}

fn spawn(work: &Arc<Work>, start: usize) -> Option<JoinHandle<Group>> {
    let runtime = Handle::try_current().ok()?;
    let work = Arc::clone(work);
    Some(runtime.spawn_blocking(move || work.group(start)))
}

async fn finished(work: &Work, start: usize, running: JoinHandle<Group>) -> Group {
    match running.await {
        Ok(group) => group,
        // The runtime shuts down, or the group panicked: whoever still listens gets an answer for every target.
        Err(error) => {
            let error = stopped(error).during("fetch").in_store(&work.shared.name);
            let targets = start..work.request.targets.len();
            (
                targets
                    .clone()
                    .map(|target| fetched(target, Err(error.clone())))
                    .collect(),
                targets.end,
            )
        }
    }
}

/// Runs blocking work where it holds up nobody.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await.map_err(stopped)?,
        Err(_) => work(),
    }
}

fn stopped(error: tokio::task::JoinError) -> Error {
    let kind = if error.is_cancelled() {
        ErrorKind::Cancelled
    } else {
        ErrorKind::Internal
    };
    Error::new(kind, "the work on a blocking thread did not end").caused_by(error)
}

fn fetched(target: usize, outcome: Result<Sample>) -> Fetched {
    Fetched {
        target,
        lane: Lane(0),
        outcome,
    }
}

impl Work {
    /// The outcomes of the targets from `start` on, as many as make a group.
    fn group(&self, start: usize) -> Group {
        let all = self.request.targets.len();
        let targets = start..all.min(start + GROUP_TARGETS);
        let environment = match self.shared.lineage.current() {
            Ok(environment) => environment,
            Err(error) => return self.all_failed(start..all, &error),
        };
        let group = environment.read(|reading| {
            if start == 0 {
                self.read_ahead(reading);
            }
            let mut group = Vec::with_capacity(targets.len().min(32));
            let mut bytes = 0;
            for target in targets.clone() {
                let outcome = self.sample(reading, target);
                bytes += outcome
                    .as_ref()
                    .map_or(0, |sample| sample.payload.len() as u64);
                group.push(fetched(
                    target,
                    outcome.map_err(|error| self.described(error)),
                ));
                if bytes >= GROUP_BYTES {
                    break;
                }
            }
            Ok(group)
        });
        match group {
            Ok(group) => {
                let next = start + group.len();
                (group, next)
            }
            Err(error) => self.all_failed(targets, &error),
        }
    }

    fn all_failed(&self, targets: Range<usize>, error: &Error) -> Group {
        let next = targets.end;
        (
            targets
                .map(|target| fetched(target, Err(self.described(error.clone()))))
                .collect(),
            next,
        )
    }

    fn described(&self, error: Error) -> Error {
        error.during("fetch").in_store(&self.shared.name)
    }

    /// The key of a target; none for a target that is going to fail.
    fn key(&self, target: usize) -> Option<SampleKey> {
        let index = &self.shared.index;
        match &self.request.targets {
            Targets::Rows { fingerprint, .. } if *fingerprint != index.fingerprint() => None,
            Targets::Rows { rows, .. } => {
                (rows[target] < index.len()).then(|| index.key(rows[target]))
            }
            Targets::Keys(keys) => Some(keys[target]),
        }
    }

    /// Lets the system read all values of the request from a cold disk at once, instead of one after another.
    fn read_ahead(&self, reading: &Reading<'_>) {
        let mut bytes = 0;
        for target in 0..self.request.targets.len() {
            let Some(key) = self.key(target) else {
                continue;
            };
            let Ok(Some(value)) = reading.tables.payload.get(&reading.transaction, &key.0) else {
                continue;
            };
            bytes += value.len() as u64;
            if bytes > READ_AHEAD_BYTES {
                return;
            }
            if value.len() > reading.page_bytes()
                && let Some(place) = reading.place(value)
            {
                // Advice only: what it answers changes nothing.
                let length = std::num::NonZeroU64::new(value.len() as u64);
                let _ = rustix::fs::fadvise(
                    reading.file.as_fd(),
                    place,
                    length,
                    rustix::fs::Advice::WillNeed,
                );
            }
        }
    }

    fn sample(&self, reading: &Reading<'_>, target: usize) -> Result<Sample> {
        // The runtime's clock: in production the machine's, in tests one that can be stopped.
        if self
            .request
            .deadline
            .is_some_and(|deadline| Instant::now().into_std() >= deadline)
        {
            return Err(Error::new(
                ErrorKind::Timeout,
                "no answer before the deadline",
            ));
        }
        let index = &self.shared.index;
        let sample = match &self.request.targets {
            Targets::Rows { fingerprint, .. } if *fingerprint != index.fingerprint() => {
                let message = format!(
                    "rows of data set {fingerprint} were asked from {}",
                    index.fingerprint()
                );
                let error = Error::new(ErrorKind::Incompatible, message);
                return Err(error.hint("open the data set again: it was published anew"));
            }
            Targets::Rows { rows, .. } => self.sample_of_row(reading, rows[target])?,
            Targets::Keys(keys) => match self.shared.row_of_key(keys[target]) {
                Some(row) => self.sample_of_row(reading, row)?,
                None => orphan(reading, keys[target])?,
            },
        };
        Ok(match &self.request.parts {
            Some(names) => keep_parts(sample, names),
            None => sample,
        })
    }

    fn sample_of_row(&self, reading: &Reading<'_>, row: u64) -> Result<Sample> {
        let index = &self.shared.index;
        if row >= index.len() {
            let message = format!("row {row} of a data set that has {}", index.len());
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let key = index.key(row);
        let payload = payload(reading, key, Some(index.nbytes(row)))
            .map_err(|error| error.at(index.sample_path(row)))?;
        let failed = |kind, message| Err(Error::new(kind, message).at(index.sample_path(row)));
        let Some(payload) = payload else {
            return failed(ErrorKind::Vanished, "the payload is gone");
        };
        if index
            .checksum(row)
            .is_some_and(|expected| expected != checksum(&payload))
        {
            return failed(ErrorKind::Corrupt, "the payload does not have its checksum");
        }
        Ok(Sample {
            key,
            path: index.sample_path(row),
            label: index.label(row),
            parts: index.parts(row),
            payload,
        })
    }
}

/// A payload that no manifest names: nobody knows more of it than its bytes.
fn orphan(reading: &Reading<'_>, key: SampleKey) -> Result<Sample> {
    let Some(payload) = payload(reading, key, None)? else {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("no payload is called {key}"),
        ));
    };
    let parts = Part::sequence([("data", payload.len() as u64)]);
    Ok(Sample {
        key,
        path: SamplePath::default(),
        label: NO_LABEL,
        parts,
        payload,
    })
}

/// The bytes under a key, copied once; `None` where there are none.
fn payload(reading: &Reading<'_>, key: SampleKey, nbytes: Option<u64>) -> Result<Option<Bytes>> {
    let value = reading.tables.payload.get(&reading.transaction, &key.0);
    let value = value.map_err(|error| from_lmdb("the payload cannot be found", error))?;
    let Some(value) = value else { return Ok(None) };
    let length = value.len();
    if nbytes.is_some_and(|nbytes| nbytes != length as u64) {
        let message = format!(
            "the payload has {length} bytes instead of {}",
            nbytes.unwrap_or_default()
        );
        return Err(Error::new(ErrorKind::Corrupt, message));
    }
    // A small value lies in a page that the search has just touched. A larger one is read by `pread`: it copies as fast,
    // faults no pages in, reads a cold file in one request, and answers a failing disk or a file that was cut meanwhile
    // with an error instead of a signal.
    if length <= reading.page_bytes() {
        return Ok(Some(Bytes::copy_from_slice(value)));
    }
    let outside = || Error::new(ErrorKind::Corrupt, "the payload lies outside of the file");
    let place = reading.place(value).ok_or_else(outside)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|error| {
        Error::new(
            ErrorKind::TooLarge,
            format!("there is no memory for a payload of {length} bytes"),
        )
        .caused_by(error)
    })?;
    while bytes.len() < length {
        let offset = place + bytes.len() as u64;
        match rustix::io::pread(
            reading.file,
            rustix::buffer::spare_capacity(&mut bytes),
            offset,
        ) {
            Ok(0) => {
                return Err(Error::new(
                    ErrorKind::Truncated,
                    "data.mdb was cut while it was open",
                ));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(from_io("the payload cannot be read", error.into())),
        }
    }
    bytes.truncate(length);
    Ok(Some(bytes.into()))
}
