//! The first directory of a TIFF: what its page is and where it lies.

use loader_core::Result;

use super::{compression::Compression, malformed, truncated, unsupported};
use crate::bytes::{Endian, slice, u16_at, u32_at};

/// Samples of a pixel that are read at most.
const MOST_SAMPLES: u32 = 8;

/// A page that this crate can read: everything in it has been looked at.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a tag of the format")]
pub(super) struct Page {
    pub(super) endian: Endian,
    pub(super) width: u32,
    pub(super) height: u32,
    /// Bits of a sample: 1, 2, 4, 8 or 16.
    pub(super) bits: u16,
    /// Samples of a pixel, alpha included.
    pub(super) samples: u16,
    /// 0 white is zero, 1 black is zero, 2 RGB, 3 palette, 5 CMYK, 6 `YCbCr` (JPEG only).
    pub(super) photometric: u32,
    pub(super) compression: Compression,
    /// True where samples are stored as the difference to the pixel before.
    pub(super) is_predicted: bool,
    pub(super) reversed_bits: bool,
    /// True where each channel has strips or tiles of its own.
    pub(super) is_planar: bool,
    pub(super) is_tiled: bool,
    pub(super) chunk_width: u32,
    pub(super) chunk_height: u32,
    /// Offset and length of every strip or tile, bytes.
    pub(super) chunks: Vec<(usize, usize)>,
    pub(super) palette: Vec<[u8; 3]>,
    pub(super) jpeg_tables: Vec<u8>,
}

/// The entries of a directory.
struct Directory<'a> {
    bytes: &'a [u8],
    endian: Endian,
    entries: Vec<(u16, u16, u32, usize)>,
}

impl<'a> Directory<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self> {
        let endian = if bytes.starts_with(b"II") {
            Endian::Little
        } else {
            Endian::Big
        };
        let ends = || truncated("ends inside its directory");
        let start = u32_at(bytes, 4, endian).ok_or_else(ends)? as usize;
        let count = usize::from(u16_at(bytes, start, endian).ok_or_else(ends)?);
        let mut entries = Vec::with_capacity(count.min(64));
        for number in 0..count {
            let at = start.saturating_add(2 + number * 12);
            let entry = slice(bytes, at, 12).ok_or_else(ends)?;
            let number = |at| u16_at(entry, at, endian).ok_or_else(ends);
            entries.push((
                number(0)?,
                number(2)?,
                u32_at(entry, 4, endian).ok_or_else(ends)?,
                at + 8,
            ));
        }
        Ok(Self {
            bytes,
            endian,
            entries,
        })
    }

    /// The bytes of a tag's values, the size of one of them, and their number.
    fn value(&self, tag: u16) -> Result<Option<(&'a [u8], usize)>> {
        let Some((_, kind, count, at)) = self.entries.iter().find(|entry| entry.0 == tag) else {
            return Ok(None);
        };
        let size = match kind {
            1 | 2 | 6 | 7 => 1,
            3 | 8 => 2,
            4 | 9 => 4,
            other => {
                return Err(malformed(format_args!(
                    "tag {tag} has values of type {other}"
                )));
            }
        };
        let length = (*count as usize).saturating_mul(size);
        let outside = || truncated(format_args!("the values of tag {tag} lie beyond the end"));
        let start = if length <= 4 {
            *at
        } else {
            u32_at(self.bytes, *at, self.endian).ok_or_else(outside)? as usize
        };
        Ok(Some((
            slice(self.bytes, start, length).ok_or_else(outside)?,
            size,
        )))
    }

    fn numbers(&self, tag: u16) -> Result<Vec<u32>> {
        let Some((bytes, size)) = self.value(tag)? else {
            return Ok(Vec::new());
        };
        let number = |value: &[u8]| match size {
            1 => u32::from(value[0]),
            2 => u16_at(value, 0, self.endian).map_or(0, u32::from),
            _ => u32_at(value, 0, self.endian).unwrap_or(0),
        };
        Ok(bytes.chunks_exact(size).map(number).collect())
    }

    fn number(&self, tag: u16) -> Result<Option<u32>> {
        Ok(self.numbers(tag)?.first().copied())
    }
}

impl Page {
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let directory = Directory::read(bytes)?;
        let number = |tag, default| directory.number(tag).map(|value| value.unwrap_or(default));
        let needed = |tag| {
            directory
                .number(tag)?
                .ok_or_else(|| malformed(format_args!("tag {tag} is missing")))
        };
        let (width, height) = (needed(256)?, needed(257)?);
        let photometric = needed(262)?;
        let samples = number(277, 1)?;
        let bits = directory.numbers(258)?;
        let bits = match bits.as_slice() {
            [] => 1,
            [first, rest @ ..] if rest.iter().all(|bits| bits == first) => *first,
            _ => return Err(unsupported(format_args!("samples of {bits:?} bits"))),
        };
        if directory.numbers(339)?.iter().any(|format| *format != 1) {
            return Err(unsupported("samples that are no unsigned numbers"));
        }
        let compression = Compression::of(number(259, 1)?, number(293, 0)?)?;
        let least_samples = match (photometric, compression) {
            (0 | 1 | 3, _) => 1,
            (2, _) | (6, Compression::Jpeg) => 3,
            (5, compression) if compression != Compression::Jpeg => 4,
            _ => {
                return Err(unsupported(format_args!(
                    "photometric interpretation {photometric} with {compression:?}"
                )));
            }
        };
        let fits = (least_samples..=MOST_SAMPLES).contains(&samples)
            && matches!(bits, 1 | 2 | 4 | 8 | 16)
            && (compression != Compression::Jpeg || bits == 8)
            && (compression != Compression::Group4 || (bits, samples) == (1, 1));
        if !fits {
            return Err(unsupported(format_args!(
                "{samples} samples of {bits} bits with {compression:?}"
            )));
        }
        let predictor = number(317, 1)?;
        let is_planar = number(284, 1)? == 2 && samples > 1;
        if predictor > 2
            || (predictor == 2 && bits < 8)
            || (is_planar && (photometric == 5 || compression == Compression::Jpeg))
        {
            return Err(unsupported(format_args!(
                "predictor {predictor}, planes apart: {is_planar}, with {compression:?}"
            )));
        }
        let is_tiled = directory.number(322)?.is_some();
        let (chunk_width, chunk_height) = if is_tiled {
            (needed(322)?, needed(323)?)
        } else {
            (width, number(278, height)?.min(height))
        };
        if chunk_width == 0 || (chunk_height == 0 && height > 0) {
            return Err(malformed("strips or tiles without pixels"));
        }
        Ok(Self {
            endian: directory.endian,
            width,
            height,
            bits: u16::try_from(bits).map_err(|_| malformed("bits"))?,
            samples: u16::try_from(samples).map_err(|_| malformed("samples"))?,
            photometric,
            compression,
            is_predicted: predictor == 2,
            reversed_bits: number(266, 1)? == 2,
            is_planar,
            is_tiled,
            chunk_width,
            chunk_height,
            chunks: chunks(&directory, is_tiled, bytes.len())?,
            palette: if photometric == 3 {
                palette(&directory, bits)?
            } else {
                Vec::new()
            },
            jpeg_tables: directory
                .value(347)?
                .map(|(tables, _)| tables.to_vec())
                .unwrap_or_default(),
        })
    }

    /// Samples of a pixel that are colours.
    pub(super) fn colours(&self) -> usize {
        match self.photometric {
            2 | 6 => 3,
            5 => 4,
            _ => 1,
        }
    }

    /// Bytes of a row of a strip or tile, expanded.
    pub(super) fn row_bytes(&self) -> usize {
        let samples = if self.is_planar {
            1
        } else {
            usize::from(self.samples)
        };
        (self.chunk_width as usize * samples * usize::from(self.bits)).div_ceil(8)
    }

    /// A sample as a byte: stretched where it has fewer bits, cut to its upper eight where it has more.
    pub(super) fn byte(&self, sample: u16) -> u8 {
        let byte = match self.bits {
            16 => sample >> 8,
            8 => sample,
            bits => sample * 255 / ((1 << bits) - 1),
        };
        u8::try_from(byte).unwrap_or(u8::MAX)
    }
}

fn chunks(
    directory: &Directory<'_>,
    is_tiled: bool,
    file_bytes: usize,
) -> Result<Vec<(usize, usize)>> {
    let (offsets, lengths) = if is_tiled { (324, 325) } else { (273, 279) };
    let (offsets, mut lengths) = (directory.numbers(offsets)?, directory.numbers(lengths)?);
    if offsets.is_empty() {
        return Err(malformed("no strips or tiles"));
    }
    if lengths.is_empty() && offsets.len() == 1 {
        // Some writers leave out the length of an only strip: it reaches to the end.
        lengths.push(
            u32::try_from(file_bytes.saturating_sub(offsets[0] as usize)).unwrap_or(u32::MAX),
        );
    }
    if lengths.len() < offsets.len() {
        return Err(malformed("strips or tiles without a length"));
    }
    Ok(offsets
        .into_iter()
        .zip(lengths)
        .map(|(offset, length)| (offset as usize, length as usize))
        .collect())
}

fn palette(directory: &Directory<'_>, bits: u32) -> Result<Vec<[u8; 3]>> {
    let map = directory.numbers(320)?;
    let count = 1_usize << bits;
    if bits > 8 || map.len() < count * 3 {
        return Err(malformed(format_args!(
            "a palette of {} numbers for {bits} bits",
            map.len()
        )));
    }
    // Entries have 16 bits; some writers fill only the lower eight.
    let shift = if map.iter().all(|value| *value < 256) {
        0
    } else {
        8
    };
    let byte = |value: u32| u8::try_from((value >> shift) & 255).unwrap_or(u8::MAX);
    Ok((0..count)
        .map(|index| [0, 1, 2].map(|channel| byte(map[channel * count + index])))
        .collect())
}
