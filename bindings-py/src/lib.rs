//! The native half of the Python package `farhaul`. What users see is written in Python, in `python/farhaul`; here is what
//! needs threads, memory and the engine.

mod batch;
mod buffer;
mod content;
mod dataset;
mod engine;
mod error;
mod loader;
mod options;
mod process;
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
        loader::{Epoch, Loader, merge_states},
    };

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
