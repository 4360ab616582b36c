//! A batch in Python: bytes objects or views of the memory that it was decoded into.

use std::sync::Arc;

use farhaul::{Delivered, Tag, decode::Image};
use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    types::{PyBytes, PyList},
};

use crate::{
    buffer::{Buffer, SharedLease},
    content::{Content, Images},
    process::OfProcess,
};

/// Position and label of an image that is masked.
const VOID: i64 = -1;

/// What `Epoch.__next__` gives.
#[pyclass(frozen, module = "farhaul._farhaul")]
#[derive(Debug)]
pub(crate) struct Batch {
    /// A list of `bytes`, a list of `Buffer`, or one `Buffer`.
    #[pyo3(get)]
    images: Py<PyAny>,
    #[pyo3(get)]
    labels: Py<Buffer>,
    #[pyo3(get)]
    positions: Py<Buffer>,
    #[pyo3(get)]
    mask: Option<Py<Buffer>>,
    tags: Vec<Option<Tag>>,
    /// Bytes objects cannot carry it, so that the batch does.
    _lease: SharedLease,
}

impl Batch {
    /// Hands a batch to Python. Pixels stay where they are; payloads become bytes objects, which is a copy.
    pub(crate) fn new(py: Python<'_>, delivered: Delivered<Content>) -> PyResult<Self> {
        let lease = Arc::new(OfProcess::new(delivered.lease));
        let Content {
            images,
            labels,
            tags,
            mask,
        } = delivered.batch;
        let tags = spread(tags, mask.as_deref());
        let position = |tag: &Option<Tag>| {
            tag.as_ref()
                .map_or(VOID, |tag| i64::try_from(tag.position).unwrap_or(i64::MAX))
        };
        let positions: Vec<i64> = tags.iter().map(position).collect();
        let images = match images {
            Images::Payloads(payloads) => {
                PyList::new(py, payloads.iter().map(|payload| PyBytes::new(py, payload)))?
                    .into_py_any(py)?
            }
            Images::Pictures(pictures) => {
                let pictures = pictures
                    .into_iter()
                    .map(|picture| self::picture(picture, Some(Arc::clone(&lease))));
                PyList::new(py, pictures.collect::<Vec<_>>())?.into_py_any(py)?
            }
            Images::Block(pixels, shape) => {
                Buffer::new(pixels, &shape, Some(Arc::clone(&lease))).into_py_any(py)?
            }
        };
        Ok(Self {
            images,
            labels: flat(py, labels)?,
            positions: flat(py, positions)?,
            mask: mask.map(|mask| flat(py, mask)).transpose()?,
            tags,
            _lease: lease,
        })
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.tags.len()
    }

    fn keys(&self) -> Vec<String> {
        self.tags
            .iter()
            .map(|tag| {
                tag.as_ref()
                    .map_or_else(String::new, |tag| tag.path.to_string())
            })
            .collect()
    }

    fn rows(&self) -> Vec<i64> {
        let row = |tag: &Option<Tag>| {
            tag.as_ref()
                .map_or(VOID, |tag| i64::try_from(tag.row).unwrap_or(i64::MAX))
        };
        self.tags.iter().map(row).collect()
    }
}

/// A picture of height × width × 3.
pub(crate) fn picture(image: Image, lease: Option<SharedLease>) -> Buffer {
    let shape = [image.height as usize, image.width as usize, 3];
    Buffer::new(image.pixels, &shape, lease)
}

fn flat<T>(py: Python<'_>, items: Vec<T>) -> PyResult<Py<Buffer>>
where
    Vec<T>: crate::buffer::Block,
{
    let length = items.len();
    Py::new(py, Buffer::new(items, &[length], None))
}

/// One tag for each image: none where the mask says that it is void.
fn spread(tags: Vec<Tag>, mask: Option<&[bool]>) -> Vec<Option<Tag>> {
    let Some(mask) = mask else {
        return tags.into_iter().map(Some).collect();
    };
    let mut tags = tags.into_iter();
    mask.iter()
        .map(|is_real| if *is_real { tags.next() } else { None })
        .collect()
}
