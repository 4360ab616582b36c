//! `folder:PATH`: images and tars read where they lie.

use std::{path::Path, sync::Arc};

use backend_folder::{FolderConfig, FolderFormat, FolderStore, SourceConfig, SourceFormat, source};
use futures_util::future::BoxFuture;
use loader_core::{Result, Source, Store};

use super::{blocking::blocking, unknown_format};
use crate::{locate::Address, options::OpenOptions, registry::Backend, scheme};

/// Payload bytes that a source reads ahead: a disk is kept busy with less than the crate's default.
const READ_AHEAD_BYTES: u64 = 32 << 20;

pub(crate) const BACKEND: Backend = Backend {
    schemes: &[scheme::FOLDER],
    open,
    create: None,
};

fn open(address: Address, options: OpenOptions) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    blocking(move || {
        let store = open_in_place(&address.into_path()?, &options)?;
        Ok(Arc::new(store) as Arc<dyn Store>)
    })
}

/// The path as a store, which tells what may be a mistake in it.
pub(crate) fn open_in_place(path: &Path, options: &OpenOptions) -> Result<FolderStore> {
    let mut config = FolderConfig::default();
    config.format = match options.format.as_deref() {
        // What is only read at ingest answers so itself.
        None | Some("mds") => FolderFormat::Auto,
        Some("folder") => FolderFormat::ImageFolder,
        Some("webdataset") => FolderFormat::WebDataset,
        Some(other) => return Err(unknown_format(other)),
    };
    FolderStore::open(path, config)
}

/// The path as a source of an ingest, which reads more than the store does.
pub(crate) fn open_source(path: &Path, options: &OpenOptions) -> Result<Box<dyn Source>> {
    let format = match options.format.as_deref() {
        None => SourceFormat::Auto,
        Some("folder") => SourceFormat::Folder,
        Some("webdataset") => SourceFormat::WebDataset,
        Some("mds") => SourceFormat::Mds,
        Some(other) => return Err(unknown_format(other)),
    };
    let mut config = SourceConfig::default();
    config.read_ahead_bytes = READ_AHEAD_BYTES;
    source::open(path, format, config)
}
