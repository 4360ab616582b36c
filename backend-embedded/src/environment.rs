//! One LMDB environment a folder and process, shared by all stores and writers over it.

use std::{
    collections::HashMap,
    fs::File,
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    thread,
    time::{Duration, Instant},
};

use heed::{MdbError, RoTxn, RwTxn, WithoutTls};
use loader_core::{Error, ErrorKind, Result};
use rustix::fs::FallocateFlags;

use crate::{
    config::EmbeddedConfig,
    error::{FULL, from_io, from_lmdb, is_denied},
    folder::DATA_FILE,
    map::{Access, Mapped, Shared, Tables},
    meta::Meta,
};

/// Smallest map of a writer, bytes: growing starts a little later.
const WRITER_MAP_BYTES: u64 = 16 << 20;
/// Maps are a multiple of this, which is one of every page size.
const MAP_STEP_BYTES: u64 = 1 << 20;
/// Pages as this crate counts them when it takes room; those of the file may be larger.
const PAGE_BYTES: u64 = 4096;
/// Bytes of a stored value that are compared in one go.
const COMPARED_BYTES: usize = 64 << 10;
/// How long a read waits for one of LMDB's reader slots, and a reopening for the old environment to be gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// An open environment.
#[derive(Debug)]
pub(crate) struct Environment {
    map: Mapped,
    tables: OnceLock<Tables>,
    /// The data file, for reading values past the map and for making room.
    file: File,
    access: Access,
}

/// A read transaction with what is needed to read values past the map.
pub(crate) struct Reading<'a> {
    pub(crate) transaction: RoTxn<'a, WithoutTls>,
    pub(crate) tables: Tables,
    pub(crate) file: &'a File,
    shared: &'a Shared<'a>,
}

impl Reading<'_> {
    /// The place in the file of a value of this transaction that is larger than [`Self::page_bytes`]; `None` for one that
    /// cannot lie there, as a damaged tree may say.
    pub(crate) fn place(&self, value: &[u8]) -> Option<u64> {
        self.shared.place(value, self.file)
    }

    /// Size of a page, bytes: larger values have pages of their own.
    pub(crate) fn page_bytes(&self) -> usize {
        usize::try_from(self.shared.page_bytes()).expect("a page fits into memory")
    }
}

type Registry = Mutex<HashMap<PathBuf, Weak<Environment>>>;

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(Registry::default)
}

impl Environment {
    /// The environment of `folder`: the one that is open in this process, or a new one with as much access as can be had.
    ///
    /// The file is found whole before it is mapped; `create` allows it to be missing.
    pub(crate) fn shared(
        folder: &Path,
        config: &EmbeddedConfig,
        create: bool,
    ) -> Result<Arc<Self>> {
        let folder = folder
            .canonicalize()
            .map_err(|error| from_io(format!("{} cannot be opened", folder.display()), error))?;
        let mut registry = registry().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = registry.get(&folder).and_then(Weak::upgrade) {
            if open.process() != std::process::id() {
                open.map.leave_behind();
            } else if open.is_of(&folder) {
                return Ok(open);
            } else {
                open.map.retire();
            }
        }
        let environment = Arc::new(Self::open(&folder, config, create)?);
        registry.retain(|_, environment| environment.strong_count() > 0);
        registry.insert(folder, Arc::downgrade(&environment));
        Ok(environment)
    }

    fn open(folder: &Path, config: &EmbeddedConfig, create: bool) -> Result<Self> {
        let path = folder.join(DATA_FILE);
        let (file_bytes, may_write) = match File::options().read(true).write(true).open(&path) {
            Ok(file) if create && file.metadata().is_ok_and(|data| data.len() == 0) => (0, true),
            Ok(file) => (Meta::check(&file)?.file_bytes, true),
            Err(error) if error.kind() == io::ErrorKind::NotFound && create => (0, true),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                let file = File::open(&path)
                    .map_err(|error| from_io("data.mdb cannot be opened", error))?;
                (Meta::check(&file)?.file_bytes, false)
            }
            Err(error) => return Err(from_io("data.mdb cannot be opened", error)),
        };
        let attempts: &[Access] = match (create, may_write) {
            (true, _) => &[Access::Write],
            (false, true) => &[Access::Write, Access::Read, Access::ReadUnlocked],
            (false, false) => &[Access::Read, Access::ReadUnlocked],
        };
        let (map, access) = Self::attempt(folder, attempts, config, file_bytes)?;
        let file = File::options()
            .read(true)
            .write(access == Access::Write)
            .open(&path);
        let file = file.map_err(|error| from_io("data.mdb cannot be opened", error))?;
        if access != Access::ReadUnlocked {
            // Slots of processes that were killed would keep old pages alive for ever.
            map.share()
                .and_then(|shared| shared.clear_stale_readers())
                .map_err(|error| from_lmdb("stale readers cannot be cleared", error))?;
        }
        let opened = Self {
            map,
            tables: OnceLock::new(),
            file,
            access,
        };
        opened.open_tables()?;
        Ok(opened)
    }

    fn attempt(
        folder: &Path,
        attempts: &[Access],
        config: &EmbeddedConfig,
        file_bytes: u64,
    ) -> Result<(Mapped, Access)> {
        let started = Instant::now();
        let mut attempts = attempts.iter().copied().peekable();
        while let Some(access) = attempts.peek().copied() {
            let least = if access == Access::Write {
                WRITER_MAP_BYTES.min(config.max_file_bytes)
            } else {
                0
            };
            match Mapped::open(folder, access, map_bytes(file_bytes.max(least))?) {
                Ok(map) => return Ok((map, access)),
                // Another thread has dropped the last handle and is not through with closing.
                Err(heed::Error::EnvAlreadyOpened) if started.elapsed() < PATIENCE => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(error) if is_denied(&error) => {
                    attempts.next();
                    if attempts.peek().is_none() {
                        return Err(from_lmdb("the store cannot be opened", error));
                    }
                }
                Err(error) => return Err(from_lmdb("the store cannot be opened", error)),
            }
        }
        Err(Error::new(
            ErrorKind::PermissionDenied,
            "the store cannot be opened",
        ))
    }

    /// True while the folder has the file that is open here, and no other under its name.
    fn is_of(&self, folder: &Path) -> bool {
        let named = std::fs::metadata(folder.join(DATA_FILE));
        let (Ok(named), Ok(open)) = (named, self.file.metadata()) else {
            return false;
        };
        (named.dev(), named.ino()) == (open.dev(), open.ino())
    }

    /// True where the folder can be written to.
    pub(crate) fn is_writable(&self) -> bool {
        self.access == Access::Write
    }

    /// The process that opened it.
    pub(crate) fn process(&self) -> u32 {
        self.map.process()
    }

    /// Opens the tables where they are there.
    fn open_tables(&self) -> Result<()> {
        loop {
            match self.map.open_tables() {
                Ok(Some(tables)) => {
                    self.tables.get_or_init(|| tables);
                    return Ok(());
                }
                Ok(None) => return Ok(()),
                Err(heed::Error::Mdb(MdbError::MapResized)) => self.remap(0)?,
                Err(error) => {
                    return Err(from_lmdb("the tables of the store cannot be opened", error));
                }
            }
        }
    }

    /// Makes the tables where they are missing.
    pub(crate) fn create_tables(&self) -> Result<()> {
        if self.tables.get().is_none() {
            let tables = self.map.create_tables();
            let tables = tables
                .map_err(|error| from_lmdb("the tables of the store cannot be made", error))?;
            if let Some(tables) = tables {
                self.tables.get_or_init(|| tables);
            }
        }
        Ok(())
    }

    fn known_tables(&self) -> Result<Tables> {
        let missing = || {
            Error::new(
                ErrorKind::NotFound,
                "the folder holds an LMDB file, but no farhaul store",
            )
        };
        self.tables.get().copied().ok_or_else(missing)
    }

    /// Runs `work` inside a read transaction, which is short: a long one keeps every page alive that a writer frees.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Reading<'_>) -> Result<T>) -> Result<T> {
        let tables = self.known_tables()?;
        let (shared, transaction) = self.begin()?;
        work(&Reading {
            transaction,
            tables,
            file: &self.file,
            shared: &shared,
        })
    }

    fn begin(&self) -> Result<(Shared<'_>, RoTxn<'_, WithoutTls>)> {
        let started = Instant::now();
        loop {
            match self.map.begin_read() {
                Ok(begun) => return Ok(begun),
                // A writer of another process has made the file larger than this map.
                Err(heed::Error::Mdb(MdbError::MapResized)) => self.remap(0)?,
                Err(heed::Error::Mdb(MdbError::ReadersFull)) if started.elapsed() < PATIENCE => {
                    let cleared = self
                        .map
                        .share()
                        .and_then(|shared| shared.clear_stale_readers());
                    cleared.map_err(|error| from_lmdb("stale readers cannot be cleared", error))?;
                    thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(from_lmdb("the store cannot be read", error)),
            }
        }
    }

    /// Runs `work` inside a write transaction and commits it; from the start again where the file has to grow first.
    ///
    /// `bytes` is what the work is going to add, for the error that says that it did not fit into `limit`.
    pub(crate) fn write<T>(
        &self,
        bytes: u64,
        limit: u64,
        mut work: impl FnMut(&mut Writing<'_>) -> heed::Result<T>,
    ) -> Result<T> {
        let tables = self.known_tables()?;
        let mut attempt = || {
            let (shared, transaction) = self.map.begin_write()?;
            let mut writing = Writing {
                transaction,
                tables,
                shared: &shared,
                file: &self.file,
            };
            let done = work(&mut writing)?;
            writing.transaction.commit()?;
            // Should the estimate of the room that it takes have been too low.
            extend(&self.file, pages_bytes(&shared))?;
            Ok(done)
        };
        loop {
            match attempt() {
                Ok(done) => return Ok(done),
                Err(heed::Error::Mdb(MdbError::MapFull)) => self.grow(bytes, limit)?,
                Err(heed::Error::Mdb(MdbError::MapResized)) => self.remap(0)?,
                Err(error) => {
                    let error = from_lmdb("the store cannot be written to", error);
                    let hint = format!("{bytes} bytes were to be added: make room for them");
                    return Err(if error.kind() == ErrorKind::DiskFull {
                        error.hint(hint)
                    } else {
                        error
                    });
                }
            }
        }
    }

    /// Gives back the space that was taken too much: the file ends with its last page, so that any cut shows.
    pub(crate) fn trim(&self) -> Result<()> {
        let trim = || {
            // Nobody takes room while this transaction is open.
            let (shared, _transaction) = self.map.begin_write()?;
            Ok(self.file.set_len(pages_bytes(&shared))?)
        };
        trim().map_err(|error| from_lmdb("data.mdb cannot be trimmed", error))
    }

    fn grow(&self, bytes: u64, limit: u64) -> Result<()> {
        let failed = |error| from_lmdb("the store cannot grow", error);
        let (now, used) = {
            let shared = self.map.share().map_err(failed)?;
            (shared.info().map_size as u64, pages_bytes(&shared))
        };
        let wanted = used
            .saturating_add(bytes)
            .saturating_add(bytes / 4 + MAP_STEP_BYTES);
        let target = wanted
            .max(now.saturating_mul(2))
            .min(limit / MAP_STEP_BYTES * MAP_STEP_BYTES);
        if target <= now {
            let message =
                format!("{bytes} more bytes do not fit: the store may have {limit} bytes at most");
            return Err(Error::new(ErrorKind::DiskFull, message).hint(FULL));
        }
        self.remap(map_bytes(target)?)
    }

    fn remap(&self, bytes: usize) -> Result<()> {
        self.map
            .resize(bytes)
            .map_err(|error| from_lmdb("the store cannot be mapped", error))
    }

    /// Makes all that was committed survive a crash of the machine.
    pub(crate) fn sync(&self) -> Result<()> {
        self.map
            .share()
            .and_then(|shared| shared.sync())
            .map_err(|error| from_lmdb("the store cannot be synced", error))
    }
}

/// A write transaction, and the room that it may take.
pub(crate) struct Writing<'a> {
    pub(crate) transaction: RwTxn<'a>,
    pub(crate) tables: Tables,
    shared: &'a Shared<'a>,
    file: &'a File,
}

impl Writing<'_> {
    /// Takes the disk space for `bytes` in `values` values before any is written.
    ///
    /// A full disk shows here, before anything changed. The file is then also at least as long as its pages: LMDB may count
    /// pages at its end that it never writes, and a file that lacks those could not be told from one that was cut.
    pub(crate) fn make_room(&self, bytes: u64, values: u64) -> heed::Result<()> {
        let pages = values * 4 + 32 + bytes / PAGE_BYTES;
        let target = pages_bytes(self.shared).saturating_add(pages * PAGE_BYTES);
        extend(self.file, target.min(self.shared.info().map_size as u64))
    }

    /// True where a value that was committed before this transaction has these bytes.
    ///
    /// One of more than a page is read by `pread`, as by [`Reading`]. One that cannot be read is not the same.
    pub(crate) fn is_same(&self, value: &[u8], bytes: &[u8]) -> bool {
        if value.len() != bytes.len() {
            return false;
        }
        if value.len() as u64 <= self.shared.page_bytes() {
            return value == bytes;
        }
        let Some(mut place) = self.shared.place(value, self.file) else {
            return false;
        };
        let mut buffer = vec![0; COMPARED_BYTES.min(bytes.len())];
        bytes.chunks(COMPARED_BYTES).all(|piece| {
            let stored = &mut buffer[..piece.len()];
            let is_read = self.file.read_exact_at(stored, place).is_ok();
            place += piece.len() as u64;
            is_read && stored == piece
        })
    }
}

/// Bytes of all pages up to the last one in use.
fn pages_bytes(shared: &Shared<'_>) -> u64 {
    (shared.info().last_page_number as u64 + 1) * shared.page_bytes()
}

fn extend(file: &File, target: u64) -> heed::Result<()> {
    let length = file.metadata()?.len();
    if target <= length {
        return Ok(());
    }
    match rustix::fs::fallocate(file, FallocateFlags::empty(), length, target - length) {
        // File systems that cannot take space in advance still can be extended.
        Err(rustix::io::Errno::OPNOTSUPP) => Ok(file.set_len(target)?),
        result => Ok(result.map_err(io::Error::from)?),
    }
}

/// `bytes` as the size of a map.
fn map_bytes(bytes: u64) -> Result<usize> {
    let rounded = bytes.max(1).checked_next_multiple_of(MAP_STEP_BYTES);
    let size = rounded.and_then(|bytes| usize::try_from(bytes).ok());
    size.ok_or_else(|| {
        Error::new(
            ErrorKind::TooLarge,
            format!("{bytes} bytes cannot be mapped"),
        )
    })
}
