//! Ingest from Python: on a thread of its own, stopped by Ctrl-C.

use std::path::PathBuf;

use farhaul::{
    OpenOptions,
    ingest::{IngestOptions, OnBadSample},
    task::{Cancel, Silent},
};
use pyo3::{prelude::*, types::PyDict};

use crate::{error::raise, options::choose, wait::stoppable};

/// Writes a source into a store and publishes it. `on_error` is `fail` or `skip`.
#[pyfunction]
#[pyo3(signature = (source, to, format, on_error))]
pub(crate) fn ingest<'py>(
    py: Python<'py>,
    source: PathBuf,
    to: PathBuf,
    format: Option<String>,
    on_error: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let policies = [("fail", OnBadSample::Fail), ("skip", OnBadSample::Skip)];
    let policy =
        choose("on_error", on_error, &policies).map_err(|error| raise(error.during("ingest")))?;
    let options = IngestOptions::default().with_on_error(policy);
    let cancel = Cancel::default();
    let stop = cancel.clone();
    let work = move || {
        // What is no UTF-8 cannot be a URI.
        let options_of_source = OpenOptions::default().with_format(format);
        let mut source = match source.to_str() {
            Some(uri) => farhaul::open_source(uri, &options_of_source)?,
            None => farhaul::open_source_at(&source, &options_of_source)?,
        };
        let destination = match to.to_str() {
            Some(uri) => farhaul::create(uri, &OpenOptions::default())?,
            None => farhaul::create_at(&to, &OpenOptions::default())?,
        };
        farhaul::ingest::ingest(&mut *source, &destination, &options, &Silent, &cancel)
            .into_result()
    };
    let report = stoppable(py, || stop.cancel(), work)?;
    let dict = PyDict::new(py);
    dict.set_item("samples", report.samples)?;
    dict.set_item("bytes", report.bytes)?;
    dict.set_item("skipped", report.skipped)?;
    dict.set_item("failed", report.failed)?;
    dict.set_item("left_out", report.left_out)?;
    dict.set_item("seconds", report.seconds)?;
    let failures: Vec<_> = report
        .failures
        .into_iter()
        .map(|error| raise(error).into_value(py))
        .collect();
    dict.set_item("failures", failures)?;
    Ok(dict)
}
