//! The folder of a store: which files it has, and where it may lie.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use index::Index;
use loader_core::{Error, ErrorKind, Result, identity::checksum};
use rustix::fs::FlockOperation;

use crate::{config::EmbeddedConfig, error::from_io, manifest::Record};

/// LMDB's data file.
pub(crate) const DATA_FILE: &str = "data.mdb";
const INDEX_PREFIX: &str = "index-";
const INDEX_SUFFIX: &str = ".arrow";
const TEMPORARY_SUFFIX: &str = ".arrow.new";

/// Index files up to this size are compared with their checksum at open; of larger ones only the structure is checked,
/// because reading gigabytes would take longer than the first batch may.
const CHECKED_INDEX_BYTES: u64 = 256 << 20;

/// File systems without maps and locks that hold between machines, by their number in `statfs`.
const NETWORK_FILE_SYSTEMS: [(u32, &str); 10] = [
    (0x6969, "NFS"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x517B, "SMB"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9p"),
    (0x0BD0_0BD0, "Lustre"),
    (0x00C3_6400, "Ceph"),
    (0x5346_414F, "AFS"),
    (0x4750_4653, "GPFS"),
];

/// Refuses a folder on a network file system.
pub(crate) fn check_file_system(folder: &Path, config: &EmbeddedConfig) -> Result<()> {
    if config.allow_network_file_system {
        return Ok(());
    }
    let statistics = rustix::fs::statfs(folder).map_err(|error| {
        from_io(
            format!("{} cannot be examined", folder.display()),
            error.into(),
        )
    })?;
    // The kernel's numbers have 32 bits; what `statfs` makes of them depends on the machine.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the upper half only repeats the sign"
    )]
    let number = statistics.f_type as u32;
    refuse_network(number)
}

fn refuse_network(number: u32) -> Result<()> {
    let Some((_, name)) = NETWORK_FILE_SYSTEMS
        .iter()
        .find(|(known, _)| *known == number)
    else {
        return Ok(());
    };
    let message = format!(
        "the folder lies on a network file system ({name}), whose locks and maps do not hold between machines"
    );
    Err(Error::new(ErrorKind::Unsupported, message)
        .hint("keep the store on a local disk; a folder of images or tars is read in place on a network file system too"))
}

/// Opens the index that a record names and makes sure that it is the one.
pub(crate) fn open_index(folder: &Path, record: &Record) -> Result<Index> {
    let path = index_path(folder, &record.index)?;
    let index = Index::open(&path)?;
    let bytes = index.to_bytes()?;
    let is_same = bytes.len() as u64 == record.index_bytes
        && index.fingerprint() == record.fingerprint
        && (record.index_bytes > CHECKED_INDEX_BYTES || checksum(&bytes) == record.index_checksum);
    if is_same {
        return Ok(index);
    }
    let message = format!("{} is not the index that was published", path.display());
    Err(Error::new(ErrorKind::Corrupt, message).hint("copy the store again, or ingest it again"))
}

/// A record may name only a file of the folder itself.
fn index_path(folder: &Path, name: &str) -> Result<PathBuf> {
    if is_index(name) && !name.contains('/') {
        return Ok(folder.join(name));
    }
    Err(Error::new(
        ErrorKind::Malformed,
        format!("the store's manifest names the index {name:?}"),
    ))
}

fn is_index(name: &str) -> bool {
    name.starts_with(INDEX_PREFIX) && name.ends_with(INDEX_SUFFIX)
}

/// Writes an index so that it is whole and lasting before it has its name, and tells what the manifest has to say of it.
///
/// The name has the checksum besides the fingerprint: two data sets of one fingerprint may differ in contents and fields,
/// and then the file that the visible manifest names must not be replaced.
pub(crate) fn write_index(folder: &Path, index: &Index) -> Result<Record> {
    let stem = format!("{INDEX_PREFIX}{}", index.fingerprint());
    // One writer at a time: nobody else has this name.
    let temporary = folder.join(format!("{stem}{TEMPORARY_SUFFIX}"));
    let failed = |error| from_io("the index cannot be written", error);
    let write = || {
        let mut file = File::create(&temporary).map_err(failed)?;
        index.write(&mut file)?;
        file.sync_all().map_err(failed)?;
        // Straight to the file and mapped from there: a copy in memory would be as large as the rows themselves.
        let bytes = Index::open(&temporary)?.to_bytes()?;
        let sum = checksum(&bytes);
        let name = format!("{stem}-{sum:016x}{INDEX_SUFFIX}");
        fs::rename(&temporary, folder.join(&name)).map_err(failed)?;
        sync_folder(folder).map_err(failed)?;
        Ok(Record::new(index, name, bytes.len() as u64, sum))
    };
    write().map_err(|error: Error| {
        // What is left of it is of no use; the next writer would clear it as well.
        let _ = fs::remove_file(&temporary);
        if error.kind() == ErrorKind::DiskFull {
            error.hint("the index is written beside the data: make room for it")
        } else {
            error
        }
    })
}

/// Makes names in the folder lasting.
pub(crate) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes index files that the visible manifest does not name, finished or not. Readers that have one mapped keep it.
pub(crate) fn clear_indexes(folder: &Path, keep: Option<&str>) -> Result<()> {
    let failed = |error| from_io("files of an earlier writer cannot be removed", error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_temporary = name.starts_with(INDEX_PREFIX) && name.ends_with(TEMPORARY_SUFFIX);
        if is_temporary || (is_index(name) && Some(name) != keep) {
            fs::remove_file(folder.join(name)).map_err(failed)?;
        }
    }
    Ok(())
}

/// True where the folder has a finished index, so that a data file that was cut is a loss.
pub(crate) fn has_index(folder: &Path) -> bool {
    let names = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name());
    names
        .into_iter()
        .any(|name| name.to_str().is_some_and(is_index))
}

/// Makes this the only writer of the store until the file is closed, also by the end of the process.
pub(crate) fn lock_for_writing(folder: &Path, wait: Duration) -> Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(folder.join(DATA_FILE));
    let file = file.map_err(|error| from_io("data.mdb cannot be opened for writing", error))?;
    let started = Instant::now();
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if started.elapsed() < wait => {
                std::thread::sleep(Duration::from_millis(20).min(wait));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let message = "another writer has the store open";
                return Err(Error::new(ErrorKind::Unavailable, message)
                    .hint("wait for the other ingest to end"));
            }
            Err(error) => {
                return Err(from_io(
                    "the store cannot be locked for writing",
                    error.into(),
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_refused_with_advice() {
        let error = refuse_network(0x6969).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("NFS") && error.advice().is_some());
        assert!(refuse_network(0xEF53).is_ok(), "ext4 is local");
    }

    #[test]
    fn a_manifest_cannot_name_a_file_elsewhere() {
        assert!(index_path(Path::new("/store"), "index-1.arrow").is_ok());
        for name in ["../index-1.arrow", "index-/../../x.arrow", "data.mdb", ""] {
            assert_eq!(
                index_path(Path::new("/store"), name).unwrap_err().kind(),
                ErrorKind::Malformed,
                "{name}"
            );
        }
    }
}
