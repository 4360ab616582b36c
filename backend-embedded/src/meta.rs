//! LMDB's meta pages, read by hand: they tell how long the file must be, which LMDB itself never looks at.

use std::{fs::File, os::unix::fs::FileExt};

use loader_core::{Error, ErrorKind, Result};

use crate::error::from_io;

/// What the newer of the two meta pages says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    page_bytes: u64,
    /// Bytes that all pages take, and the file must have.
    pub(crate) file_bytes: u64,
    transaction: u64,
}

/// Bytes of a meta page that are looked at: the page's header and LMDB's `MDB_meta` on a machine of 64 bits.
const META_BYTES: usize = 152;
const META_FLAG: u16 = 0x08;
const LMDB_MAGIC: u32 = 0xBEEF_C0DE;
const LMDB_VERSION: u32 = 1;

impl Meta {
    /// Reads the meta pages of `file` and makes sure that every page they count is there: LMDB answers a missing one with
    /// SIGBUS, long after the file was opened.
    pub(crate) fn check(file: &File) -> Result<Self> {
        let first = Self::read(file, 0)?;
        let second = Self::read(file, first.page_bytes)?;
        let newer = if second.transaction > first.transaction {
            second
        } else {
            first
        };
        // The length is asked for last: a writer may add pages meanwhile, but never takes any away.
        let length = file
            .metadata()
            .map_err(|error| from_io("data.mdb cannot be examined", error))?
            .len();
        if length < newer.file_bytes {
            let message = format!(
                "data.mdb was cut: it has {length} bytes of {}",
                newer.file_bytes
            );
            return Err(Error::new(ErrorKind::Truncated, message)
                .hint("copy the store again, or ingest it again"));
        }
        Ok(newer)
    }

    fn read(file: &File, offset: u64) -> Result<Self> {
        let mut page = [0; META_BYTES];
        file.read_exact_at(&mut page, offset)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => Error::new(
                    ErrorKind::Truncated,
                    "data.mdb was cut: its first pages are missing",
                ),
                _ => from_io("data.mdb cannot be read", error),
            })?;
        Self::parse(&page)
    }

    fn parse(page: &[u8; META_BYTES]) -> Result<Self> {
        let long =
            |place: usize| u64::from_ne_bytes(page[place..place + 8].try_into().expect("8 bytes"));
        let word =
            |place: usize| u32::from_ne_bytes(page[place..place + 4].try_into().expect("4 bytes"));
        let flags = u16::from_ne_bytes(page[10..12].try_into().expect("2 bytes"));
        let malformed = |message| Error::new(ErrorKind::Malformed, message);
        if flags & META_FLAG == 0 || word(16) != LMDB_MAGIC {
            return Err(malformed(
                "data.mdb is no LMDB file of this kind of machine",
            ));
        }
        if word(20) != LMDB_VERSION {
            let message = format!(
                "data.mdb has LMDB's format {}, this build reads format {LMDB_VERSION}",
                word(20)
            );
            return Err(Error::new(ErrorKind::Version, message));
        }
        let page_bytes = u64::from(word(40));
        if !page_bytes.is_power_of_two() || !(512..=65536).contains(&page_bytes) {
            return Err(malformed(
                "the meta page of data.mdb names an impossible page size",
            ));
        }
        let pages = long(136).checked_add(1);
        let file_bytes = pages.and_then(|pages| pages.checked_mul(page_bytes));
        let file_bytes = file_bytes
            .ok_or_else(|| malformed("the meta page of data.mdb counts impossibly many pages"))?;
        Ok(Self {
            page_bytes,
            file_bytes,
            transaction: long(144),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(magic: u32, version: u32, page_bytes: u32, last_page: u64) -> [u8; META_BYTES] {
        let mut page = [0; META_BYTES];
        page[10] = 8;
        page[16..20].copy_from_slice(&magic.to_ne_bytes());
        page[20..24].copy_from_slice(&version.to_ne_bytes());
        page[40..44].copy_from_slice(&page_bytes.to_ne_bytes());
        page[136..144].copy_from_slice(&last_page.to_ne_bytes());
        page
    }

    #[test]
    fn a_meta_page_tells_how_long_the_file_must_be() {
        let meta = Meta::parse(&page(LMDB_MAGIC, 1, 4096, 9)).unwrap();
        assert_eq!((meta.page_bytes, meta.file_bytes), (4096, 40960));
    }

    #[test]
    fn a_hostile_meta_page_is_a_typed_error() {
        let kind = |page| Meta::parse(&page).unwrap_err().kind();
        assert_eq!(kind(page(1, 1, 4096, 9)), ErrorKind::Malformed);
        assert_eq!(kind(page(LMDB_MAGIC, 2, 4096, 9)), ErrorKind::Version);
        assert_eq!(kind(page(LMDB_MAGIC, 1, 0, 9)), ErrorKind::Malformed);
        assert_eq!(
            kind(page(LMDB_MAGIC, 1, 4096, u64::MAX)),
            ErrorKind::Malformed
        );
        assert_eq!(
            kind(page(LMDB_MAGIC, 1, 4096, u64::MAX / 4096)),
            ErrorKind::Malformed
        );
    }
}
