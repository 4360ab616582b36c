//! The columnar snapshot of a data set.
//!
//! An [`Index`] holds one row a sample, sorted by path bytes, in Arrow buffers: path, key, size, checksum, label, parts and
//! any further fields. Its lasting form is an Arrow IPC file of one record batch, which is memory-mapped and shared by all
//! processes that read it; opening checks everything that a later access relies on, so a cut or hostile file is a typed
//! error and never a panic. [`IndexBuilder`] makes one from rows in any order.

mod builder;
mod columns;
mod fields;
mod header;
mod map;
mod read;
mod snapshot;
mod write;

pub use builder::{IndexBuilder, from_catalog, from_manifest};
pub use header::{MAGIC, VERSION};
pub use snapshot::Index;
