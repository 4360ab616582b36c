//! Writing an embedded store.

use std::{
    collections::HashSet,
    fmt,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use loader_core::{
    Capability, Error, ErrorKind, Manifest, NewSample, Put, Result, Row, StoreWriter, Summary,
};

use crate::{
    config::EmbeddedConfig,
    environment::Environment,
    error::from_io,
    fetch::blocking,
    folder,
    manifest::{self, FORMAT_KEY, MANIFEST_KEY, Start},
    queue::{Group, Queue},
    store::{capability, name, read_record},
};

/// Payloads that a group of puts is best made of.
const GROUP_SAMPLES: usize = 64;
/// Two pages of the smallest size: what a data file has at least.
const SMALLEST_FILE_BYTES: u64 = 2 * 512;

/// The only writer of a store, from opening until it is dropped.
///
/// Puts are committed in groups, each synced before the next: a process that is killed, or a machine that
/// crashes, loses the last group at most, and never anything that was published. Cheap to clone; clones are one writer.
#[derive(Clone)]
pub struct EmbeddedWriter(Arc<Shared>);

struct Shared {
    folder: PathBuf,
    config: EmbeddedConfig,
    environment: Arc<Environment>,
    name: String,
    queue: Queue,
    /// Held open for the lock on it.
    _lock: File,
}

impl EmbeddedWriter {
    /// Opens the store in `folder` for writing, or makes one there. Clears what a writer that was killed left behind.
    ///
    /// # Errors
    /// - [`ErrorKind::Unavailable`] where another writer has it open for longer than the configuration waits
    /// - [`ErrorKind::PermissionDenied`] where the folder cannot be written to
    /// - otherwise as [`crate::EmbeddedStore::open`]
    pub fn open_or_create(folder: impl AsRef<Path>, config: EmbeddedConfig) -> Result<Self> {
        let folder = folder.as_ref();
        let name = name(folder);
        Self::open_named(folder, config, name.clone())
            .map_err(|error| error.during("open").in_store(name))
    }

    fn open_named(folder: &Path, config: EmbeddedConfig, name: String) -> Result<Self> {
        fs::create_dir_all(folder)
            .map_err(|error| from_io("the folder of the store cannot be made", error))?;
        folder::check_file_system(folder, &config)?;
        let lock = folder::lock_for_writing(folder, config.writer_wait)?;
        forget_a_stillborn_file(folder, &lock)?;
        let environment = Environment::shared(folder, &config, true)?;
        if !environment.is_writable() {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                "the folder of the store cannot be written to",
            ));
        }
        environment.create_tables()?;
        let format = environment.write(0, config.max_file_bytes, |writing| {
            let table = writing.tables.meta;
            if let Some(json) = table.get(&writing.transaction, FORMAT_KEY)? {
                return Ok(manifest::parse::<Start>(json).map(|_| ()));
            }
            table
                .put(
                    &mut writing.transaction,
                    FORMAT_KEY,
                    &manifest::to_json(&Start::new()),
                )
                .map(Ok)
        })?;
        format?;
        let record = read_record(&environment)?;
        folder::clear_indexes(folder, record.as_ref().map(|record| record.index.as_str()))?;
        let shared = Shared {
            folder: folder.to_owned(),
            config,
            environment,
            name,
            queue: Queue::default(),
            _lock: lock,
        };
        Ok(Self(Arc::new(shared)))
    }
}

/// A machine that crashed while the store was being made may leave a data file without its first pages.
fn forget_a_stillborn_file(folder: &Path, file: &File) -> Result<()> {
    let failed = |error| from_io("data.mdb cannot be examined", error);
    let length = file.metadata().map_err(failed)?.len();
    if length > 0 && length < SMALLEST_FILE_BYTES && !folder::has_index(folder) {
        file.set_len(0).map_err(failed)?;
    }
    Ok(())
}

impl Shared {
    fn environment(&self) -> Result<&Environment> {
        if self.environment.process() == std::process::id() {
            return Ok(&self.environment);
        }
        let error = Error::new(
            ErrorKind::Usage,
            "this writer belongs to the process that this one was forked from",
        );
        Err(error.hint("open the store for writing after the fork"))
    }

    fn put(&self, samples: Vec<NewSample>) -> Result<Vec<Put>> {
        let environment = self.environment()?;
        let limit = self.config.payload_limit();
        let group = Group::new(samples);
        let written = self.queue.run(&group, |batch| {
            write_batch(environment, batch, &self.config)
        })?;
        let put = |(row, written): (&Row, bool)| {
            if row.nbytes > limit {
                let message = format!("{} bytes where at most {limit} can be stored", row.nbytes);
                let error = Error::new(ErrorKind::TooLarge, message);
                return Put::Failed(
                    error
                        .during("put")
                        .in_store(&self.name)
                        .at(row.path.clone()),
                );
            }
            if written {
                Put::Written(row.clone())
            } else {
                Put::Present(row.clone())
            }
        };
        Ok(group.rows.iter().zip(written).map(put).collect())
    }

    fn published(&self) -> Result<Option<Manifest>> {
        let Some(record) = read_record(self.environment()?)? else {
            return Ok(None);
        };
        let index = folder::open_index(&self.folder, &record)?;
        Ok(Some(Manifest {
            classes: index.classes(),
            catalog: Arc::new(index),
        }))
    }

    fn publish(&self, manifest: &Manifest) -> Result<Summary> {
        let environment = self.environment()?;
        let index = index::from_manifest(manifest)?;
        let record = folder::write_index(&self.folder, &index)?;
        let json = manifest::to_json(&record);
        environment.write(json.len() as u64, self.config.max_file_bytes, |writing| {
            let table = writing.tables.meta;
            table.put(&mut writing.transaction, MANIFEST_KEY, &json)
        })?;
        environment.trim()?;
        environment.sync()?;
        folder::sync_folder(&self.folder)
            .map_err(|error| from_io("the folder of the store cannot be synced", error))?;
        folder::clear_indexes(&self.folder, Some(&record.index))?;
        Ok(index.summary())
    }
}

/// Writes groups in one transaction; tells of each sample whether it was written now.
fn write_batch(
    environment: &Environment,
    batch: &[Arc<Group>],
    config: &EmbeddedConfig,
) -> Result<Vec<Vec<bool>>> {
    let limit = config.payload_limit();
    let rows = || batch.iter().flat_map(|group| &group.rows);
    let bytes = rows()
        .filter(|row| row.nbytes <= limit)
        .map(|row| row.nbytes)
        .sum();
    environment.write(bytes, config.max_file_bytes, |writing| {
        let payload = writing.tables.payload;
        let mut added = HashSet::new();
        let samples = || batch.iter().flat_map(|group| &group.samples);
        let mut is_missing = |(row, sample): (&Row, &NewSample)| -> heed::Result<bool> {
            if row.nbytes > limit {
                return Ok(false);
            }
            let present = payload.get(&writing.transaction, &row.key.0)?;
            // Other bytes under the name of this content were damaged on the disk, and are mended here.
            let is_new = present.is_none_or(|present| !writing.is_same(present, &sample.payload));
            Ok(is_new && added.insert(row.key))
        };
        let pairs = rows().zip(samples());
        let missing: Vec<bool> = pairs.map(&mut is_missing).collect::<Result<_, _>>()?;
        let of_missing = rows().zip(&missing).filter(|(_, missing)| **missing);
        let (bytes, values) = of_missing.fold((0, 0), |(bytes, values), (row, _)| {
            (bytes + row.nbytes, values + 1)
        });
        if values > 0 {
            writing.make_room(bytes, values)?;
        }
        for ((row, sample), missing) in rows().zip(samples()).zip(&missing) {
            if *missing {
                payload.put(&mut writing.transaction, &row.key.0, &sample.payload)?;
            }
        }
        let mut missing = missing.into_iter();
        Ok(batch
            .iter()
            .map(|group| missing.by_ref().take(group.rows.len()).collect())
            .collect())
    })
}

#[async_trait]
impl StoreWriter for EmbeddedWriter {
    fn capability(&self) -> Capability {
        let mut capability = capability(&self.0.config);
        capability.request_samples = GROUP_SAMPLES;
        // While one group is synced, the next ones are hashed and gather for the next transaction.
        capability.requests_in_flight = 4;
        capability
    }

    async fn published(&self) -> Result<Option<Manifest>> {
        let shared = Arc::clone(&self.0);
        blocking(move || {
            shared
                .published()
                .map_err(|error| error.during("open").in_store(&shared.name))
        })
        .await
    }

    async fn put(&self, samples: Vec<NewSample>) -> Result<Vec<Put>> {
        let shared = Arc::clone(&self.0);
        blocking(move || {
            shared
                .put(samples)
                .map_err(|error| error.during("put").in_store(&shared.name))
        })
        .await
    }

    async fn publish(&self, manifest: Manifest) -> Result<Summary> {
        let shared = Arc::clone(&self.0);
        blocking(move || {
            shared
                .publish(&manifest)
                .map_err(|error| error.during("publish").in_store(&shared.name))
        })
        .await
    }
}

impl fmt::Display for EmbeddedWriter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.name)
    }
}

impl fmt::Debug for EmbeddedWriter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EmbeddedWriter")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}
