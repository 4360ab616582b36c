//! Reads bytes of a file into the end of one buffer, without clearing it first where that can be helped.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

use loader_core::{Error, ErrorKind, Result};
use rustix::{buffer::spare_capacity, fs::OFlags, io::pread};

use crate::failure;

/// Parts up to this size are read over the stack.
const SMALL: usize = 4096;

/// Opens a file for reading; what became a pipe since it was listed does not block.
pub(crate) fn open(path: &Path) -> Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("a flag of open fits");
    OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(|error| failure::reading(path, error))
}

/// An empty buffer for exactly so many bytes.
///
/// # Errors
/// [`ErrorKind::TooLarge`] above `limit`, before anything is allocated, or where there is no memory.
pub(crate) fn buffer(nbytes: u64, limit: u64) -> Result<Vec<u8>> {
    let too_large = |message: String| Error::new(ErrorKind::TooLarge, message);
    if nbytes > limit {
        return Err(too_large(format!(
            "the sample has {nbytes} bytes, the limit is {limit}"
        )));
    }
    let mut buffer = Vec::new();
    let wanted = usize::try_from(nbytes).unwrap_or(usize::MAX);
    buffer
        .try_reserve_exact(wanted)
        .map_err(|_| too_large(format!("no memory for {nbytes} bytes")))?;
    Ok(buffer)
}

/// Appends `nbytes` bytes from `offset` on.
///
/// # Errors
/// `UnexpectedEof` where the file ends before.
pub(crate) fn append(
    file: &File,
    mut offset: u64,
    nbytes: usize,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    let end = buffer.len() + nbytes;
    let spare = buffer.capacity() - buffer.len();
    // Reading on into the spare memory and forgetting what was too much is cheaper than clearing memory first.
    if spare >= nbytes && spare - nbytes <= SMALL.max(nbytes / 4) {
        while buffer.len() < end {
            let read = pread(file, spare_capacity(buffer), offset)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            offset += read as u64;
        }
        buffer.truncate(end);
    } else if nbytes <= SMALL {
        let mut small = [0; SMALL];
        file.read_exact_at(&mut small[..nbytes], offset)?;
        buffer.extend_from_slice(&small[..nbytes]);
    } else {
        let start = buffer.len();
        buffer.resize(end, 0);
        file.read_exact_at(&mut buffer[start..], offset)?;
    }
    Ok(())
}

/// Fills `bytes` from `offset` on.
///
/// # Errors
/// `UnexpectedEof` where the file ends before.
pub(crate) fn exact(file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    file.read_exact_at(bytes, offset)
}

/// Says whether the file behind `file` still is the one that was listed.
///
/// # Errors
/// [`ErrorKind::Changed`] where its size or time of change is another.
pub(crate) fn check_unchanged(file: &File, path: &Path, nbytes: u64, modified: i64) -> Result<()> {
    let metadata = file
        .metadata()
        .map_err(|error| failure::reading(path, error))?;
    if metadata.len() == nbytes && failure::nanoseconds(&metadata) == modified {
        return Ok(());
    }
    Err(failure::changed(path))
}

#[cfg(test)]
mod tests {
    use std::{io::Write, iter};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn parts_of_any_size_arrive_in_order(sizes in prop::collection::vec(0_usize..20_000, 1..5), gap in 0_u64..600) {
            let mut file = tempfile::tempfile().unwrap();
            let content: Vec<u8> = iter::successors(Some(1_u8), |at| Some(at.wrapping_mul(31).wrapping_add(7))).take(120_000).collect();
            file.write_all(&content).unwrap();
            let total: usize = sizes.iter().sum();
            let mut payload = buffer(total as u64, 1 << 20).unwrap();
            let (mut offset, mut expected) = (0_u64, Vec::new());
            for size in sizes {
                append(&file, offset, size, &mut payload).unwrap();
                let start = usize::try_from(offset).unwrap();
                expected.extend_from_slice(&content[start..start + size]);
                offset += size as u64 + gap;
            }
            prop_assert_eq!(payload.capacity(), total);
            prop_assert_eq!(payload, expected);
        }
    }

    #[test]
    fn the_end_of_the_file_is_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"abc").unwrap();
        let mut payload = buffer(5, 5).unwrap();
        assert_eq!(
            append(&file, 0, 5, &mut payload).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        assert_eq!(buffer(6, 5).unwrap_err().kind(), ErrorKind::TooLarge);
    }
}
