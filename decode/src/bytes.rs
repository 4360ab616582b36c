//! Numbers out of foreign bytes, without a way to panic.

/// Which end of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endian {
    Little,
    Big,
}

/// `length` bytes from `start` on, if there are so many.
pub(crate) fn slice(bytes: &[u8], start: usize, length: usize) -> Option<&[u8]> {
    bytes.get(start..start.checked_add(length)?)
}

pub(crate) fn u16_at(bytes: &[u8], start: usize, endian: Endian) -> Option<u16> {
    let two = slice(bytes, start, 2)?.try_into().ok()?;
    Some(match endian {
        Endian::Little => u16::from_le_bytes(two),
        Endian::Big => u16::from_be_bytes(two),
    })
}

pub(crate) fn u32_at(bytes: &[u8], start: usize, endian: Endian) -> Option<u32> {
    let four = slice(bytes, start, 4)?.try_into().ok()?;
    Some(match endian {
        Endian::Little => u32::from_le_bytes(four),
        Endian::Big => u32::from_be_bytes(four),
    })
}
