//! The contracts and the engine of farhaul.
//!
//! Three traits say how the parts meet: [`Store`] (where samples are), [`Transport`] (how frames cross the distance) and
//! [`Prefetcher`] (how much to ask for, and when). Around them stands the engine that every store shares: the plan of an
//! epoch, the reorder window, the byte budget, the ledger with its resumable state, and the [`loader`] that drives them.
//!
//! Nothing here opens a socket, knows a codec or a driver, or has heard of Python.

pub mod catalog;
pub mod collate;
pub mod error;
pub mod identity;
pub mod loader;
pub mod memory;
pub mod prefetch;
pub mod sample;
pub mod source;
pub mod store;
pub mod transport;
pub mod uri;
pub mod wrap;

pub use catalog::{Catalog, Manifest, Summary};
pub use collate::Collate;
pub use error::{Error, ErrorKind, Result};
pub use identity::{Fingerprint, SampleKey, SamplePath};
pub use prefetch::Prefetcher;
pub use sample::{FieldValue, Fields, NO_LABEL, NewSample, Part, Row, Sample};
pub use source::Source;
pub use store::{Capability, FetchRequest, Fetched, Lane, Put, Store, StoreWriter, Targets};
pub use transport::{CallOptions, Transport, TransportCapability};
