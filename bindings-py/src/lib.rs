//! The native half of the Python package `farhaul`. What users see is written in Python, in `python/farhaul`; here is what
//! needs threads, memory and the engine.

mod batch;
mod buffer;
mod content;
mod dataset;
mod engine;
mod error;
mod ingest;
mod loader;
mod options;
mod process;
#[cfg(feature = "testing")]
mod testing;
mod wait;

use pyo3::prelude::*;

/// The native half of farhaul.
#[pymodule(gil_used = false)]
mod _farhaul {
    use super::{Bound, PyModule, PyResult};
    #[pymodule_export]
    use super::{
        batch::Batch,
        buffer::Buffer,
        dataset::{Dataset, decode_picture, open_dataset},
        ingest::ingest,
        loader::{Epoch, Loader, merge_states},
    };

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::add_private(module)
    }
}

/// Sets what only the tests of the package use: not added, as it is no part of what the module offers.
#[cfg(feature = "testing")]
fn add_private(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.setattr("_slow", wrap_pyfunction!(testing::_slow, module)?)
}

#[cfg(not(feature = "testing"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
fn add_private(_: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
