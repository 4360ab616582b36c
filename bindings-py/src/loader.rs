//! The loader and its epochs in Python. Whatever may wait does so without the GIL.

use std::sync::{Mutex, MutexGuard, PoisonError};

use farhaul::{Cause, State, Step};
use pyo3::{prelude::*, types::PyDict};

use crate::{
    batch::Batch,
    engine::{AnyEpoch, AnyLoader},
    error::raise,
    process::OfProcess,
    wait::SLICE,
};

/// Makes epochs; belongs to the process that made it.
#[pyclass(frozen, module = "farhaul._farhaul")]
pub(crate) struct Loader(OfProcess<Mutex<Box<dyn AnyLoader>>>);

/// One pass over the data set, or over the rest of it.
#[pyclass(frozen, module = "farhaul._farhaul")]
pub(crate) struct Epoch(OfProcess<Mutex<Option<Box<dyn AnyEpoch>>>>);

/// Position, row, substitute and error.
type FailureTuple = (u64, u64, Option<u64>, Py<PyAny>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data are valid after every statement, so a panic elsewhere does not matter here.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Loader {
    pub(crate) fn new(loader: Box<dyn AnyLoader>) -> Self {
        Self(OfProcess::new(Mutex::new(loader)))
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut dyn AnyLoader) -> farhaul::Result<T> + Send,
    ) -> PyResult<T> {
        let loader = self.0.get().map_err(raise)?;
        // Another thread may have it and want the GIL.
        py.detach(|| work(&mut **lock(loader))).map_err(raise)
    }
}

#[pymethods]
impl Loader {
    fn batches_left(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |loader| Ok(loader.batches_left()))
    }

    fn epoch(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |loader| Ok(loader.epoch()))
    }

    fn set_epoch(&self, py: Python<'_>, epoch: u64) -> PyResult<()> {
        self.with(py, |loader| {
            loader.set_epoch(epoch);
            Ok(())
        })
    }

    fn start(&self, py: Python<'_>) -> PyResult<Epoch> {
        let epoch = self.with(py, |loader| loader.start())?;
        Ok(Epoch(OfProcess::new(Mutex::new(Some(epoch)))))
    }

    fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |loader| Ok(loader.state().to_json()))
    }

    fn load_state(&self, py: Python<'_>, state: &str) -> PyResult<()> {
        self.with(py, |loader| loader.load_state(&State::from_json(state)?))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.with(py, |loader| Ok(loader.stats()))?;
        let seconds = stats.elapsed.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "rates are shown to people")]
        let rate = |amount: u64| {
            if seconds > 0.0 {
                amount as f64 / seconds
            } else {
                0.0
            }
        };
        let bottleneck = match stats.bottleneck() {
            Cause::Link => "link",
            Cause::Store => "store",
            Cause::Decode => "decode",
            Cause::Consumer => "python",
        };
        let dict = PyDict::new(py);
        dict.set_item("epoch", stats.epoch)?;
        dict.set_item("batches", stats.batches)?;
        dict.set_item("samples", stats.samples)?;
        dict.set_item("bytes", stats.bytes)?;
        dict.set_item("failures", stats.failures)?;
        dict.set_item("retries", stats.retries)?;
        dict.set_item("hedges", stats.hedges)?;
        dict.set_item("elapsed_s", seconds)?;
        dict.set_item(
            "first_batch_s",
            stats.first_batch.map(|time| time.as_secs_f64()),
        )?;
        dict.set_item("samples_per_s", rate(stats.samples))?;
        dict.set_item("bytes_per_s", rate(stats.bytes))?;
        dict.set_item("link_wait_s", stats.waits.link.as_secs_f64())?;
        dict.set_item("store_wait_s", stats.waits.store.as_secs_f64())?;
        dict.set_item("decode_wait_s", stats.waits.decode.as_secs_f64())?;
        dict.set_item("python_s", stats.consumer.as_secs_f64())?;
        dict.set_item("stall_share", stats.stall_share())?;
        dict.set_item("bottleneck", bottleneck)?;
        dict.set_item("held_bytes", stats.held_bytes)?;
        dict.set_item("held_bytes_max", stats.held_bytes_max)?;
        dict.set_item("window_bytes", stats.window_bytes)?;
        dict.set_item("window_bytes_max", stats.window_bytes_max)?;
        dict.set_item("ready_batches", stats.ready_batches)?;
        Ok(dict)
    }

    /// Position, row, substitute and error of each.
    fn failures(&self, py: Python<'_>) -> PyResult<Vec<FailureTuple>> {
        let failures = self.with(py, |loader| Ok(loader.failures()))?;
        let tuples = failures.into_iter().map(|failure| {
            let error = raise(failure.error).into_value(py).into_any();
            (failure.position, failure.row, failure.substitute, error)
        });
        Ok(tuples.collect())
    }
}

#[pymethods]
impl Epoch {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let epoch = self.0.get().map_err(raise)?;
        loop {
            let step = py.detach(|| {
                lock(epoch)
                    .as_mut()
                    .map_or(Ok(Step::End), |epoch| epoch.next_within(SLICE))
            });
            match step.map_err(raise)? {
                Step::Batch(delivered) => return Batch::new(py, delivered).map(Some),
                Step::Pending => py.check_signals()?,
                Step::End => return Ok(None),
            }
        }
    }

    /// Gives up all requests; what was handed over stays valid.
    fn close(&self, py: Python<'_>) {
        // In a forked child there is nothing to close.
        if let Ok(epoch) = self.0.get() {
            py.detach(|| drop(lock(epoch).take()));
        }
    }
}

/// One state of the states of all ranks, as JSON.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "it is made of Python objects"
)]
pub(crate) fn merge_states(states: Vec<String>) -> PyResult<String> {
    let states: farhaul::Result<Vec<_>> =
        states.iter().map(|state| State::from_json(state)).collect();
    let merged = states
        .and_then(|states| State::merge(&states))
        .map_err(raise)?;
    Ok(merged.to_json())
}
