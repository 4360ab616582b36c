//! A decoder of libjpeg-turbo behind a safe face. The only place of this crate with `unsafe`.
#![allow(
    unsafe_code,
    reason = "libjpeg-turbo is a C library: every call into it is here, each with its reason"
)]

use std::{
    ffi::{CStr, c_char, c_int},
    marker::PhantomData,
    ptr::NonNull,
};

use loader_core::{Error, ErrorKind, Result};
// Linked for its library: the functions below stand on it.
use turbojpeg_sys as _;

/// What the header of a JPEG says.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Header {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) components: u32,
    is_cmyk: u32,
    is_multi_scan: u32,
    /// Size in pixels of the smallest unit of blocks that is decoded at once.
    pub(crate) mcu_width: u32,
    pub(crate) mcu_height: u32,
}

impl Header {
    /// True where rows come as four bytes a pixel: stored, that is inverted, inks.
    pub(crate) fn is_cmyk(&self) -> bool {
        self.is_cmyk != 0
    }

    /// True where coefficients of the whole picture are held while it is decoded.
    pub(crate) fn is_multi_scan(&self) -> bool {
        self.is_multi_scan != 0
    }

    /// Bytes of a pixel in the rows that come.
    pub(crate) fn pixel_bytes(&self) -> usize {
        if self.is_cmyk() { 4 } else { 3 }
    }
}

/// Which columns come, in pixels of the scaled picture, and how large that picture is.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Columns {
    pub(crate) x: u32,
    pub(crate) width: u32,
    pub(crate) picture_width: u32,
    pub(crate) picture_height: u32,
}

/// Bounds on one decoding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Most bytes of coefficients.
    pub(crate) memory: u64,
    /// Most scans.
    pub(crate) scans: u16,
    /// Go on where coded data are missing.
    pub(crate) accept_partial: bool,
}

#[repr(C)]
struct Opaque {
    _data: [u8; 0],
    // Neither shared nor sent by itself: `Handle` decides.
    _marker: PhantomData<*mut u8>,
}

unsafe extern "C" {
    fn farhaul_jpeg_new() -> *mut Opaque;
    fn farhaul_jpeg_close(jpeg: *mut Opaque);
    fn farhaul_jpeg_message(jpeg: *const Opaque) -> *const c_char;
    fn farhaul_jpeg_is_partial(jpeg: *const Opaque) -> c_int;
    fn farhaul_jpeg_open(
        jpeg: *mut Opaque,
        data: *const u8,
        size: usize,
        max_memory: u64,
        max_scans: c_int,
        accept_partial: c_int,
        header: *mut Header,
    ) -> c_int;
    fn farhaul_jpeg_start(
        jpeg: *mut Opaque,
        eighths: c_int,
        x: u32,
        width: u32,
        columns: *mut Columns,
    ) -> c_int;
    fn farhaul_jpeg_rows(
        jpeg: *mut Opaque,
        y: u32,
        rows: u32,
        target: *mut u8,
        stride: usize,
        read_on: c_int,
    ) -> c_int;
}

/// A decoder that is used for one picture after another; making one costs more than decoding a small picture.
#[derive(Debug)]
pub(crate) struct Handle(NonNull<Opaque>);

// SAFETY: the C side has no thread-local or shared state; a handle is used by one thread at a time because every use takes
// `&mut self`.
unsafe impl Send for Handle {}

impl Handle {
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: takes nothing; answers NULL or a handle that is ours alone.
        let raw = unsafe { farhaul_jpeg_new() };
        NonNull::new(raw)
            .map(Self)
            .ok_or_else(|| Error::new(ErrorKind::TooLarge, "no memory for a JPEG decoder"))
    }

    /// Reads the header of a picture, whose bytes stay borrowed until its pixels are read.
    pub(crate) fn open<'a>(&'a mut self, bytes: &'a [u8], bounds: Bounds) -> Result<Opened<'a>> {
        let mut header = Header::default();
        // SAFETY: the handle is live; `bytes` is readable for its length and outlives `Opened`, after which the C side
        // never looks at it again; `header` is writable and laid out as in C.
        let status = unsafe {
            farhaul_jpeg_open(
                self.0.as_ptr(),
                bytes.as_ptr(),
                bytes.len(),
                bounds.memory,
                c_int::from(bounds.scans),
                c_int::from(bounds.accept_partial),
                &raw mut header,
            )
        };
        self.check(status)?;
        Ok(Opened {
            handle: self,
            header,
            bytes: PhantomData,
        })
    }

    fn check(&self, status: c_int) -> Result<()> {
        let kind = match status {
            0 => return Ok(()),
            2 => ErrorKind::Truncated,
            3 => ErrorKind::Unsupported,
            4 | 5 => ErrorKind::TooLarge,
            _ => ErrorKind::Malformed,
        };
        // SAFETY: the handle is live, and the message is a C string inside it that no call changes while it is copied.
        let message = unsafe { CStr::from_ptr(farhaul_jpeg_message(self.0.as_ptr())) };
        Err(Error::new(
            kind,
            format!("JPEG: {}", message.to_string_lossy()),
        ))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is live and never used again.
        unsafe { farhaul_jpeg_close(self.0.as_ptr()) }
    }
}

/// A picture whose header has been read.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    handle: &'a mut Handle,
    pub(crate) header: Header,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Opened<'a> {
    /// Starts decoding at `eighths`/8 of the size (1, 2, 4 or 8), of columns `x .. x + width` of the scaled picture and
    /// what has to come with them.
    pub(crate) fn start(self, eighths: u8, x: u32, width: u32) -> Result<Started<'a>> {
        let mut columns = Columns::default();
        // SAFETY: the handle is live and has read a header; `columns` is writable and laid out as in C.
        let status = unsafe {
            farhaul_jpeg_start(
                self.handle.0.as_ptr(),
                c_int::from(eighths),
                x,
                width,
                &raw mut columns,
            )
        };
        self.handle.check(status)?;
        Ok(Started {
            pixel_bytes: self.header.pixel_bytes(),
            handle: self.handle,
            columns,
            bytes: PhantomData,
        })
    }
}

/// A picture whose rows can be read.
#[derive(Debug)]
pub(crate) struct Started<'a> {
    handle: &'a mut Handle,
    pub(crate) columns: Columns,
    pixel_bytes: usize,
    bytes: PhantomData<&'a [u8]>,
}

impl Started<'_> {
    /// Fills `target` with rows `y .. y + rows`; with `read_on` the coded data are then read to the last row, so that it comes
    /// out whether they are all there. True where pixels are missing.
    ///
    /// # Panics
    /// Where the rows are not in the picture or do not fill `target`: both are for the caller to see to.
    pub(crate) fn read(self, y: u32, rows: u32, target: &mut [u8], read_on: bool) -> Result<bool> {
        let stride = self.columns.width as usize * self.pixel_bytes;
        assert!(
            y.checked_add(rows)
                .is_some_and(|end| end <= self.columns.picture_height),
            "rows are inside the picture"
        );
        assert_eq!(
            stride.checked_mul(rows as usize),
            Some(target.len()),
            "the target holds exactly these rows"
        );
        // SAFETY: the handle is live and has started; it writes `rows` rows of `stride` bytes, which `target` has.
        let status = unsafe {
            farhaul_jpeg_rows(
                self.handle.0.as_ptr(),
                y,
                rows,
                target.as_mut_ptr(),
                stride,
                c_int::from(read_on),
            )
        };
        self.handle.check(status)?;
        // SAFETY: the handle is live; the call only reads a flag.
        Ok(unsafe { farhaul_jpeg_is_partial(self.handle.0.as_ptr()) } != 0)
    }
}
