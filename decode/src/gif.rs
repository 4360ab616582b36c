//! GIF: the first frame on its canvas.

use gif::{ColorOutput, DecodeOptions, Decoder, DecodingError, MemoryLimit};
use loader_core::{Error, ErrorKind, Result};

use crate::{
    bytes::{Endian, u16_at},
    config::Limits,
    raster::Raw,
};

/// Indices and RGB.
const BYTES_PER_PIXEL: u64 = 1 + 3;

/// Width and height of the canvas.
pub(crate) fn size(bytes: &[u8], limits: &Limits) -> Result<(u32, u32)> {
    let number = |at| {
        u16_at(bytes, at, Endian::Little)
            .ok_or_else(|| Error::new(ErrorKind::Truncated, "GIF: ends inside its header"))
    };
    let (width, height) = (u32::from(number(6)?), u32::from(number(8)?));
    limits.check(width, height, BYTES_PER_PIXEL)?;
    Ok((width, height))
}

/// The first frame. Where it does not cover the canvas, the background colour shows; a transparent pixel has the colour
/// that its index stands for.
pub(crate) fn decode(bytes: &[u8], limits: &Limits, pixels: &mut Vec<u8>) -> Result<Raw> {
    let (width, height) = size(bytes, limits)?;
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(
        std::num::NonZeroU64::new(limits.max_bytes)
            .map_or(MemoryLimit::Unlimited, MemoryLimit::Bytes),
    );
    options.allow_unknown_blocks(true);
    let mut decoder = options.read_info(bytes).map_err(failure)?;
    let Some(frame) = decoder.next_frame_info().map_err(failure)? else {
        return Err(Error::new(ErrorKind::Malformed, "GIF: no frame"));
    };
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let (frame_width, frame_height) = (u32::from(frame.width), u32::from(frame.height));
    limits.check(frame_width, frame_height, BYTES_PER_PIXEL)?;
    let mut indices = vec![0; decoder.buffer_size()];
    decoder.read_into_buffer(&mut indices).map_err(failure)?;
    let palette = decoder.palette().map_err(failure)?.to_vec();
    let background = background(&decoder);
    let colour = |index: u8| {
        palette
            .as_chunks::<3>()
            .0
            .get(usize::from(index))
            .copied()
            .unwrap_or([0; 3])
    };
    let (columns, lines) = (width as usize, height as usize);
    pixels.clear();
    pixels.resize(columns * lines * 3, 0);
    let canvas = pixels.as_chunks_mut::<3>().0;
    canvas.fill(background);
    for (row, line) in indices
        .chunks_exact(frame_width as usize)
        .zip(canvas.chunks_exact_mut(columns).skip(top))
    {
        line.iter_mut()
            .skip(left)
            .zip(row)
            .for_each(|(pixel, index)| *pixel = colour(*index));
    }
    Ok(Raw { width, height })
}

fn background(decoder: &Decoder<&[u8]>) -> [u8; 3] {
    let colour = decoder.global_palette().zip(decoder.bg_color());
    colour
        .and_then(|(palette, index)| palette.as_chunks::<3>().0.get(index).copied())
        .unwrap_or([0; 3])
}

fn failure(error: DecodingError) -> Error {
    let kind = match &error {
        DecodingError::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            ErrorKind::Truncated
        }
        DecodingError::UnexpectedEof | DecodingError::EndCodeNotFound => ErrorKind::Truncated,
        DecodingError::OutOfMemory | DecodingError::MemoryLimit => ErrorKind::TooLarge,
        _ => ErrorKind::Malformed,
    };
    Error::new(kind, format!("GIF: {error}")).caused_by(error)
}
