//! The one place that maps a file into memory.

use std::{fs::File, path::Path};

use bytes::Bytes;
use loader_core::{Error, Result};

/// Maps a whole file, read only and shared with every process that maps it too.
#[allow(
    unsafe_code,
    reason = "mapping a file is unsafe by nature; nothing else here is"
)]
pub(crate) fn map(path: &Path) -> Result<Bytes> {
    let describe = |what: &str| format!("the index file {} cannot be {what}", path.display());
    let file = File::open(path).map_err(|error| Error::io(describe("opened"), error))?;
    let length = file
        .metadata()
        .map_err(|error| Error::io(describe("examined"), error))?
        .len();
    if length == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: an index file is written under another name, renamed into place and never changed afterwards: a new index is
    // a new file, and an unlinked one lives as long as its maps. So the bytes behind the map do not change or go away.
    let map = unsafe { memmap2::Mmap::map(&file) }
        .map_err(|error| Error::io(describe("mapped"), error))?;
    Ok(Bytes::from_owner(map))
}
