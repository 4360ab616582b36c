//! One pass over all rows: fetched ahead, worked on by several threads, handed on in row order.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use loader_core::{Catalog, Result, Row, Sample};

use crate::{
    dataset::Dataset,
    runtime::no_thread,
    store_source::{broken, group},
    task::Cancel,
};

/// Samples and payload bytes of a group: small, so that the memory of all threads together stays small.
const GROUP_SAMPLES: u64 = 32;
const GROUP_BYTES: u64 = 4 << 20;

/// Calls `work` on several threads for every row's sample and `sink` on this thread for every result, in row order.
///
/// Memory: a group of samples a thread; results wait for those before them, so they should be small.
///
/// # Errors
/// The first error of `sink`, [`loader_core::ErrorKind::Cancelled`], or [`loader_core::ErrorKind::Io`] where no thread can be
/// started; nothing is handed on after it.
pub(crate) fn sweep<T: Send>(
    data: &Dataset,
    catalog: &dyn Catalog,
    cancel: &Cancel,
    work: impl Fn(Row, Result<Sample>) -> T + Sync,
    mut sink: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let cursor = Mutex::new((0_u64, 0_u64));
    let stop = AtomicBool::new(false);
    // More threads than cores: one fetches while another works.
    let threads = thread::available_parallelism()
        .map_or(2, std::num::NonZero::get)
        .clamp(2, 32)
        * 2;
    let (sender, results) = mpsc::sync_channel(threads);
    let next_group = || {
        let mut cursor = cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, start) = *cursor;
        let rows = group(catalog, start, GROUP_SAMPLES, GROUP_BYTES);
        *cursor = (number + 1, start + rows.len() as u64);
        (!rows.is_empty()).then_some((number, rows))
    };
    let run = |sender: mpsc::SyncSender<(u64, Vec<T>)>| {
        while !stop.load(Ordering::Relaxed)
            && !cancel.is_cancelled()
            && let Some((number, rows)) = next_group()
        {
            let samples = data.samples(&rows);
            let done = rows
                .into_iter()
                .zip(samples)
                .map(|(row, sample)| work(catalog.row(row), sample))
                .collect();
            if sender.send((number, done)).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for number in 0..threads {
            let sender = sender.clone();
            let run = &run;
            match thread::Builder::new().spawn_scoped(scope, move || run(sender)) {
                Ok(_) => {}
                Err(error) if number == 0 => return Err(no_thread(error)),
                // Those that the system gave do all of it.
                Err(_) => break,
            }
        }
        drop(sender);
        let outcome = in_order(&results, &mut sink);
        stop.store(true, Ordering::Relaxed);
        // Threads that wait for room give up.
        drop(results);
        cancel.check().and(outcome)
    })?;
    let (_, handed) = *cursor.lock().unwrap_or_else(PoisonError::into_inner);
    if handed == catalog.len() {
        Ok(())
    } else {
        Err(broken())
    }
}

fn in_order<T>(
    results: &mpsc::Receiver<(u64, Vec<T>)>,
    sink: &mut impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let mut early = BTreeMap::new();
    let mut next = 0;
    for (number, group) in results {
        early.insert(number, group);
        while let Some(group) = early.remove(&next) {
            next += 1;
            for result in group {
                sink(result)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use loader_core::{Error, ErrorKind, Fields, NewSample, Part, memory::MemoryStore};

    use super::*;

    fn data(count: usize) -> Dataset {
        let sample = |number: usize| NewSample {
            path: format!("{number:05}").into(),
            label: 0,
            parts: Part::sequence([("jpg", 5)]),
            payload: format!("{number:05}").into(),
            fields: Fields::new(),
        };
        Dataset::over(Arc::new(
            MemoryStore::from_samples((0..count).map(sample), vec![]).unwrap(),
        ))
        .unwrap()
    }

    #[test]
    fn results_come_in_row_order() {
        for count in [0, 1, 32, 1000] {
            let data = data(count);
            let mut seen = Vec::new();
            let work = |row: Row, sample: Result<Sample>| {
                assert_eq!(sample.unwrap().path, row.path);
                row.path.to_string()
            };
            sweep(
                &data,
                &*data.catalog().unwrap(),
                &Cancel::default(),
                work,
                |path| {
                    seen.push(path);
                    Ok(())
                },
            )
            .unwrap();
            assert!(seen.len() == count && seen.is_sorted());
        }
    }

    #[test]
    fn an_error_of_the_sink_ends_it_at_once() {
        let data = data(5000);
        let mut handed = 0;
        let sink = |()| {
            handed += 1;
            if handed == 3 {
                Err(Error::new(ErrorKind::Io, "full"))
            } else {
                Ok(())
            }
        };
        let error = sweep(
            &data,
            &*data.catalog().unwrap(),
            &Cancel::default(),
            |_, _| (),
            sink,
        )
        .unwrap_err();
        assert_eq!((error.kind(), handed), (ErrorKind::Io, 3));
    }

    #[test]
    fn a_cancelled_sweep_says_so() {
        let (data, cancel) = (data(50), Cancel::default());
        cancel.cancel();
        let error = sweep(
            &data,
            &*data.catalog().unwrap(),
            &cancel,
            |_, _| (),
            |()| Ok(()),
        )
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
}
