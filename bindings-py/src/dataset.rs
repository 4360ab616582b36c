//! An open data set in Python.

use std::{collections::BTreeMap, path::PathBuf};

use farhaul::{
    FieldValue, OpenOptions, Result, Sample,
    decode::{DecodeConfig, decode},
};
use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    types::{PyBytes, PyDict},
};

use crate::{
    batch::picture,
    buffer::Buffer,
    error::raise,
    loader::Loader,
    options::{Options, orientation},
    process::OfProcess,
    wait::interruptible,
};

/// A data set, pinned to what was published when it was opened. Belongs to the process that opened it.
#[pyclass(frozen, module = "farhaul._farhaul")]
#[derive(Debug)]
pub(crate) struct Dataset(OfProcess<farhaul::Dataset>);

/// Key, label, fields, parts by name in the order of the payload, and the name of the part that is the image, if any.
type SampleTuple<'py> = (
    String,
    i64,
    Bound<'py, PyDict>,
    Bound<'py, PyDict>,
    Option<String>,
);

/// Opens a data set wherever it is.
#[pyfunction]
#[pyo3(name = "open", signature = (uri, format=None))]
pub(crate) fn open_dataset(
    py: Python<'_>,
    uri: PathBuf,
    format: Option<String>,
) -> PyResult<Dataset> {
    let options = OpenOptions::default().with_format(format);
    // Python's text stands for any bytes of a path; what is no UTF-8 cannot be a URI.
    let dataset = interruptible(py, move || match uri.to_str() {
        Some(uri) => farhaul::open(uri, &options),
        None => farhaul::open_at(&uri, &options),
    })?;
    Ok(Dataset::new(dataset))
}

/// Decodes one picture to height × width × 3 bytes.
#[pyfunction]
#[pyo3(name = "decode")]
pub(crate) fn decode_picture(
    py: Python<'_>,
    data: &[u8],
    key: &str,
    orientation_word: &str,
) -> PyResult<Buffer> {
    let config =
        DecodeConfig::default().with_orientation(orientation(orientation_word).map_err(raise)?);
    let image = py
        .detach(|| decode(data, &config))
        .map_err(|error| raise(error.at(key).during("decode")))?;
    Ok(picture(image, None))
}

#[pymethods]
impl Dataset {
    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.get()?.len()).unwrap_or(usize::MAX))
    }

    #[getter]
    fn uri(&self) -> PyResult<String> {
        Ok(self.get()?.uri().to_owned())
    }

    #[getter]
    fn nbytes(&self) -> PyResult<u64> {
        Ok(self.get()?.summary().bytes)
    }

    #[getter]
    fn classes(&self) -> PyResult<Vec<String>> {
        Ok(self.get()?.summary().classes.to_vec())
    }

    #[getter]
    fn fields(&self) -> PyResult<BTreeMap<String, String>> {
        Ok(self.get()?.summary().fields.as_ref().clone())
    }

    #[getter]
    fn fingerprint(&self) -> PyResult<String> {
        Ok(self.get()?.summary().fingerprint.to_string())
    }

    fn find(&self, py: Python<'_>, key: Vec<u8>) -> PyResult<Option<u64>> {
        let dataset = self.get()?.clone();
        interruptible(py, move || dataset.find(&key))
    }

    fn samples<'py>(&self, py: Python<'py>, rows: Vec<u64>) -> PyResult<Vec<SampleTuple<'py>>> {
        let dataset = self.get()?.clone();
        let fetched = interruptible(py, move || {
            let catalog = dataset.catalog()?;
            let samples: Result<Vec<_>> = dataset.samples(&rows).into_iter().collect();
            let with_fields = |(sample, row): (Sample, &u64)| (sample, catalog.row(*row).fields);
            Ok(samples?
                .into_iter()
                .zip(&rows)
                .map(with_fields)
                .collect::<Vec<_>>())
        })?;
        fetched
            .into_iter()
            .map(|(sample, fields)| tuple(py, &sample, fields))
            .collect()
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is made of a Python object"
    )]
    fn loader(&self, options: Options) -> PyResult<Loader> {
        Ok(Loader::new(options.loader(self.get()?).map_err(raise)?))
    }
}

impl Dataset {
    pub(crate) fn new(dataset: farhaul::Dataset) -> Self {
        Self(OfProcess::new(dataset))
    }

    pub(crate) fn get(&self) -> PyResult<&farhaul::Dataset> {
        self.0.get().map_err(raise)
    }
}

fn tuple<'py>(
    py: Python<'py>,
    sample: &Sample,
    fields: farhaul::Fields,
) -> PyResult<SampleTuple<'py>> {
    let parts = PyDict::new(py);
    for part in sample.parts.iter() {
        if let Some(bytes) = sample.part(&part.name) {
            parts.set_item(&part.name, PyBytes::new(py, &bytes))?;
        }
    }
    let columns = PyDict::new(py);
    for (name, value) in fields {
        columns.set_item(name, field(py, value)?)?;
    }
    let image = sample
        .parts
        .iter()
        .find(|part| part.is_image())
        .map(|part| part.name.clone());
    Ok((sample.path.to_string(), sample.label, columns, parts, image))
}

fn field(py: Python<'_>, value: FieldValue) -> PyResult<Py<PyAny>> {
    match value {
        FieldValue::Bool(value) => value.into_py_any(py),
        FieldValue::Int(value) => value.into_py_any(py),
        FieldValue::Float(value) => value.into_py_any(py),
        FieldValue::Text(value) => value.into_py_any(py),
        FieldValue::IntList(values) => values.into_py_any(py),
        FieldValue::FloatList(values) => values.into_py_any(py),
        FieldValue::TextList(values) => values.into_py_any(py),
    }
}
