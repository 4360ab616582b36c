//! What an ingest reads: samples one after another, in bounded memory.

use std::fmt::Debug;

use crate::{error::Result, sample::NewSample};

/// A one-pass reader of what a user has: a folder, a set of tars, another store.
///
/// Blocking by design: an ingest runs it on a thread of its own.
///
/// # Contract
/// - A failed sample is an `Err` that names it ([`crate::Error::is_of_one_sample`]); the samples after it still come. A file
///   that may not be read is one of them: `PermissionDenied` with its path. Any other `Err` ends the source.
/// - Memory is bounded by the largest sample and a fixed number of samples read ahead.
pub trait Source: Debug + Send {
    /// Class names by label as this source numbers them: code-point order, empty classes included.
    fn classes(&self) -> Vec<String>;
    /// Samples that will come, where that is known before.
    fn expected_samples(&self) -> Option<u64>;
    /// Things met that are no samples (hidden files, junk, side files); final once the source has ended.
    fn left_out(&self) -> u64;
    /// What may be a mistake though it can be read, a line each: class names that look alike (one letter in two Unicode forms),
    /// links that lead in a circle. Known since the source was opened; empty where there is nothing to say.
    fn warnings(&self) -> Vec<String>;
    /// The next sample; `None` at the end.
    fn next_sample(&mut self) -> Option<Result<NewSample>>;
}
