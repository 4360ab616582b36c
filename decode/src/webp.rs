//! WebP: lossy, lossless, and the first frame of an animation.

use std::io::Cursor;

use image_webp::{DecodingError, WebPDecoder};
use loader_core::{Error, ErrorKind, Result};

use crate::{
    bytes::{Endian, slice, u32_at},
    config::Limits,
    exif::{Turn, orientation_of_block},
    raster::{Raw, drop_alpha},
};

/// RGBA twice (canvas and frame) and RGB.
const BYTES_PER_PIXEL: u64 = 4 + 4 + 3;

fn open<'a>(bytes: &'a [u8], limits: &Limits) -> Result<WebPDecoder<Cursor<&'a [u8]>>> {
    let mut decoder =
        WebPDecoder::new(Cursor::new(bytes)).map_err(|error| failure(error, bytes))?;
    let (width, height) = decoder.dimensions();
    limits.check(width, height, BYTES_PER_PIXEL)?;
    decoder.set_memory_limit(usize::try_from(limits.max_bytes).unwrap_or(usize::MAX));
    Ok(decoder)
}

/// Width and height of the canvas.
pub(crate) fn size(bytes: &[u8], limits: &Limits) -> Result<(u32, u32)> {
    Ok(open(bytes, limits)?.dimensions())
}

/// The orientation of the Exif chunk.
pub(crate) fn orientation(bytes: &[u8]) -> Option<Turn> {
    let mut at = 12_usize;
    loop {
        let kind = slice(bytes, at, 4)?;
        let length = usize::try_from(u32_at(bytes, at + 4, Endian::Little)?).ok()?;
        if kind == b"EXIF" {
            return orientation_of_block(slice(bytes, at + 8, length)?);
        }
        at = at
            .checked_add(8)?
            .checked_add(length)?
            .checked_add(length & 1)?;
    }
}

/// The picture or its first frame, alpha dropped without blending.
pub(crate) fn decode(bytes: &[u8], limits: &Limits, pixels: &mut Vec<u8>) -> Result<Raw> {
    let mut decoder = open(bytes, limits)?;
    let (width, height) = decoder.dimensions();
    let needed = decoder
        .output_buffer_size()
        .ok_or_else(|| Error::new(ErrorKind::TooLarge, "WebP: too large for this machine"))?;
    pixels.clear();
    pixels.resize(needed, 0);
    let done = if decoder.is_animated() {
        decoder.read_frame(pixels).map(drop)
    } else {
        decoder.read_image(pixels)
    };
    done.map_err(|error| failure(error, bytes))?;
    if decoder.has_alpha() {
        drop_alpha(pixels);
    }
    Ok(Raw { width, height })
}

fn failure(error: DecodingError, bytes: &[u8]) -> Error {
    let declared = u32_at(bytes, 4, Endian::Little).map_or(0, |size| u64::from(size) + 8);
    let kind = match &error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            ErrorKind::Truncated
        }
        DecodingError::MemoryLimitExceeded | DecodingError::ImageTooLarge => ErrorKind::TooLarge,
        DecodingError::UnsupportedFeature(_) => ErrorKind::Unsupported,
        _ if (bytes.len() as u64) < declared => ErrorKind::Truncated,
        _ => ErrorKind::Malformed,
    };
    Error::new(kind, format!("WebP: {error}")).caused_by(error)
}
