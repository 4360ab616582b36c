//! farhaul: one function opens a data set wherever it is, and one call makes a loader of it.
//!
//! Each store and codec is a Cargo feature; [`open`] finds the right one by the URI's scheme or, for a bare path, by looking.
//!
//! # Examples
//! ```no_run
//! # fn main() -> farhaul::Result<()> {
//! let data = farhaul::open("embedded:/data/flowers", &farhaul::OpenOptions::default())?;
//! let mut loader = data.loader(farhaul::Raw, farhaul::LoaderConfig::default())?;
//! for delivered in loader.start()? {
//!     println!("{} samples", delivered?.samples);
//! }
//! # Ok(())
//! # }
//! ```

mod anchor;
mod backend;
pub mod bench;
#[cfg(feature = "cli")]
pub mod cli;
mod dataset;
mod destination;
mod distance;
#[cfg(feature = "folder")]
pub mod export;
pub mod info;
pub mod ingest;
pub mod inspect;
mod locate;
mod options;
pub mod parse;
pub mod pixels;
mod registry;
mod runtime;
mod scheme;
mod store_source;
mod sweep;
pub mod task;
pub mod verify;

#[cfg(feature = "decode")]
pub use decode;
pub use loader_core;
pub use loader_core::{
    Catalog, Collate, Error, ErrorKind, FieldValue, Fields, Fingerprint, Manifest, NO_LABEL,
    NewSample, Part, Result, Row, Sample, SampleKey, SamplePath, Source, Store, StoreWriter,
    Summary,
    collate::{Failure, Filled, Raw, RawBatch, SampleSeed, Tag},
    loader::{
        Loader,
        config::{Horizon, LoaderConfig, MaxErrors, OnError, Order, Prefetch},
        epoch::{Delivered, Epoch, Step},
        plan::LastBatch,
        state::State,
        stats::{Cause, Stats, Waits},
    },
    prefetch::fixed::FixedConfig,
};

pub use self::{
    dataset::Dataset,
    destination::Destination,
    options::OpenOptions,
    registry::{create, create_at, open, open_at, open_source, open_source_at},
};
