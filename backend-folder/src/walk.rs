//! A parallel walk: every picture and every archive below a folder, with size and time of change.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::{self, DirEntry, Metadata},
    io,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use loader_core::{Result, identity::display_bytes};

use crate::{failure, names, paths::PathTable};

/// Names of one folder that one thread looks at in one go.
const CHUNK: usize = 1024;

/// What tells a folder that is an embedded store.
const STORE_FILE: &str = "data.mdb";

/// Files as they were found, in flat buffers.
#[derive(Debug, Default)]
pub(crate) struct FileBatch {
    pub(crate) paths: PathTable,
    pub(crate) sizes: Vec<u64>,
    pub(crate) modified: Vec<i64>,
}

impl FileBatch {
    fn push(&mut self, folder: &[u8], name: &[u8], size: u64, modified: i64) {
        let slash: &[u8] = if folder.is_empty() { b"" } else { b"/" };
        self.paths.push(&[folder, slash, name]);
        self.sizes.push(size);
        self.modified.push(modified);
    }
}

/// A link with the name of a picture that leads to none.
#[derive(Debug)]
pub(crate) struct BrokenLink {
    pub(crate) path: Vec<u8>,
    pub(crate) target: Vec<u8>,
    /// True where the target may be there, but not for this user.
    pub(crate) is_denied: bool,
}

/// Everything below a folder.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) images: Vec<FileBatch>,
    pub(crate) tars: Vec<FileBatch>,
    pub(crate) broken: Vec<BrokenLink>,
    /// Names of the folders at the top; hidden and junk ones and embedded stores are left out.
    pub(crate) top_folders: Vec<Vec<u8>>,
    /// Everything met that is no folder, and every folder not looked into.
    pub(crate) things: u64,
    /// Loops of links, by path.
    pub(crate) loops: Vec<String>,
}

/// Walks everything below `root` on so many threads; links are followed, and a link to a folder that it lies in ends there.
///
/// # Errors
/// The first folder that cannot be read; [`loader_core::ErrorKind::Io`] where no thread can be started.
pub(crate) fn walk(root: &Path, threads: usize) -> Result<Found> {
    let queue = Queue::new(Task::Folder {
        path: Vec::new(),
        above: None,
    });
    let walker = Walker {
        root,
        queue: &queue,
    };
    let founds = thread::scope(|scope| {
        let mut workers = Vec::new();
        for _ in 0..threads.max(1) {
            match thread::Builder::new().spawn_scoped(scope, || walker.work()) {
                Ok(worker) => workers.push(worker),
                Err(error) if workers.is_empty() => return Err(failure::no_thread(error)),
                // Those that the system gave do all of it.
                Err(_) => break,
            }
        }
        let founds = workers
            .into_iter()
            .map(|worker| worker.join().expect("a walking thread does not panic"));
        Ok(founds.collect::<Vec<_>>())
    })?;
    if let Some(error) = queue.state().error.take() {
        return Err(error);
    }
    Ok(founds
        .into_iter()
        .fold(Found::default(), |mut all, mut found| {
            all.images.append(&mut found.images);
            all.tars.append(&mut found.tars);
            all.broken.append(&mut found.broken);
            all.top_folders.append(&mut found.top_folders);
            all.loops.append(&mut found.loops);
            all.things += found.things;
            all
        }))
}

enum Task {
    Folder {
        path: Vec<u8>,
        above: Option<Arc<Above>>,
    },
    Names {
        folder: Arc<Vec<u8>>,
        above: Arc<Above>,
        names: Vec<OsString>,
    },
}

/// A folder and those that it was reached through.
struct Above {
    device: u64,
    inode: u64,
    parent: Option<Arc<Above>>,
}

impl Above {
    fn contains(&self, device: u64, inode: u64) -> bool {
        let mut at = Some(self);
        while let Some(folder) = at {
            if (folder.device, folder.inode) == (device, inode) {
                return true;
            }
            at = folder.parent.as_deref();
        }
        false
    }
}

struct Walker<'a> {
    root: &'a Path,
    queue: &'a Queue,
}

impl Walker<'_> {
    fn work(&self) -> Found {
        let mut found = Found::default();
        while let Some(task) = self.queue.next() {
            let outcome = match task {
                Task::Folder { path, above } => self.folder(path, above, &mut found),
                Task::Names {
                    folder,
                    above,
                    names,
                } => self.names(&folder, &above, names, &mut found),
            };
            self.queue.done(outcome.err());
        }
        found
    }

    fn folder(&self, path: Vec<u8>, above: Option<Arc<Above>>, found: &mut Found) -> Result<()> {
        let full = self.full(&path);
        let failed = |error| failure::listing("cannot list", &full, error);
        let metadata = fs::metadata(&full).map_err(failed)?;
        let (device, inode) = (metadata.dev(), metadata.ino());
        if above
            .as_ref()
            .is_some_and(|above| above.contains(device, inode))
        {
            found.things += 1;
            found.loops.push(display_bytes(&path));
            return Ok(());
        }
        let above = Arc::new(Above {
            device,
            inode,
            parent: above,
        });
        let folder = Arc::new(path);
        let mut names = Vec::new();
        for entry in fs::read_dir(&full).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if names::is_junk(name.as_bytes()) {
                found.things += 1;
            } else if is_folder(&entry) {
                self.descend(&folder, &above, name.as_bytes(), found);
            } else {
                names.push(name);
                if names.len() == CHUNK {
                    let names = std::mem::take(&mut names);
                    self.queue.push(Task::Names {
                        folder: Arc::clone(&folder),
                        above: Arc::clone(&above),
                        names,
                    });
                }
            }
        }
        self.names(&folder, &above, names, found)
    }

    fn descend(&self, folder: &[u8], above: &Arc<Above>, name: &[u8], found: &mut Found) {
        let path = below(folder, name);
        // Made of these very images, most often: a class more would give all others new numbers.
        if self.full(&path).join(STORE_FILE).is_file() {
            found.things += 1;
            return;
        }
        if folder.is_empty() {
            found.top_folders.push(name.to_vec());
        }
        self.queue.push(Task::Folder {
            path,
            above: Some(Arc::clone(above)),
        });
    }

    fn names(
        &self,
        folder: &[u8],
        above: &Arc<Above>,
        mut names: Vec<OsString>,
        found: &mut Found,
    ) -> Result<()> {
        names.sort_unstable();
        let full = self.full(folder);
        let (mut images, mut tars) = (FileBatch::default(), FileBatch::default());
        for name in names {
            let bytes = name.as_bytes();
            let path = full.join(&name);
            let is_image = names::image_extension(bytes).is_some();
            let is_tar = !is_image && names::shard_stem(bytes).is_some();
            // Only what may be a sample, or a link to a folder, is worth a question to the disk.
            let metadata = if is_image || is_tar {
                fs::metadata(&path)
            } else {
                link_target(&path)
            };
            match metadata {
                Ok(metadata) if metadata.is_dir() => {
                    self.descend(folder, above, bytes, found);
                    continue;
                }
                Ok(metadata) if metadata.is_file() && (is_image || is_tar) => {
                    let batch = if is_image { &mut images } else { &mut tars };
                    batch.push(
                        folder,
                        bytes,
                        metadata.len(),
                        failure::nanoseconds(&metadata),
                    );
                }
                Ok(_) => {}
                Err(error) => {
                    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
                    match fs::read_link(&path) {
                        Ok(target) if failure::leads_nowhere(&error) || is_denied => {
                            if is_image {
                                found.broken.push(BrokenLink {
                                    path: below(folder, bytes),
                                    target: target.into_os_string().into_vec(),
                                    is_denied,
                                });
                            }
                        }
                        // Deleted since the folder was listed: it was never there.
                        Err(_) if failure::leads_nowhere(&error) => continue,
                        _ => return Err(failure::listing("cannot look at", &path, error)),
                    }
                }
            }
            found.things += 1;
        }
        for (batch, batches) in [(images, &mut found.images), (tars, &mut found.tars)] {
            if batch.paths.len() > 0 {
                batches.push(batch);
            }
        }
        Ok(())
    }

    fn full(&self, relative: &[u8]) -> PathBuf {
        if relative.is_empty() {
            self.root.to_owned()
        } else {
            self.root.join(OsStr::from_bytes(relative))
        }
    }
}

/// The path of a name in a folder, relative as the folder's.
fn below(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() {
        name.to_vec()
    } else {
        [folder, b"/", name].concat()
    }
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// What a link leads to; anything that is no link counts as itself.
fn link_target(path: &Path) -> io::Result<Metadata> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        fs::metadata(path)
    } else {
        Ok(metadata)
    }
}

/// Work for the walking threads; the walk is over when nothing waits and nobody works.
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

struct QueueState {
    waiting: VecDeque<Task>,
    working: usize,
    error: Option<loader_core::Error>,
}

impl Queue {
    fn new(first: Task) -> Self {
        let state = QueueState {
            waiting: VecDeque::from([first]),
            working: 0,
            error: None,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, task: Task) {
        self.state().waiting.push_back(task);
        self.changed.notify_one();
    }

    fn next(&self) -> Option<Task> {
        let mut state = self.state();
        loop {
            if state.error.is_some() {
                return None;
            }
            // The newest first: a deep tree then keeps the queue short.
            if let Some(task) = state.waiting.pop_back() {
                state.working += 1;
                return Some(task);
            }
            if state.working == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, error: Option<loader_core::Error>) {
        let mut state = self.state();
        state.working -= 1;
        if state.error.is_none() {
            state.error = error;
        }
        if state.error.is_some() || (state.working == 0 && state.waiting.is_empty()) {
            self.changed.notify_all();
        }
    }
}
