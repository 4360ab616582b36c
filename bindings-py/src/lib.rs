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

    #[cfg(feature = "testing")]
    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::prelude::*;
        // Set, not added: it is no part of what the module offers.
        module.setattr(
            "_slow",
            pyo3::wrap_pyfunction!(super::testing::_slow, module)?,
        )
    }
}
