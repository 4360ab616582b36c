//! MDS sets (`MosaicML` streaming, version 2), read at ingest: an index, and shards of rows with typed columns.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use loader_core::{Error, ErrorKind, NewSample, Result, identity::display_bytes};
use serde::Deserialize;

use self::column::Columns;
use crate::{failure, open_files::OpenFiles, read, source::Jobs};

mod column;
mod encoding;

/// Largest index that is read, bytes: a shard takes under 1000 of them.
const LARGEST_INDEX: u64 = 512 << 20;

/// Largest description of columns that is read, bytes.
const LARGEST_HEADER: u64 = 1 << 20;

/// Shards kept open.
const OPEN_SHARDS: usize = 16;

/// The samples of a set, numbered over its shards; the number as text is a sample's path.
#[derive(Debug)]
pub(crate) struct MdsSet {
    shards: Vec<MdsShard>,
    samples: usize,
    open: OpenFiles,
    max_sample_bytes: u64,
}

#[derive(Debug)]
struct MdsShard {
    path: PathBuf,
    nbytes: u64,
    modified: i64,
    /// The set's number of its first sample, and how many it has.
    first: usize,
    samples: usize,
    /// Where the samples begin: after the offsets and the description of the columns.
    start: u64,
    columns: Columns,
}

#[derive(Deserialize)]
struct Index {
    version: u64,
    shards: Vec<IndexShard>,
}

#[derive(Deserialize)]
struct IndexShard {
    #[serde(default)]
    format: String,
    #[serde(default)]
    version: u64,
    column_names: Vec<String>,
    column_encodings: Vec<String>,
    column_sizes: Vec<Option<u32>>,
    samples: u32,
    raw_data: IndexFile,
    zip_data: Option<IndexFile>,
}

#[derive(Deserialize)]
struct IndexFile {
    basename: String,
}

/// What a shard says of its own columns.
#[derive(Deserialize)]
struct Description {
    column_names: Vec<String>,
}

impl MdsSet {
    /// Reads the index and looks at every shard.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] naming a shard that is not there; [`ErrorKind::Unsupported`] for compression and for columns
    /// that are pickled; [`ErrorKind::Malformed`] or [`ErrorKind::Truncated`] naming a shard that is not what the index says.
    pub(crate) fn open(folder: &Path, max_sample_bytes: u64) -> Result<Self> {
        let path = folder.join("index.json");
        let failed = |error| failure::listing("cannot read", &path, error);
        let nbytes = fs::metadata(&path).map_err(failed)?.len();
        if nbytes > LARGEST_INDEX {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("{} has {nbytes} bytes", failure::shown(&path)),
            ));
        }
        let wrong = |message: String| {
            Error::new(
                ErrorKind::Malformed,
                format!("{}: {message}", failure::shown(&path)),
            )
        };
        let index: Index = serde_json::from_slice(&fs::read(&path).map_err(failed)?)
            .map_err(|error| wrong(error.to_string()))?;
        if index.version != 2 {
            let message = format!(
                "{} has version {}, and version 2 is read",
                failure::shown(&path),
                index.version
            );
            return Err(Error::new(ErrorKind::Version, message));
        }
        let mut set = Self {
            shards: Vec::new(),
            samples: 0,
            open: OpenFiles::new(OPEN_SHARDS),
            max_sample_bytes,
        };
        for shard in &index.shards {
            let shard = MdsShard::open(folder, shard, set.samples)?;
            set.samples += shard.samples;
            set.shards.push(shard);
        }
        Ok(set)
    }

    fn shard(&self, job: usize) -> usize {
        // Shards without samples share their first number with the next one, which is the last that begins there.
        self.shards.partition_point(|shard| shard.first <= job) - 1
    }
}

impl Jobs for MdsSet {
    fn len(&self) -> usize {
        self.samples
    }

    fn nbytes(&self, job: usize) -> u64 {
        let shard = &self.shards[self.shard(job)];
        shard.nbytes / shard.samples.max(1) as u64
    }

    fn read(&self, job: usize) -> Result<NewSample> {
        let number = self.shard(job);
        let shard = &self.shards[number];
        let read = || {
            let file = self
                .open
                .file(number, &shard.path, shard.nbytes, shard.modified)?;
            shard.read(job, self.max_sample_bytes, &file)
        };
        read().map_err(|error| error.at(job.to_string()))
    }
}

impl MdsShard {
    fn open(folder: &Path, index: &IndexShard, first: usize) -> Result<Self> {
        let name = &index.raw_data.basename;
        let path = folder.join(name);
        let unsupported = |message: String| Error::new(ErrorKind::Unsupported, message);
        if name.is_empty()
            || name.split('/').any(|component| component == "..")
            || name.starts_with('/')
        {
            let message = format!(
                "the index names a shard outside its folder: {}",
                display_bytes(name.as_bytes())
            );
            return Err(Error::new(ErrorKind::Malformed, message));
        }
        if index.format != "mds" || index.version != 2 {
            return Err(unsupported(format!(
                "shard {name} has format {} {}, and mds 2 is read",
                index.format, index.version
            )));
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(zip) = index
                    .zip_data
                    .as_ref()
                    .filter(|zip| folder.join(&zip.basename).exists())
                {
                    let message = format!("shard {} is compressed", zip.basename);
                    return Err(
                        unsupported(message).hint("unpack it beside itself first: zstd -d SHARD")
                    );
                }
                let message = format!("the index names shard {name}, which is not there");
                return Err(Error::new(ErrorKind::NotFound, message).caused_by(error));
            }
            Err(error) => return Err(failure::listing("cannot open", &path, error)),
        };
        let metadata = file
            .metadata()
            .map_err(|error| failure::listing("cannot look at", &path, error))?;
        if !metadata.is_file() {
            return Err(Error::new(
                ErrorKind::Malformed,
                format!("shard {name} is no file"),
            ));
        }
        let columns = Columns::new(
            name,
            &index.column_names,
            &index.column_encodings,
            &index.column_sizes,
        )?;
        let mut shard = Self {
            path,
            nbytes: metadata.len(),
            modified: failure::nanoseconds(&metadata),
            first,
            samples: index.samples as usize,
            start: 0,
            columns,
        };
        shard.start = shard.check_header(index, &file)?;
        Ok(shard)
    }

    /// Where the samples begin.
    fn check_header(&self, index: &IndexShard, file: &File) -> Result<u64> {
        let shown = failure::shown(&self.path);
        let wrong =
            |message: String| Error::new(ErrorKind::Malformed, format!("{shown} {message}"));
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::new(
                ErrorKind::Truncated,
                format!("{shown} ends inside its header"),
            ),
            _ => failure::listing("cannot read", &self.path, error),
        };
        let mut count = [0; 4];
        file.read_exact_at(&mut count, 0).map_err(failed)?;
        let count = u32::from_le_bytes(count);
        if count != index.samples {
            return Err(wrong(format!(
                "says that it has {count} samples, the index says {}",
                index.samples
            )));
        }
        let table = 4 + 4 * (u64::from(count) + 1);
        if table > self.nbytes {
            return Err(Error::new(
                ErrorKind::Truncated,
                format!("{shown} ends inside its table of {count} samples"),
            ));
        }
        let mut start = [0; 4];
        file.read_exact_at(&mut start, 4).map_err(failed)?;
        let start = u64::from(u32::from_le_bytes(start));
        let description = start
            .checked_sub(table)
            .filter(|nbytes| *nbytes <= LARGEST_HEADER && start <= self.nbytes);
        let description = description.ok_or_else(|| {
            wrong(format!(
                "has its first sample at byte {start}, which is no place for it"
            ))
        })?;
        let mut json = vec![0; usize::try_from(description).unwrap_or(0)];
        file.read_exact_at(&mut json, table).map_err(failed)?;
        let description: Description = serde_json::from_slice(&json).map_err(|error| {
            wrong("does not describe its columns before its first sample".to_owned())
                .caused_by(error)
        })?;
        if description.column_names != index.column_names {
            return Err(wrong("has other columns than the index says".to_owned()));
        }
        Ok(start)
    }

    fn read(&self, job: usize, limit: u64, file: &File) -> Result<NewSample> {
        let shown = failure::shown(&self.path);
        let failed = |error| failure::reading(&self.path, error);
        let mut pair = [0; 8];
        let number = (job - self.first) as u64;
        file.read_exact_at(&mut pair, 4 + 4 * number)
            .map_err(failed)?;
        let [first, second] = [&pair[..4], &pair[4..]]
            .map(|bytes| u64::from(u32::from_le_bytes(bytes.try_into().expect("4 bytes"))));
        if first < self.start || second < first {
            let message =
                format!("{shown} says that the sample lies from byte {first} to {second}");
            return Err(Error::new(ErrorKind::Malformed, message));
        }
        if second > self.nbytes {
            let message = format!(
                "{shown} ends at byte {}, the sample at {second}",
                self.nbytes
            );
            return Err(Error::new(ErrorKind::Truncated, message));
        }
        let mut bytes = read::buffer(second - first, limit)?;
        let nbytes = usize::try_from(second - first).unwrap_or(usize::MAX);
        read::append(file, first, nbytes, &mut bytes).map_err(failed)?;
        read::check_unchanged(file, &self.path, self.nbytes, self.modified)?;
        self.columns
            .sample(job.to_string().into(), &Bytes::from(bytes))
    }
}
