//! An open data set as the source of an ingest.

use std::{collections::VecDeque, sync::mpsc, thread};

use loader_core::{Catalog, Error, ErrorKind, NewSample, Result, Row, Sample, Source};

use crate::{dataset::Dataset, runtime::no_thread};

/// Samples in a group that is fetched at once, at most.
const GROUP_SAMPLES: u64 = 64;
/// Payload bytes in a group, unless one sample has more.
const GROUP_BYTES: u64 = 16 << 20;

/// Reads a data set once in path order; one group is fetched while another is used.
#[derive(Debug)]
pub(crate) struct StoreSource {
    data: Dataset,
    groups: mpsc::Receiver<Vec<(Row, Result<Sample>)>>,
    group: VecDeque<(Row, Result<Sample>)>,
}

impl StoreSource {
    pub(crate) fn new(data: Dataset) -> Result<Self> {
        let catalog = data.catalog()?;
        let (sender, groups) = mpsc::sync_channel(1);
        let reader = data.clone();
        thread::Builder::new()
            .name("farhaul-source".into())
            .spawn(move || read(&reader, &*catalog, &sender))
            .map_err(no_thread)?;
        Ok(Self {
            data,
            groups,
            group: VecDeque::new(),
        })
    }
}

/// Ends with the rows, or when nobody wants more.
fn read(
    data: &Dataset,
    catalog: &dyn Catalog,
    sender: &mpsc::SyncSender<Vec<(Row, Result<Sample>)>>,
) {
    let mut start = 0;
    while start < catalog.len() {
        let rows = group(catalog, start, GROUP_SAMPLES, GROUP_BYTES);
        start += rows.len() as u64;
        let samples = data.samples(&rows);
        let group = rows
            .iter()
            .map(|row| catalog.row(*row))
            .zip(samples)
            .collect();
        if sender.send(group).is_err() {
            return;
        }
    }
}

/// The rows from `start` on that are fetched together: at least one.
pub(crate) fn group(
    catalog: &dyn Catalog,
    start: u64,
    most_samples: u64,
    most_bytes: u64,
) -> Vec<u64> {
    let mut bytes = 0_u64;
    let end = catalog.len().min(start.saturating_add(most_samples));
    let fits = |row: &u64| {
        bytes = bytes.saturating_add(catalog.nbytes(*row));
        *row == start || bytes <= most_bytes
    };
    (start..end).take_while(fits).collect()
}

impl Source for StoreSource {
    fn classes(&self) -> Vec<String> {
        self.data.summary().classes.to_vec()
    }

    fn expected_samples(&self) -> Option<u64> {
        Some(self.data.len())
    }

    fn left_out(&self) -> u64 {
        0
    }

    fn warnings(&self) -> Vec<String> {
        self.data.warnings().to_vec()
    }

    fn next_sample(&mut self) -> Option<Result<NewSample>> {
        if self.group.is_empty() {
            self.group = self.groups.recv().ok()?.into();
        }
        let (
            Row {
                path,
                label,
                fields,
                ..
            },
            sample,
        ) = self.group.pop_front()?;
        let new = |Sample { parts, payload, .. }| NewSample {
            path: path.clone(),
            label,
            parts,
            payload,
            fields,
        };
        let named = |error: Error| error.at(path.clone()).in_store(self.data.uri());
        Some(sample.map(new).map_err(named))
    }
}

/// An error that no sample explains: the threads of the sweep are gone.
pub(crate) fn broken() -> Error {
    Error::new(
        ErrorKind::Internal,
        "reading broke down before it had an answer",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use loader_core::{Fields, Part, memory::MemoryStore};

    use super::*;

    #[test]
    fn every_sample_comes_once_in_path_order_with_its_fields() {
        let sample = |number: i64| NewSample {
            path: format!("{number:04}").into(),
            label: number % 3,
            parts: Part::sequence([("jpg", 4)]),
            payload: Bytes::from(format!("{number:04}")),
            fields: Fields::from([("n".to_owned(), loader_core::FieldValue::Int(number))]),
        };
        let store = MemoryStore::from_samples((0..500).map(sample), vec!["a".into()]).unwrap();
        let mut source = StoreSource::new(Dataset::over(Arc::new(store)).unwrap()).unwrap();
        assert_eq!(source.expected_samples(), Some(500));
        let mut number = 0;
        while let Some(found) = source.next_sample() {
            let (found, made) = (found.unwrap(), sample(number));
            assert_eq!(
                (found.path, found.label, found.payload, found.fields),
                (made.path, made.label, made.payload, made.fields)
            );
            number += 1;
        }
        assert_eq!(number, 500);
    }
}
