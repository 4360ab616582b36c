#![doc = include_str!("../README.md")]

mod config;
mod environment;
mod error;
mod fetch;
mod folder;
mod lineage;
mod manifest;
mod map;
mod meta;
mod queue;
mod store;
mod writer;

pub use config::EmbeddedConfig;
pub use manifest::{MAGIC, VERSION};
pub use store::{EmbeddedStore, is_store};
pub use writer::EmbeddedWriter;

/// The scheme of this store's URIs.
pub const SCHEME: &str = "embedded";
