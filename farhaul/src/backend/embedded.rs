//! `embedded:PATH`: LMDB in a folder.

use std::{path::Path, sync::Arc};

use backend_embedded::{EmbeddedConfig, EmbeddedStore, EmbeddedWriter};
use futures_util::future::BoxFuture;
use loader_core::{Error, ErrorKind, Result, Store, StoreWriter};

use super::{blocking::blocking, is_embedded};
use crate::{locate::Address, options::OpenOptions, registry::Backend, scheme};

pub(crate) const BACKEND: Backend = Backend {
    schemes: &[scheme::EMBEDDED],
    open,
    create: Some(create),
};

fn open(address: Address, _: OpenOptions) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    blocking(move || {
        let store = EmbeddedStore::open(address.into_path()?, EmbeddedConfig::default())?;
        Ok(Arc::new(store) as Arc<dyn Store>)
    })
}

fn create(address: Address, _: OpenOptions) -> BoxFuture<'static, Result<Arc<dyn StoreWriter>>> {
    blocking(move || {
        let path = address.into_path()?;
        refuse_other_contents(&path)?;
        let writer = EmbeddedWriter::open_or_create(path, EmbeddedConfig::default())?;
        Ok(Arc::new(writer) as Arc<dyn StoreWriter>)
    })
}

/// A store among the files of something else would be a nuisance: most often source and target were swapped.
fn refuse_other_contents(path: &Path) -> Result<()> {
    let wrong = |message: &'static str| {
        Err(Error::new(ErrorKind::Usage, message)
            .in_store(Address::Path(path.to_owned()).uri(scheme::EMBEDDED.name))
            .hint("name a folder that is not there yet, an empty one, or an embedded store"))
    };
    if path.is_file() {
        return wrong("a file is there where the store shall be");
    }
    let Ok(mut entries) = path.read_dir() else {
        return Ok(());
    };
    // An ingest that was killed while it made the store leaves only files of its own.
    let is_foreign = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        !(name.ends_with(".mdb")
            || name.ends_with(".lock")
            || name.starts_with("index-")
            || name.starts_with('.'))
    };
    if !is_embedded(path) && entries.any(|entry| entry.as_ref().is_ok_and(is_foreign)) {
        return wrong("the folder holds other files and no store");
    }
    Ok(())
}
