//! The orientation tag, wherever a format keeps it.

use crate::bytes::{Endian, slice, u16_at, u32_at};

/// The Exif orientation, 1 to 8: what has to be done to stored pixels so that the picture stands upright.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn(u8);

impl Turn {
    /// Nothing has to be done.
    pub(crate) const NONE: Self = Self(1);

    pub(crate) fn new(orientation: u16) -> Option<Self> {
        u8::try_from(orientation)
            .ok()
            .filter(|value| (1..=8).contains(value))
            .map(Self)
    }

    /// True where rows and columns change places.
    pub(crate) fn transposes(self) -> bool {
        self.0 >= 5
    }

    /// True where, seen from the upright picture, stored columns run backwards.
    pub(crate) fn mirrors_columns(self) -> bool {
        matches!(self.0, 2 | 3 | 7 | 8)
    }

    /// True where, seen from the upright picture, stored rows run backwards.
    pub(crate) fn mirrors_rows(self) -> bool {
        matches!(self.0, 3 | 4 | 6 | 7)
    }

    /// The size of the upright picture.
    pub(crate) fn size(self, width: u32, height: u32) -> (u32, u32) {
        if self.transposes() {
            (height, width)
        } else {
            (width, height)
        }
    }
}

/// The orientation in the first directory of a TIFF structure, as Exif blocks and TIFF files have it.
///
/// Anything that cannot be read counts as absent: damaged Exif never makes a sample fail.
pub(crate) fn orientation(tiff: &[u8]) -> Option<Turn> {
    let endian = match tiff.get(..4)? {
        b"II*\0" => Endian::Little,
        b"MM\0*" => Endian::Big,
        _ => return None,
    };
    let directory = usize::try_from(u32_at(tiff, 4, endian)?).ok()?;
    let count = usize::from(u16_at(tiff, directory, endian)?);
    (0..count).find_map(|number| {
        let entry = slice(
            tiff,
            directory.checked_add(2)?.checked_add(number * 12)?,
            12,
        )?;
        if u16_at(entry, 0, endian)? != 0x0112 {
            return None;
        }
        match u16_at(entry, 2, endian)? {
            3 => Turn::new(u16_at(entry, 8, endian)?),
            4 => Turn::new(u16::try_from(u32_at(entry, 8, endian)?).ok()?),
            _ => None,
        }
    })
}

/// The orientation in an Exif block that may start with its name, as in JPEG and some WebP files.
pub(crate) fn orientation_of_block(block: &[u8]) -> Option<Turn> {
    orientation(block.strip_prefix(b"Exif\0\0").unwrap_or(block))
}
