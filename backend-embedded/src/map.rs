//! The unsafe part: LMDB maps its file, so whoever opens one must know that the file is whole, that it is opened once a
//! process, and that no transaction is open while it is mapped anew.

use std::{
    fs::File,
    mem::ManuallyDrop,
    os::unix::fs::FileExt,
    path::Path,
    process,
    sync::{
        PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use heed::{
    CommitOrAbort, Database, Env, EnvFlags, EnvInfo, EnvOpenOptions, RoTxn, RwTxn, WithoutTls,
    types::Bytes,
};

/// Readers of all processes that may have a transaction at once.
const MAX_READERS: u32 = 1024;
/// Named databases in the file, with room for later versions.
const MAX_DATABASES: u32 = 8;

/// Bytes at the start of each of LMDB's pages, before a value that has pages of its own.
const PAGE_HEADER_BYTES: usize = 16;
/// The smallest page of any system, bytes.
const SYSTEM_PAGE_BYTES: usize = 4096;

/// Keys and values as they are.
pub(crate) type Table = Database<'static, Bytes, Bytes>;

/// The databases in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tables {
    /// Payloads by key.
    pub(crate) payload: Table,
    /// Records about the store.
    pub(crate) meta: Table,
}

/// How much access was had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everything.
    Write,
    /// Reading, known to writers through the lock file.
    Read,
    /// Reading without a lock file: the folder takes no files. Nobody may write meanwhile.
    ReadUnlocked,
}

/// An LMDB environment of this process.
///
/// The environment itself is never handed out, so that every transaction goes through [`Self::begin_read`] or
/// [`Self::begin_write`], which hold the gate.
#[derive(Debug)]
pub(crate) struct Mapped {
    environment: ManuallyDrop<Env<WithoutTls>>,
    /// Held shared by every transaction, alone by whoever maps the file anew.
    gate: RwLock<()>,
    process: u32,
    /// Where the map is, once a value has told; 0 before. LMDB does not say it.
    start: AtomicUsize,
    /// True once a forked process has closed its copy.
    closed: AtomicBool,
}

/// Leave to use an environment: while one exists, the map stays where it is and the environment open.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    map: &'a Mapped,
    _gate: RwLockReadGuard<'a, ()>,
}

impl Mapped {
    /// Maps the data file of a folder, which [`crate::meta::Meta`] has found whole or which is new.
    ///
    /// # Errors
    /// Those of LMDB; nothing is open then.
    #[allow(unsafe_code, reason = "LMDB maps the file")]
    pub(crate) fn open(folder: &Path, access: Access, map_bytes: usize) -> heed::Result<Self> {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options
            .map_size(map_bytes)
            .max_readers(MAX_READERS)
            .max_dbs(MAX_DATABASES);
        // Values are read by `pread`; what is touched in the map is the tree, which is visited at random.
        let mut flags = EnvFlags::NO_READ_AHEAD;
        match access {
            Access::Write => flags |= EnvFlags::NO_META_SYNC,
            Access::Read => flags |= EnvFlags::READ_ONLY,
            Access::ReadUnlocked => flags |= EnvFlags::READ_ONLY | EnvFlags::NO_LOCK,
        }
        // SAFETY: NO_META_SYNC keeps the file whole after a crash: each commit syncs its pages and, with them, the meta
        // page of the commit before, so at worst the last commit is undone (publishing syncs once more). NO_LOCK is used
        // only where this process may not write to the folder; the README asks that nobody else does so meanwhile.
        unsafe { options.flags(flags) };
        // SAFETY: heed refuses to open a folder twice in a process; the file was found whole; others change it only
        // through LMDB, whose lock file keeps pages alive that a reader's transaction may see.
        let environment = unsafe { options.open(folder) }?;
        Ok(Self {
            environment: ManuallyDrop::new(environment),
            gate: RwLock::new(()),
            process: process::id(),
            start: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        })
    }

    /// The process that opened it, which alone may use it.
    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    /// Leave to use it, for this process only.
    pub(crate) fn share(&self) -> heed::Result<Shared<'_>> {
        if self.process != process::id() {
            return Err(gone(
                "the environment belongs to the process that this one was forked from",
            ));
        }
        let gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::Acquire) {
            return Err(gone("the folder of the store was replaced by another one"));
        }
        Ok(Shared {
            map: self,
            _gate: gate,
        })
    }

    /// A read transaction. The guard must outlive it, and everything that was found through it.
    pub(crate) fn begin_read(&self) -> heed::Result<(Shared<'_>, RoTxn<'_, WithoutTls>)> {
        let shared = self.share()?;
        Ok((shared, self.environment.read_txn()?))
    }

    /// A write transaction; waits for that of another thread or process. The guard must outlive it.
    pub(crate) fn begin_write(&self) -> heed::Result<(Shared<'_>, RwTxn<'_>)> {
        let shared = self.share()?;
        Ok((shared, self.environment.write_txn()?))
    }

    /// The tables, where they are there.
    pub(crate) fn open_tables(&self) -> heed::Result<Option<Tables>> {
        let (_shared, transaction) = self.begin_read()?;
        let tables =
            self.environment
                .open_databases_and_commit(transaction, |opener, transaction| {
                    let open = |name| {
                        opener
                            .database_options()
                            .types::<Bytes, Bytes>()
                            .name(name)
                            .open(transaction)
                    };
                    Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit((
                        open("payload")?,
                        open("meta")?,
                    )))
                })?;
        let CommitOrAbort::Commit((Some(payload), Some(meta))) = tables else {
            return Ok(None);
        };
        Ok(Some(Tables { payload, meta }))
    }

    /// The tables, made where they are missing.
    pub(crate) fn create_tables(&self) -> heed::Result<Option<Tables>> {
        let (_shared, transaction) = self.begin_write()?;
        let tables =
            self.environment
                .create_databases_and_commit(transaction, |opener, transaction| {
                    let mut create = |name| {
                        opener
                            .database_options()
                            .types::<Bytes, Bytes>()
                            .name(name)
                            .create(transaction)
                    };
                    Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit((
                        create("payload")?,
                        create("meta")?,
                    )))
                })?;
        Ok(tables
            .commit()
            .map(|(payload, meta)| Tables { payload, meta }))
    }

    /// Maps the file anew with room for `bytes`; with 0 for what a writer of another process has made it. Waits for the
    /// transactions of this process.
    #[allow(unsafe_code, reason = "LMDB unmaps what transactions may point to")]
    pub(crate) fn resize(&self, bytes: usize) -> heed::Result<()> {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::Acquire) {
            return Err(gone("the folder of the store was replaced by another one"));
        }
        self.start.store(0, Ordering::Relaxed);
        // SAFETY: every transaction of this process holds the gate shared, and it is held alone here.
        unsafe { self.environment.resize(bytes) }
    }

    /// Closes it while others still have it: its folder was replaced, and LMDB opens a path only once. They get errors.
    pub(crate) fn retire(&self) {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        self.close();
    }

    /// Closes the copy of the parent's environment that a forked process inherited, so that it can open its own.
    pub(crate) fn leave_behind(&self) {
        if self.process != process::id() {
            self.close();
        }
    }

    /// Closes it, once. Only for a process that never uses it again.
    #[allow(
        unsafe_code,
        reason = "it takes the environment out of a place that others may still see"
    )]
    fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // SAFETY: the flag lets this happen once, and every use of the environment comes after a look at it inside the gate.
        // `drop` has it alone; `retire` holds the gate alone. In a forked process `share` refuses earlier, by the process'
        // id, and the threads that had transactions exist in the parent alone; LMDB then closes the child's descriptors
        // and map, and frees only those reader slots that are of this process' id.
        drop(unsafe { std::ptr::read(&raw const *self.environment) });
    }
}

impl Shared<'_> {
    /// Where the map is, how large, and how many pages are in use.
    pub(crate) fn info(&self) -> EnvInfo {
        self.map.environment.info()
    }

    /// Size of a page, bytes.
    pub(crate) fn page_bytes(&self) -> u64 {
        self.map
            .environment
            .unnamed_database_stat()
            .page_size
            .into()
    }

    /// Frees the reader slots of processes that are no more.
    pub(crate) fn clear_stale_readers(&self) -> heed::Result<usize> {
        self.map.environment.clear_stale_readers()
    }

    /// Makes all that was committed survive a crash of the machine.
    pub(crate) fn sync(&self) -> heed::Result<()> {
        self.map.environment.force_sync()
    }

    /// Where in `file`, the data file, a value of more than a page lies. It has to be of a transaction that is still open.
    ///
    /// `None` for a value that cannot lie there, as a damaged tree may say. Nothing of the value itself is touched.
    pub(crate) fn place(&self, value: &[u8], file: &File) -> Option<u64> {
        let address = value.as_ptr().addr();
        let start = match self.map.start.load(Ordering::Relaxed) {
            0 => {
                let start = learn_start(address, self.page_bytes(), file)?;
                self.map.start.store(start, Ordering::Relaxed);
                start
            }
            start => start,
        };
        let offset = address.checked_sub(start)?;
        let end = offset.checked_add(value.len())?;
        (end <= self.map.environment.info().map_size).then_some(offset as u64)
    }
}

/// Finds the start of the map from the address of a value of more than a page.
///
/// Such a value has pages of its own, and before it, at the start of its first page, the header with the page's number.
#[allow(unsafe_code, reason = "the header lies before the value")]
fn learn_start(value: usize, page_bytes: u64, file: &File) -> Option<usize> {
    let page = value
        .checked_sub(PAGE_HEADER_BYTES)
        .filter(|page| page.is_multiple_of(SYSTEM_PAGE_BYTES))?;
    let header = std::ptr::with_exposed_provenance::<[u8; PAGE_HEADER_BYTES]>(page);
    // SAFETY: LMDB found the value in a page of its map, which is open as long as the caller's transaction; the header is
    // at the start of the system's page that the value starts in, so it is mapped where the value is.
    let header = unsafe { header.read() };
    let number = u64::from_ne_bytes(header[..8].try_into().expect("8 bytes"));
    let offset = number.checked_mul(page_bytes)?;
    // The file has the same header at that place, unless the tree is damaged and this was none.
    let mut same = [0; PAGE_HEADER_BYTES];
    file.read_exact_at(&mut same, offset).ok()?;
    let start = page.checked_sub(usize::try_from(offset).ok()?)?;
    (same == header).then_some(start)
}

fn gone(why: &'static str) -> heed::Error {
    heed::Error::Io(std::io::Error::other(why))
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.close();
    }
}
