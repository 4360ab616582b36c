//! Folders of images and WebDataset tars, read where they lie; and every local source that an ingest reads.
//!
//! [`FolderStore`] is a [`loader_core::Store`] over image files or tars. [`source::open`] reads the same, and what can only be
//! read in one go: gzip shards, sparse members, MDS sets. [`layout_on_disk`] says where the parts of a row go when a data set
//! is written out again.

mod class_names;
mod config;
mod export;
mod failure;
mod fetch;
mod files;
mod layout;
mod mds;
mod names;
mod open_files;
mod paths;
mod pattern;
mod read;
mod rows;
pub mod source;
mod store;
mod tar;
mod tars;
mod walk;

pub use config::{FolderConfig, FolderFormat, SourceConfig, SourceFormat};
pub use export::layout_on_disk;
pub use layout::Layout;
pub use names::KeySplit;
pub use store::FolderStore;

/// The example of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
