//! Memory of a batch as Python sees it: without a copy, writable, and alive as long as any view of it.
#![expect(unsafe_code, reason = "the buffer protocol hands out bare pointers")]

use std::{
    any::Any,
    ffi::{CStr, c_int, c_void},
    ptr,
    sync::Arc,
};

use bytes::BytesMut;
use farhaul::loader_core::loader::Lease;
use pyo3::{exceptions::PyBufferError, ffi, prelude::*};

use crate::process::OfProcess;

pub(crate) mod allocator;

/// The part of a loader's memory budget that a batch takes up; given back when its last view dies.
pub(crate) type SharedLease = Arc<OfProcess<Lease>>;

/// One block of memory with a shape, for `numpy.asarray`, `torch.frombuffer` and `memoryview`.
#[pyclass(frozen, module = "farhaul._farhaul")]
#[derive(Debug)]
pub(crate) struct Buffer {
    /// The first item; valid while `_owner` lives.
    items: *mut c_void,
    item: Item,
    shape: Vec<isize>,
    /// Of a block without gaps, last axis first in memory; bytes.
    strides: Vec<isize>,
    _owner: Box<dyn Any + Send + Sync>,
    lease: Option<SharedLease>,
}

// SAFETY: `items` points into memory on the heap that `_owner` alone owns, and Rust does not touch that memory between `new`
// and `drop`. Readers and writers in Python synchronise as they do for any array.
unsafe impl Send for Buffer {}
// SAFETY: as above; no method writes through `items`.
unsafe impl Sync for Buffer {}

/// What memory is made of.
#[derive(Debug, Clone, Copy)]
struct Item {
    nbytes: usize,
    /// As Python's `struct` module writes it.
    format: &'static CStr,
}

/// Memory on the heap that stays where it is when its owner is moved.
pub(crate) trait Block: Send + Sync + 'static {
    /// One item's type.
    type Item: Plain;
    /// All items.
    fn items(&mut self) -> &mut [Self::Item];
}

/// Items that any bytes written by Python are valid for, or that Rust never reads again.
pub(crate) trait Plain {
    /// As Python's `struct` module writes it.
    const FORMAT: &'static CStr;
}

impl Plain for u8 {
    const FORMAT: &'static CStr = c"B";
}

impl Plain for i64 {
    const FORMAT: &'static CStr = c"q";
}

impl Plain for bool {
    const FORMAT: &'static CStr = c"?";
}

impl<T: Plain + Send + Sync + 'static> Block for Vec<T> {
    type Item = T;
    fn items(&mut self) -> &mut [T] {
        self
    }
}

impl Block for BytesMut {
    type Item = u8;
    fn items(&mut self) -> &mut [u8] {
        self
    }
}

impl Buffer {
    /// A block whose items are laid out row by row in `shape`.
    ///
    /// # Panics
    /// Where the shape does not hold exactly the block's items.
    pub(crate) fn new<B: Block>(mut block: B, shape: &[usize], lease: Option<SharedLease>) -> Self {
        let nbytes = size_of::<B::Item>();
        let items = block.items();
        assert_eq!(
            shape.iter().product::<usize>(),
            items.len(),
            "a shape holds the items of its block"
        );
        let items = items.as_mut_ptr().cast();
        let signed = |length: usize| {
            isize::try_from(length).expect("memory on the heap is shorter than isize::MAX")
        };
        let mut strides = vec![0; shape.len()];
        let mut stride = nbytes;
        for (axis, length) in shape.iter().enumerate().rev() {
            strides[axis] = signed(stride);
            stride *= (*length).max(1);
        }
        let shape = shape.iter().copied().map(signed).collect();
        Self {
            items,
            item: Item {
                nbytes,
                format: B::Item::FORMAT,
            },
            shape,
            strides,
            _owner: Box::new(block),
            lease,
        }
    }

    fn nbytes(&self) -> isize {
        self.shape.iter().product::<isize>()
            * isize::try_from(self.item.nbytes).expect("an item is small")
    }
}

#[pymethods]
impl Buffer {
    /// Lengths of the axes.
    #[getter]
    fn shape(&self) -> Vec<isize> {
        self.shape.clone()
    }

    /// Type of the items, as the `struct` module writes it.
    #[getter]
    fn format(&self) -> String {
        self.item.format.to_string_lossy().into_owned()
    }

    /// Fills in what the consumer asks for; the view holds a reference to this object until it is released.
    ///
    /// # Safety
    /// `view` is what the interpreter passes: null, or valid to write to.
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let asks = |flag: c_int| flags & flag == flag;
        let buffer = slf.get();
        if view.is_null() {
            return Err(PyBufferError::new_err("no place for the view"));
        }
        if asks(ffi::PyBUF_F_CONTIGUOUS) && buffer.shape.len() > 1 {
            return Err(PyBufferError::new_err(
                "the memory is laid out row by row, not column by column",
            ));
        }
        let axes = c_int::try_from(buffer.shape.len()).expect("there are at most four axes");
        let filled = ffi::Py_buffer {
            buf: buffer.items,
            obj: slf.clone().into_any().into_ptr(),
            len: buffer.nbytes(),
            itemsize: isize::try_from(buffer.item.nbytes).expect("an item is small"),
            readonly: 0,
            ndim: if asks(ffi::PyBUF_ND) { axes } else { 1 },
            format: if asks(ffi::PyBUF_FORMAT) {
                buffer.item.format.as_ptr().cast_mut()
            } else {
                ptr::null_mut()
            },
            shape: if asks(ffi::PyBUF_ND) {
                buffer.shape.as_ptr().cast_mut()
            } else {
                ptr::null_mut()
            },
            strides: if asks(ffi::PyBUF_STRIDES) {
                buffer.strides.as_ptr().cast_mut()
            } else {
                ptr::null_mut()
            },
            suboffsets: ptr::null_mut(),
            internal: ptr::null_mut(),
        };
        // SAFETY: the caller says that a view that is not null may be written to. What the new view points to lives in this
        // object, which never changes and which `obj` keeps alive.
        unsafe { view.write(filled) };
        Ok(())
    }

    fn __repr__(&self) -> String {
        let lent = self.lease.as_ref().map_or("", |_| ", lent by a loader");
        format!(
            "Buffer(shape={:?}, nbytes={}{lent})",
            self.shape,
            self.nbytes()
        )
    }
}
