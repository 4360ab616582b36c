//! From the bytes of a strip or tile to its samples.

use std::{convert::Infallible, io::Read};

use fax::{
    Color,
    decoder::{DecodeStatus, Group4Decoder, pels},
};
use flate2::read::ZlibDecoder;
use loader_core::Result;
use weezl::{BitOrder, LzwStatus, decode::Decoder as LzwDecoder};

use super::{directory::Page, malformed, truncated, unsupported};
use crate::bytes::Endian;

/// The compressions that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Group4,
    Lzw,
    Jpeg,
    Deflate,
    PackBits,
}

impl Compression {
    /// From the tags `Compression` and `T6Options`.
    pub(super) fn of(number: u32, group4_options: u32) -> Result<Self> {
        match number {
            1 => Ok(Self::None),
            4 if group4_options == 0 => Ok(Self::Group4),
            5 => Ok(Self::Lzw),
            7 => Ok(Self::Jpeg),
            8 | 32_946 => Ok(Self::Deflate),
            32_773 => Ok(Self::PackBits),
            other => Err(unsupported(format_args!("compression {other}"))),
        }
    }
}

/// Expands a strip or tile of `rows` rows into `target`, which has exactly that size afterwards.
pub(super) fn expand(page: &Page, data: &[u8], rows: u32, target: &mut Vec<u8>) -> Result<()> {
    let row_bytes = page.row_bytes();
    let size = row_bytes * rows as usize;
    let reversed: Vec<u8>;
    let data = if page.reversed_bits {
        reversed = data.iter().map(|byte| byte.reverse_bits()).collect();
        &reversed
    } else {
        data
    };
    target.clear();
    match page.compression {
        Compression::None => {
            target.extend_from_slice(data.get(..size).ok_or_else(|| short(data.len(), size))?);
        }
        Compression::Group4 => group4(data, page.chunk_width, rows, row_bytes, target)?,
        Compression::Lzw => {
            target.resize(size, 0);
            lzw(data, target)?;
        }
        Compression::Deflate => {
            target.resize(size, 0);
            ZlibDecoder::new(data)
                .read_exact(target)
                .map_err(|error| match error.kind() {
                    std::io::ErrorKind::UnexpectedEof => truncated("deflated data end early"),
                    _ => malformed(error),
                })?;
        }
        Compression::PackBits => pack_bits(data, size, target)?,
        Compression::Jpeg => return Err(unsupported("JPEG where samples are wanted")),
    }
    if page.is_predicted {
        let samples = if page.is_planar {
            1
        } else {
            usize::from(page.samples)
        };
        target
            .chunks_exact_mut(row_bytes)
            .for_each(|row| undo_prediction(row, samples, page));
    }
    Ok(())
}

fn short(have: usize, want: usize) -> loader_core::Error {
    truncated(format_args!(
        "a strip or tile has {have} bytes where {want} are needed"
    ))
}

/// Black is 1, as in every other one-bit picture whose white is zero.
fn group4(
    data: &[u8],
    width: u32,
    rows: u32,
    row_bytes: usize,
    target: &mut Vec<u8>,
) -> Result<()> {
    let input = data.iter().map(|byte| Ok::<u8, Infallible>(*byte));
    let mut decoder = Group4Decoder::new(input, width).map_err(|_| truncated("no Group 4 data"))?;
    for row in 0..rows {
        match decoder.advance() {
            Ok(DecodeStatus::Incomplete) => {}
            // Encoders may leave out white rows at the bottom.
            Ok(DecodeStatus::End) => break,
            Err(_) => {
                return Err(truncated(format_args!(
                    "Group 4 data end in row {row} of {rows}"
                )));
            }
        }
        let start = target.len();
        target.resize(start + row_bytes, 0);
        for (column, colour) in pels(decoder.transition(), width).enumerate() {
            if colour == Color::Black {
                target[start + column / 8] |= 0x80 >> (column % 8);
            }
        }
    }
    target.resize(row_bytes * rows as usize, 0);
    Ok(())
}

fn lzw(mut data: &[u8], target: &mut [u8]) -> Result<()> {
    if data.starts_with(&[0, 1]) {
        return Err(unsupported("the LZW of before TIFF 5"));
    }
    let mut decoder = LzwDecoder::with_tiff_size_switch(BitOrder::Msb, 8);
    let (size, mut filled) = (target.len(), 0);
    while filled < size {
        let step = decoder.decode_bytes(data, &mut target[filled..]);
        data = &data[step.consumed_in..];
        filled += step.consumed_out;
        match step.status {
            Ok(LzwStatus::Ok) if step.consumed_in + step.consumed_out > 0 => {}
            Ok(_) if filled == size => {}
            Ok(_) => return Err(short(filled, size)),
            Err(error) => return Err(malformed(error)),
        }
    }
    Ok(())
}

fn pack_bits(data: &[u8], size: usize, target: &mut Vec<u8>) -> Result<()> {
    let mut rest = data;
    while target.len() < size {
        let have = target.len();
        let Some((head, tail)) = rest.split_first() else {
            return Err(short(have, size));
        };
        rest = tail;
        match *head {
            count @ 0..=127 => {
                let literal = rest
                    .get(..usize::from(count) + 1)
                    .ok_or_else(|| short(have, size))?;
                target.extend_from_slice(literal);
                rest = &rest[literal.len()..];
            }
            128 => {}
            count => {
                let byte = *rest.first().ok_or_else(|| short(have, size))?;
                target.resize(have + 257 - usize::from(count), byte);
                rest = &rest[1..];
            }
        }
    }
    target.truncate(size);
    Ok(())
}

fn undo_prediction(row: &mut [u8], samples: usize, page: &Page) {
    if page.bits == 8 {
        for at in samples..row.len() {
            row[at] = row[at].wrapping_add(row[at - samples]);
        }
        return;
    }
    let little = page.endian == Endian::Little;
    for at in samples..row.len() / 2 {
        let read = |at: usize| {
            let pair = [row[at * 2], row[at * 2 + 1]];
            if little {
                u16::from_le_bytes(pair)
            } else {
                u16::from_be_bytes(pair)
            }
        };
        let sum = read(at).wrapping_add(read(at - samples));
        row[at * 2..at * 2 + 2].copy_from_slice(&if little {
            sum.to_le_bytes()
        } else {
            sum.to_be_bytes()
        });
    }
}

/// A strip or tile as a JPEG that stands alone: the tables of the page, and a marker that says what its colours are.
pub(super) fn embedded_jpeg(page: &Page, data: &[u8]) -> Result<Vec<u8>> {
    const START: [u8; 2] = [0xff, 0xd8];
    const END: [u8; 2] = [0xff, 0xd9];
    let Some(body) = data.strip_prefix(&START) else {
        return Err(malformed("a JPEG strip that does not start as one"));
    };
    let tables = page.jpeg_tables.strip_prefix(&START).unwrap_or_default();
    let tables = tables.strip_suffix(&END).unwrap_or(tables);
    let mut stream = Vec::with_capacity(data.len() + tables.len() + 18);
    stream.extend_from_slice(&START);
    if matches!(page.photometric, 2 | 6) {
        let transform = u8::from(page.photometric == 6);
        stream.extend_from_slice(b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00");
        stream.push(transform);
    }
    stream.extend_from_slice(tables);
    stream.extend_from_slice(body);
    Ok(stream)
}
