//! The contracts of this crate on real folders and archives.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod archives;
mod cases;
mod damage;
mod fetching;
mod folders;
mod real_files;
mod sources;
mod support;
