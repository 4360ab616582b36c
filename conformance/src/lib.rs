//! The contracts of farhaul as tests, and the fakes to run them on.
//!
//! A crate that implements a contract runs all of its clauses with one line in a file of its `tests` folder:
//!
//! ```
//! conformance::store_suite!(|set: conformance::samples::DataSet| async move {
//!     loader_core::memory::MemoryStore::from_samples(set.samples, set.classes).unwrap()
//! });
//! # fn main() {}
//! ```
//!
//! Each clause becomes a test function named as the sentence that it proves. [`samples`] makes the data, [`fault`],
//! [`lanes`] and [`credit`] are stores and a transport that misbehave on cue, [`sim`] drives a prefetch policy over a link
//! that exists only in numbers, and [`cases`] shares the odd image files with the tests of other crates.
#![allow(
    clippy::missing_panics_doc,
    reason = "a clause panics where it is broken: that is how a test fails"
)]

pub mod cases;
pub mod credit;
pub mod fault;
pub mod harness;
pub mod lanes;
pub mod random;
pub mod request;
pub mod samples;
pub mod sim;
pub mod store_suite;
pub mod transport_suite;
pub mod writer_suite;
