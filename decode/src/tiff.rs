//! TIFF: the first page, in strips or tiles, from 1 to 16 bits, to RGB.
//!
//! Written here because no reader at hand takes palettes, one-bit pictures and limits alike.

use loader_core::{Error, ErrorKind, Result};

use crate::{
    bytes::{Endian, slice},
    config::{DecodeConfig, Limits},
    jpeg::{decode_embedded, scale_byte},
    raster::Raw,
    tiff::{
        compression::{Compression, embedded_jpeg},
        directory::Page,
    },
};

mod compression;
mod directory;

fn malformed(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Malformed, format!("TIFF: {what}"))
}

fn truncated(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Truncated, format!("TIFF: {what}"))
}

fn unsupported(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unsupported, format!("TIFF: {what}"))
}

/// Width and height of the first page.
pub(crate) fn size(bytes: &[u8], limits: &Limits) -> Result<(u32, u32)> {
    let page = Page::read(bytes)?;
    check(&page, limits)?;
    Ok((page.width, page.height))
}

/// The picture, and a strip or tile of it, are both within the limits.
fn check(page: &Page, limits: &Limits) -> Result<()> {
    let stored = u64::from(page.samples) * u64::from(page.bits.div_ceil(8));
    limits.check(page.width, page.height, 3 + stored)?;
    limits.check(page.chunk_width, page.chunk_height, 3 + stored)
}

/// The first page; samples beyond the colour (alpha) are dropped without blending, 16 bits become their upper eight.
pub(crate) fn decode(bytes: &[u8], config: &DecodeConfig, pixels: &mut Vec<u8>) -> Result<Raw> {
    let page = Page::read(bytes)?;
    check(&page, &config.limits)?;
    pixels.clear();
    pixels.resize(page.width as usize * page.height as usize * 3, 0);
    let across = page.width.div_ceil(page.chunk_width);
    let down = page.height.div_ceil(page.chunk_height);
    let planes = if page.is_planar {
        u32::from(page.samples)
    } else {
        1
    };
    let needed = u64::from(across) * u64::from(down) * u64::from(planes);
    if (page.chunks.len() as u64) < needed {
        return Err(malformed(format_args!(
            "{} strips or tiles where {needed} are needed",
            page.chunks.len()
        )));
    }
    let mut decoded = Vec::new();
    for (number, (offset, length)) in page
        .chunks
        .iter()
        .take(usize::try_from(needed).unwrap_or(usize::MAX))
        .enumerate()
    {
        let number = u32::try_from(number).map_err(|_| malformed("too many strips"))?;
        let (plane, place) = (number / (across * down), number % (across * down));
        let chunk = Chunk {
            x: place % across * page.chunk_width,
            y: place / across * page.chunk_height,
            plane: usize::try_from(plane).unwrap_or(usize::MAX),
        };
        // Channels beyond the third of a planar picture are alpha and the like.
        if page.is_planar && chunk.plane >= page.colours() {
            continue;
        }
        let data = slice(bytes, *offset, *length).ok_or_else(|| {
            truncated(format_args!(
                "a strip or tile at {offset} of {length} bytes lies beyond the end"
            ))
        })?;
        if page.compression == Compression::Jpeg {
            jpeg_chunk(&page, &chunk, data, config, pixels)?;
        } else {
            let rows = if page.is_tiled {
                page.chunk_height
            } else {
                page.chunk_height.min(page.height - chunk.y)
            };
            compression::expand(&page, data, rows, &mut decoded)?;
            chunk.paint(&page, &decoded, pixels)?;
        }
    }
    Ok(Raw {
        width: page.width,
        height: page.height,
    })
}

/// A strip or tile: where it lies and, in planar pictures, which channel it is.
struct Chunk {
    x: u32,
    y: u32,
    plane: usize,
}

impl Chunk {
    /// Converts the chunk's samples and writes what lies inside the picture.
    fn paint(&self, page: &Page, decoded: &[u8], pixels: &mut [u8]) -> Result<()> {
        let samples = if page.is_planar {
            1
        } else {
            usize::from(page.samples)
        };
        let row_bytes = page.row_bytes();
        let (left, width) = (self.x as usize, page.width as usize);
        let columns = (page.chunk_width as usize).min(width - left);
        for (row, line) in decoded
            .chunks_exact(row_bytes)
            .zip(pixels.chunks_exact_mut(width * 3).skip(self.y as usize))
        {
            let line = line[left * 3..(left + columns) * 3].as_chunks_mut::<3>().0;
            for (column, pixel) in line.iter_mut().enumerate() {
                let sample = |number: usize| sample(row, column * samples + number, page);
                if page.is_planar && page.colours() > 1 {
                    pixel[self.plane] = page.byte(sample(0));
                } else {
                    *pixel = colour(page, sample)?;
                }
            }
        }
        Ok(())
    }
}

/// Sample `number` of a row; rows are as long as their samples need.
fn sample(row: &[u8], number: usize, page: &Page) -> u16 {
    match page.bits {
        8 => u16::from(row[number]),
        16 => {
            let pair = [row[number * 2], row[number * 2 + 1]];
            if page.endian == Endian::Little {
                u16::from_le_bytes(pair)
            } else {
                u16::from_be_bytes(pair)
            }
        }
        bits => {
            let bits = usize::from(bits);
            let per_byte = 8 / bits;
            let shift = 8 - bits * (number % per_byte + 1);
            u16::from(row[number / per_byte] >> shift) & ((1 << bits) - 1)
        }
    }
}

fn colour(page: &Page, sample: impl Fn(usize) -> u16) -> Result<[u8; 3]> {
    Ok(match page.photometric {
        0 => [255 - page.byte(sample(0)); 3],
        1 => [page.byte(sample(0)); 3],
        2 => [0, 1, 2].map(|channel| page.byte(sample(channel))),
        3 => page
            .palette
            .get(usize::from(sample(0)))
            .copied()
            .ok_or_else(|| malformed("a colour that its palette lacks"))?,
        // Inks are stored as they are: 0 is none.
        _ => [0, 1, 2].map(|channel| {
            scale_byte(255 - page.byte(sample(channel)), 255 - page.byte(sample(3)))
        }),
    })
}

/// Decodes a strip or tile that is a JPEG of its own.
fn jpeg_chunk(
    page: &Page,
    chunk: &Chunk,
    data: &[u8],
    config: &DecodeConfig,
    pixels: &mut [u8],
) -> Result<()> {
    let stream = embedded_jpeg(page, data)?;
    let (width, height, decoded) = decode_embedded(&stream, config)?;
    let columns = page.chunk_width.min(page.width - chunk.x);
    let rows = page.chunk_height.min(page.height - chunk.y);
    if width < columns || height < rows {
        return Err(malformed(format_args!(
            "a strip of {width}x{height} where {columns}x{rows} are needed"
        )));
    }
    let (left, columns) = (chunk.x as usize * 3, columns as usize * 3);
    let lines = pixels
        .chunks_exact_mut(page.width as usize * 3)
        .skip(chunk.y as usize)
        .take(rows as usize);
    for (line, row) in lines.zip(decoded.chunks_exact(width as usize * 3)) {
        line[left..left + columns].copy_from_slice(&row[..columns]);
    }
    Ok(())
}
