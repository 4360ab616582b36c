//! The reference store: everything in memory, nothing clever. What it does is what the contracts mean.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use tokio::time::Instant;

use crate::{
    catalog::{Catalog, Manifest, Summary},
    error::{Error, ErrorKind, Result},
    identity::{self, SampleKey, SamplePath},
    sample::{NO_LABEL, NewSample, Part, Row, Sample},
    store::{Capability, FetchRequest, Fetched, Lane, Store, Targets},
};

mod rows;
mod writer;

pub use self::{rows::Rows, writer::MemoryWriter};

/// Rows in one group of [`Store::metadata`].
const GROUP_ROWS: usize = 1024;

/// Payloads by name, shared by a writer and its readers, and the manifest that is visible now.
#[derive(Debug, Default)]
struct Shelf {
    payloads: BTreeMap<SampleKey, Bytes>,
    manifest: Option<Manifest>,
}

type SharedShelf = Arc<Mutex<Shelf>>;

fn lock(shelf: &SharedShelf) -> MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A data set in memory, pinned to the manifest that was visible when it was opened.
///
/// Cheap to clone; clones share the payloads.
#[derive(Clone)]
pub struct MemoryStore {
    shelf: SharedShelf,
    catalog: Arc<dyn Catalog>,
    summary: Summary,
    row_of: Arc<BTreeMap<SampleKey, u64>>,
}

impl MemoryStore {
    /// A data set of exactly these samples.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where two samples have one path.
    pub fn from_samples(
        samples: impl IntoIterator<Item = NewSample>,
        classes: Vec<String>,
    ) -> Result<Self> {
        let mut shelf = Shelf::default();
        let mut rows = Vec::new();
        for sample in samples {
            let row = row_of(&sample);
            shelf.payloads.insert(row.key, sample.payload);
            rows.push(row);
        }
        let catalog = Arc::new(Rows::new(rows)?);
        let manifest = Manifest {
            classes: classes.into(),
            catalog,
        };
        shelf.manifest = Some(manifest.clone());
        Ok(Self::pinned(Arc::new(Mutex::new(shelf)), &manifest))
    }

    /// A writer that adds to what this store was read from; this reader stays as it is.
    pub fn writer(&self) -> MemoryWriter {
        MemoryWriter::over(Arc::clone(&self.shelf))
    }

    /// Puts other bytes (or none) under a payload's name behind the manifest's back, to see what becomes of it.
    pub fn tamper(&self, key: SampleKey, payload: Option<Bytes>) {
        let mut shelf = lock(&self.shelf);
        match payload {
            Some(payload) => shelf.payloads.insert(key, payload),
            None => shelf.payloads.remove(&key),
        };
    }

    fn pinned(shelf: SharedShelf, manifest: &Manifest) -> Self {
        let catalog = Arc::clone(&manifest.catalog);
        let row_of = (0..catalog.len())
            .map(|row| (catalog.key(row), row))
            .collect();
        Self {
            shelf,
            catalog,
            summary: manifest.summary(),
            row_of: Arc::new(row_of),
        }
    }

    fn sample(&self, request: &FetchRequest, target: usize) -> Result<Sample> {
        // The runtime's clock: in production the machine's, in tests one that can be stopped.
        if request
            .deadline
            .is_some_and(|deadline| Instant::now().into_std() >= deadline)
        {
            return Err(Error::new(
                ErrorKind::Timeout,
                "no answer before the deadline",
            ));
        }
        let sample = match &request.targets {
            Targets::Rows { fingerprint, .. } if *fingerprint != self.summary.fingerprint => {
                let own = self.summary.fingerprint;
                let message = format!("rows of data set {fingerprint} were asked from {own}");
                return Err(Error::new(ErrorKind::Incompatible, message)
                    .hint("open the data set again: it was published anew"));
            }
            Targets::Rows { rows, .. } => self.sample_of_row(rows[target])?,
            Targets::Keys(keys) => match self.row_of.get(&keys[target]) {
                Some(row) => self.sample_of_row(*row)?,
                None => self.orphan(keys[target])?,
            },
        };
        Ok(match &request.parts {
            Some(names) => keep_parts(sample, names),
            None => sample,
        })
    }

    fn sample_of_row(&self, row: u64) -> Result<Sample> {
        let count = self.summary.samples;
        if row >= count {
            let message = format!("row {row} of a data set that has {count}");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let Row {
            path,
            key,
            checksum,
            label,
            parts,
            ..
        } = self.catalog.row(row);
        let Some(payload) = lock(&self.shelf).payloads.get(&key).cloned() else {
            return Err(Error::new(ErrorKind::Vanished, "the payload is gone").at(path));
        };
        if checksum.is_some_and(|checksum| checksum != identity::checksum(&payload)) {
            let message = "the payload does not have its checksum";
            return Err(Error::new(ErrorKind::Corrupt, message).at(path));
        }
        Ok(Sample {
            key,
            path,
            label,
            parts,
            payload,
        })
    }

    /// A payload that no manifest names: nobody knows more of it than its bytes.
    fn orphan(&self, key: SampleKey) -> Result<Sample> {
        let Some(payload) = lock(&self.shelf).payloads.get(&key).cloned() else {
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
}

#[async_trait]
impl Store for MemoryStore {
    fn capability(&self) -> Capability {
        capability(None)
    }

    fn summary(&self) -> Summary {
        self.summary.clone()
    }

    async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        Ok(Arc::clone(&self.catalog))
    }

    fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched> {
        let store = self.clone();
        let targets = request.targets.len();
        let answer = move |target| Fetched {
            target,
            lane: Lane(0),
            outcome: store
                .sample(&request, target)
                .map_err(|error| error.during("fetch").in_store(&store)),
        };
        // One sample a poll: a stream that nobody polls any more does nothing any more.
        stream::iter(0..targets).map(answer).boxed()
    }

    fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
        let keys: Vec<_> = lock(&self.shelf).payloads.keys().copied().map(Ok).collect();
        stream::iter(keys).boxed()
    }

    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
        let catalog = Arc::clone(&self.catalog);
        let group = move |start: u64| {
            let end = catalog.len().min(start + GROUP_ROWS as u64);
            Ok((start..end).map(|row| catalog.row(row)).collect())
        };
        stream::iter((0..self.catalog.len()).step_by(GROUP_ROWS))
            .map(group)
            .boxed()
    }
}

impl fmt::Display for MemoryStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("memory:")
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("MemoryStore")
            .field("summary", &self.summary)
            .finish_non_exhaustive()
    }
}

/// Cuts a sample down to the parts with these names (matched without case), for stores that can fetch only whole payloads.
///
/// Names that it lacks are left out; the bytes are copied only where the parts kept do not stand side by side.
#[must_use]
pub fn keep_parts(sample: Sample, names: &[String]) -> Sample {
    let wanted = |part: &&Part| {
        names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(&part.name))
    };
    let kept: Vec<&Part> = sample.parts.iter().filter(wanted).collect();
    if kept.len() == sample.parts.len() {
        return sample;
    }
    let range = |part: &Part| {
        let start = usize::try_from(part.offset)
            .unwrap_or(usize::MAX)
            .min(sample.payload.len());
        let nbytes = usize::try_from(part.nbytes).unwrap_or(usize::MAX);
        start..start.saturating_add(nbytes).min(sample.payload.len())
    };
    let side_by_side = kept
        .windows(2)
        .all(|pair| range(pair[0]).end == range(pair[1]).start);
    let payload = match (kept.first(), kept.last()) {
        (Some(first), Some(last)) if side_by_side => {
            sample.payload.slice(range(first).start..range(last).end)
        }
        _ => kept
            .iter()
            .map(|part| &sample.payload[range(part)])
            .collect::<Vec<_>>()
            .concat()
            .into(),
    };
    let mut offset = 0;
    let moved = kept.into_iter().map(|part| {
        let nbytes = range(part).len() as u64;
        let part = Part {
            offset,
            nbytes,
            ..part.clone()
        };
        offset += nbytes;
        part
    });
    Sample {
        parts: moved.collect(),
        payload,
        ..sample
    }
}

fn capability(max_payload_bytes: Option<u64>) -> Capability {
    let mut capability = Capability::new("memory");
    capability.request_samples = 64;
    capability.requests_in_flight = 4;
    capability.local = true;
    capability.fetches_parts = true;
    capability.max_payload_bytes = max_payload_bytes;
    capability
}

fn row_of(sample: &NewSample) -> Row {
    let checksum = identity::checksum(&sample.payload);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample {
        let parts = Part::sequence([("jpg", 3), ("txt", 2), ("Seg.png", 4)]);
        Sample {
            key: SampleKey::default(),
            path: "a".into(),
            label: 0,
            parts,
            payload: Bytes::from_static(b"jpgtxmask"),
        }
    }

    #[test]
    fn parts_that_stand_side_by_side_are_kept_without_a_copy() {
        let whole = sample();
        let kept = keep_parts(
            whole.clone(),
            &["SEG.PNG".into(), "txt".into(), "none".into()],
        );
        assert_eq!(kept.payload.as_ptr(), whole.payload[3..].as_ptr());
        assert_eq!(&kept.part("seg.png").unwrap()[..], b"mask");
        assert_eq!(&kept.part("txt").unwrap()[..], b"tx");
        assert_eq!(kept.parts.len(), 2);
    }

    #[test]
    fn parts_with_a_gap_between_them_move_together() {
        let kept = keep_parts(sample(), &["jpg".into(), "seg.png".into()]);
        assert_eq!(&kept.payload[..], b"jpgmask");
        assert_eq!(&kept.part("seg.png").unwrap()[..], b"mask");
        assert!(keep_parts(sample(), &["none".into()]).payload.is_empty());
    }

    #[test]
    fn parts_that_reach_outside_the_payload_are_cut() {
        let mut broken = sample();
        broken.payload = broken.payload.slice(..4);
        let kept = keep_parts(broken, &["txt".into(), "seg.png".into()]);
        assert_eq!(&kept.payload[..], b"t");
        assert_eq!(&kept.part("seg.png").unwrap()[..], b"");
    }
}
