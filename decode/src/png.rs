//! PNG: every colour type and depth to RGB; text and profiles are never inflated.

use std::io::Cursor;

use loader_core::{Error, ErrorKind, Result};
use png::{BitDepth, ColorType, Decoder, DecodingError, Limits as PngLimits, Transformations};

use crate::{
    bytes::{Endian, slice, u32_at},
    config::Limits,
    exif::{Turn, orientation_of_block},
    raster::{Raw, drop_alpha, grey_to_rgb},
};

/// Bytes that a pixel takes at most while it is decoded: RGBA of 16 bits, and RGB.
const BYTES_PER_PIXEL: u64 = 8 + 3;

/// Width and height; the header chunk has to come first.
pub(crate) fn size(bytes: &[u8], limits: &Limits) -> Result<(u32, u32)> {
    let header = slice(bytes, 8, 25)
        .ok_or_else(|| Error::new(ErrorKind::Truncated, "PNG: ends inside its header"))?;
    if &header[4..8] != b"IHDR" {
        return Err(Error::new(
            ErrorKind::Malformed,
            "PNG: does not start with its header",
        ));
    }
    let number = |at| u32_at(header, at, Endian::Big).expect("25 bytes are there");
    let (width, height) = (number(8), number(12));
    limits.check(width, height, BYTES_PER_PIXEL)?;
    Ok((width, height))
}

/// The orientation of the Exif chunk, wherever it stands.
pub(crate) fn orientation(bytes: &[u8]) -> Option<Turn> {
    let mut at = 8_usize;
    loop {
        let length = usize::try_from(u32_at(bytes, at, Endian::Big)?).ok()?;
        let kind = slice(bytes, at + 4, 4)?;
        if kind == b"eXIf" {
            return orientation_of_block(slice(bytes, at + 8, length)?);
        }
        at = at.checked_add(length)?.checked_add(12)?;
    }
}

/// The default image, alpha dropped without blending, 16 bits by their upper eight.
pub(crate) fn decode(bytes: &[u8], limits: &Limits, pixels: &mut Vec<u8>) -> Result<Raw> {
    let (width, height) = size(bytes, limits)?;
    let budget = PngLimits {
        bytes: usize::try_from(limits.max_bytes).unwrap_or(usize::MAX),
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), budget);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.ignore_checksums(false);
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(|error| failure(error, bytes))?;
    let (color, depth) = reader.output_color_type();
    if depth != BitDepth::Eight {
        return Err(Error::new(
            ErrorKind::Internal,
            format!("PNG: rows of {depth:?} bits"),
        ));
    }
    let needed = reader
        .output_buffer_size()
        .ok_or_else(|| Error::new(ErrorKind::TooLarge, "PNG: too large for this machine"))?;
    pixels.clear();
    pixels.resize(needed, 0);
    reader
        .next_frame(pixels)
        .map_err(|error| failure(error, bytes))?;
    match color {
        ColorType::Grayscale => grey_to_rgb(pixels, 1),
        ColorType::GrayscaleAlpha => grey_to_rgb(pixels, 2),
        ColorType::Rgb => {}
        ColorType::Rgba => drop_alpha(pixels),
        ColorType::Indexed => {
            return Err(Error::new(
                ErrorKind::Internal,
                "PNG: a palette that was not expanded",
            ));
        }
    }
    Ok(Raw { width, height })
}

fn failure(error: DecodingError, bytes: &[u8]) -> Error {
    let kind = match &error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            ErrorKind::Truncated
        }
        DecodingError::LimitsExceeded => ErrorKind::TooLarge,
        // A stream that ends early is called many things; without its last chunk the file is cut.
        _ if !bytes
            .windows(4)
            .rev()
            .take(64)
            .any(|window| window == b"IEND") =>
        {
            ErrorKind::Truncated
        }
        _ => ErrorKind::Malformed,
    };
    Error::new(kind, format!("PNG: {error}")).caused_by(error)
}
