//! The options of opening a folder in place, and of reading one for an ingest.

use serde::{Deserialize, Serialize};

use crate::names::KeySplit;

/// What a path holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderFormat {
    /// Told by looking, see [`crate::Layout::detect`].
    #[default]
    Auto,
    /// Image files: class folders, a flat folder, or one file.
    ImageFolder,
    /// WebDataset tars: a folder of them, one tar, or a brace pattern.
    WebDataset,
}

/// How [`crate::FolderStore::open`] lists and reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FolderConfig {
    /// What the path holds. Default: told by looking.
    pub format: FolderFormat,
    /// Where a member's path is cut into key and part name. Default: at the first dot.
    pub key_split: KeySplit,
    /// Threads that list the folder or the shards. Default: 8, since listing waits for the disk more than for the CPU.
    /// More of them open more files at once.
    pub list_threads: usize,
    /// Largest payload of a sample, bytes; a larger one is a typed error, nothing is allocated. Default: 1 GiB, at most 4 GiB.
    pub max_sample_bytes: u64,
    /// Shards kept open between reads. Default: 256; each takes one of the process's open files.
    pub open_shards: usize,
    /// Samples that one thread reads one after another. Default: 8; fewer spread a request over more threads.
    pub group_samples: usize,
}

impl Default for FolderConfig {
    fn default() -> Self {
        Self {
            format: FolderFormat::Auto,
            key_split: KeySplit::FirstDot,
            list_threads: 8,
            max_sample_bytes: 1 << 30,
            open_shards: 256,
            group_samples: 8,
        }
    }
}

/// What [`crate::source::open`] shall read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceFormat {
    /// Told by looking, see [`crate::Layout::detect`].
    #[default]
    Auto,
    /// Image files: class folders, a flat folder, or one file.
    Folder,
    /// WebDataset tars, gzip included.
    WebDataset,
    /// A set of `MosaicML` streaming, version 2.
    Mds,
}

/// How [`crate::source::open`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SourceConfig {
    /// Where a member's path is cut into key and part name. Default: at the first dot.
    pub key_split: KeySplit,
    /// Threads that list the source. Default: 8.
    pub list_threads: usize,
    /// Threads that read ahead. Default: 4.
    pub read_threads: usize,
    /// Payload bytes read ahead at most, besides the sample that is wanted next. Default: 64 MiB.
    pub read_ahead_bytes: u64,
    /// Largest payload of a sample, bytes; a larger one is a typed error, nothing is allocated. Default: 1 GiB, at most 4 GiB.
    pub max_sample_bytes: u64,
}

impl Default for SourceConfig {
    fn default() -> Self {
        Self {
            key_split: KeySplit::FirstDot,
            list_threads: 8,
            read_threads: 4,
            read_ahead_bytes: 64 << 20,
            max_sample_bytes: 1 << 30,
        }
    }
}

/// What a listing needs to know of either.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListOptions {
    pub(crate) split: KeySplit,
    pub(crate) threads: usize,
    pub(crate) max_sample_bytes: u32,
    /// True where rows are read in place, so that gzip and sparse members are refused.
    pub(crate) in_place: bool,
}

impl FolderConfig {
    pub(crate) fn list_options(&self) -> ListOptions {
        options(
            self.key_split,
            self.list_threads,
            self.max_sample_bytes,
            true,
        )
    }
}

impl SourceConfig {
    pub(crate) fn list_options(&self) -> ListOptions {
        options(
            self.key_split,
            self.list_threads,
            self.max_sample_bytes,
            false,
        )
    }
}

fn options(split: KeySplit, threads: usize, max_sample_bytes: u64, in_place: bool) -> ListOptions {
    let max_sample_bytes = u32::try_from(max_sample_bytes).unwrap_or(u32::MAX);
    ListOptions {
        split,
        threads: threads.clamp(1, 256),
        max_sample_bytes,
        in_place,
    }
}
