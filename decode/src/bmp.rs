//! Windows and OS/2 bitmaps: 1 to 32 bits, palettes, bit fields and run lengths.

use loader_core::{Error, ErrorKind, Result};

use crate::{
    bytes::{Endian, slice, u16_at, u32_at},
    config::Limits,
    raster::Raw,
};

/// RGB and, for run lengths, an index.
const BYTES_PER_PIXEL: u64 = 3 + 1;

/// How a file stores its rows.
struct Header {
    width: u32,
    height: u32,
    /// True where the uppermost row comes first.
    downwards: bool,
    bits: u16,
    compression: Compression,
    palette: Vec<[u8; 3]>,
    /// Where the rows start.
    offset: usize,
}

enum Compression {
    None,
    RunLengths,
    /// Masks of red, green and blue.
    Fields([u32; 3]),
}

fn ends_early() -> Error {
    Error::new(ErrorKind::Truncated, "BMP: ends early")
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("BMP: {what}"))
}

/// Width and height.
pub(crate) fn size(bytes: &[u8], limits: &Limits) -> Result<(u32, u32)> {
    header(bytes, limits).map(|header| (header.width, header.height))
}

fn header(bytes: &[u8], limits: &Limits) -> Result<Header> {
    let u16_at = |at| u16_at(bytes, at, Endian::Little).ok_or_else(ends_early);
    let u32_at = |at| u32_at(bytes, at, Endian::Little).ok_or_else(ends_early);
    let index = |number: u32| usize::try_from(number).map_err(|_| ends_early());
    let offset = index(u32_at(10)?)?;
    let header_bytes = index(u32_at(14)?)?;
    let is_core = header_bytes == 12;
    if !is_core && !(40..=124).contains(&header_bytes) && header_bytes != 64 {
        return Err(unsupported(&format!("a header of {header_bytes} bytes")));
    }
    let (width, signed_height, bits) = if is_core {
        (
            i32::from(u16_at(18)?.cast_signed()),
            i32::from(u16_at(20)?.cast_signed()),
            u16_at(24)?,
        )
    } else {
        (
            u32_at(18)?.cast_signed(),
            u32_at(22)?.cast_signed(),
            u16_at(28)?,
        )
    };
    let width = u32::try_from(width)
        .map_err(|_| Error::new(ErrorKind::Malformed, "BMP: a negative width"))?;
    let height = signed_height.unsigned_abs();
    limits.check(width, height, BYTES_PER_PIXEL)?;
    let method = if is_core { 0 } else { u32_at(30)? };
    let compression = match (method, bits) {
        (0, 16) => Compression::Fields([0x7c00, 0x03e0, 0x001f]),
        (0, 32) => Compression::Fields([0x00ff_0000, 0x0000_ff00, 0x0000_00ff]),
        (0, 1 | 2 | 4 | 8 | 24) => Compression::None,
        (1, 8) | (2, 4) if signed_height > 0 => Compression::RunLengths,
        (3 | 6, 16 | 32) => Compression::Fields([u32_at(54)?, u32_at(58)?, u32_at(62)?]),
        _ => {
            return Err(unsupported(&format!(
                "compression {method} with {bits} bits"
            )));
        }
    };
    let mut palette = Vec::new();
    if bits <= 8 {
        let entry_bytes = if is_core { 3 } else { 4 };
        let declared = if is_core { 0 } else { index(u32_at(46)?)? };
        let most = 1_usize << bits;
        let count = if declared == 0 {
            most
        } else {
            declared.min(most)
        };
        let start = 14 + header_bytes;
        // A palette that reaches into the rows is cut where they start.
        let room = offset.saturating_sub(start) / entry_bytes;
        let table = slice(bytes, start, count.min(room) * entry_bytes).ok_or_else(ends_early)?;
        palette.extend(
            table
                .chunks_exact(entry_bytes)
                .map(|entry| [entry[2], entry[1], entry[0]]),
        );
    }
    Ok(Header {
        width,
        height,
        downwards: signed_height < 0,
        bits,
        compression,
        palette,
        offset,
    })
}

/// All pixels; an alpha channel is dropped without blending.
pub(crate) fn decode(bytes: &[u8], limits: &Limits, pixels: &mut Vec<u8>) -> Result<Raw> {
    let header = header(bytes, limits)?;
    let data = bytes.get(header.offset..).ok_or_else(ends_early)?;
    let (width, height) = (header.width as usize, header.height as usize);
    let row_bytes = (width * usize::from(header.bits)).div_ceil(32) * 4;
    if !matches!(header.compression, Compression::RunLengths) {
        // The padding of the last row may be missing; pixels may not.
        let needed = row_bytes * (height - 1) + (width * usize::from(header.bits)).div_ceil(8);
        if data.len() < needed {
            return Err(ends_early());
        }
    }
    pixels.clear();
    pixels.resize(width * height * 3, 0);
    let colour = |index: u8| {
        header
            .palette
            .get(usize::from(index))
            .copied()
            .unwrap_or([0; 3])
    };
    if matches!(header.compression, Compression::RunLengths) {
        let indices = run_lengths(data, width, height, header.bits == 4)?;
        pixels
            .as_chunks_mut::<3>()
            .0
            .iter_mut()
            .zip(indices)
            .for_each(|(pixel, index)| *pixel = colour(index));
        flip(pixels, width * 3);
        return Ok(Raw {
            width: header.width,
            height: header.height,
        });
    }
    for (target, row) in pixels
        .chunks_exact_mut(width * 3)
        .zip(data.chunks(row_bytes))
    {
        let target = target.as_chunks_mut::<3>().0.iter_mut();
        match (&header.compression, header.bits) {
            (Compression::Fields(masks), 16) => {
                let words = row
                    .as_chunks::<2>()
                    .0
                    .iter()
                    .map(|word| u32::from(u16::from_le_bytes(*word)));
                target
                    .zip(words)
                    .for_each(|(pixel, word)| *pixel = masks.map(|mask| field(word, mask)));
            }
            (Compression::Fields(masks), _) => {
                let words = row
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|word| u32::from_le_bytes(*word));
                target
                    .zip(words)
                    .for_each(|(pixel, word)| *pixel = masks.map(|mask| field(word, mask)));
            }
            (_, 24) => target
                .zip(row.as_chunks::<3>().0)
                .for_each(|(pixel, bgr)| *pixel = [bgr[2], bgr[1], bgr[0]]),
            (_, bits) => {
                let per_byte = 8 / usize::from(bits);
                let mask = u8::MAX >> (8 - bits);
                for (number, pixel) in target.enumerate() {
                    let shift = 8 - usize::from(bits) * (number % per_byte + 1);
                    *pixel = colour((row[number / per_byte] >> shift) & mask);
                }
            }
        }
    }
    if !header.downwards {
        flip(pixels, width * 3);
    }
    Ok(Raw {
        width: header.width,
        height: header.height,
    })
}

/// The bits of `word` under `mask`, stretched to 0..=255.
fn field(word: u32, mask: u32) -> u8 {
    if mask == 0 {
        return 0;
    }
    let shift = mask.trailing_zeros();
    let most = u64::from(mask >> shift);
    let value = u64::from((word & mask) >> shift);
    u8::try_from((value * 255 + most / 2) / most).expect("a value is at most its mask")
}

/// Upside down, in place.
fn flip(pixels: &mut [u8], row_bytes: usize) {
    let rows = pixels.len() / row_bytes;
    for row in 0..rows / 2 {
        let (upper, lower) = pixels.split_at_mut((rows - 1 - row) * row_bytes);
        upper[row * row_bytes..][..row_bytes].swap_with_slice(&mut lower[..row_bytes]);
    }
}

/// Expands run lengths to one index a pixel, the lowest row first. Pixels that are skipped have index 0.
fn run_lengths(data: &[u8], width: usize, height: usize, nibbles: bool) -> Result<Vec<u8>> {
    let mut indices = vec![0_u8; width * height];
    let (mut x, mut y) = (0, 0);
    let mut input = data.iter().copied();
    let mut next = move || input.next().ok_or_else(ends_early);
    loop {
        let (count, value) = (next()?, next()?);
        let mut put = |index: u8, x: &mut usize, y: usize| {
            if *x < width && y < height {
                indices[y * width + *x] = index;
            }
            *x += 1;
        };
        let half = |value: u8, number: usize| match (nibbles, number % 2) {
            (false, _) => value,
            (true, 0) => value >> 4,
            (true, _) => value & 15,
        };
        match (count, value) {
            (0, 0) => (x, y) = (0, y + 1),
            (0, 1) => return Ok(indices),
            (0, 2) => (x, y) = (x + usize::from(next()?), y + usize::from(next()?)),
            (0, literal) => {
                let literal = usize::from(literal);
                let bytes = if nibbles {
                    literal.div_ceil(2)
                } else {
                    literal
                };
                for number in 0..bytes {
                    let value = next()?;
                    put(half(value, 0), &mut x, y);
                    if nibbles && number * 2 + 1 < literal {
                        put(half(value, 1), &mut x, y);
                    }
                }
                if bytes % 2 == 1 {
                    next()?;
                }
            }
            (count, value) => {
                (0..usize::from(count)).for_each(|number| put(half(value, number), &mut x, y));
            }
        }
        if y > height {
            return Ok(indices);
        }
    }
}
