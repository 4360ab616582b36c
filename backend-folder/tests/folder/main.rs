//! The contracts of this crate on real folders and archives.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod cases;
mod real_files;
mod support;
