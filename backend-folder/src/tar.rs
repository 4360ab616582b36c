//! Reading tar archives: headers, names, sparse maps and members, with limits before any allocation.
//!
//! `header`, `pax` and `sparse` are pure; `members` walks an archive through the two questions of [`Archive`].

pub(crate) mod archive;
pub(crate) mod header;
pub(crate) mod members;
pub(crate) mod pax;
pub(crate) mod sparse;

pub(crate) use self::{
    archive::{Archive, GzipArchive, PlainArchive, is_gzip},
    members::{Content, Cut, Members},
};
