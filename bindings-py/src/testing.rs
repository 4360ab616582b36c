//! For the tests of the package alone, behind the feature `testing`: a store as slow as they want it.

use std::{sync::Arc, time::Duration};

use conformance::fault::{Fault, FaultyStore, Script};
use pyo3::prelude::*;

use crate::{dataset::Dataset, error::raise};

/// The same data set, from which every sample comes so many seconds late.
#[pyfunction]
pub(crate) fn _slow(dataset: &Bound<'_, Dataset>, seconds: f64) -> PyResult<Dataset> {
    let script = Script::new().per_mille(0, 1000, Fault::Delay(Duration::from_secs_f64(seconds)));
    let store = FaultyStore::new(Arc::clone(dataset.get().get()?.store()), script);
    Ok(Dataset::new(
        farhaul::Dataset::over(Arc::new(store)).map_err(raise)?,
    ))
}
