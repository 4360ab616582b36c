//! What can be typed.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use loader_core::{
    Error,
    loader::config::{Order, Prefetch},
};

use crate::{ingest::OnBadSample, parse, pixels::Orientation};

/// Feeds training loops with samples that live far away.
#[derive(Debug, Parser)]
#[command(
    name = "farhaul",
    version,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(super) struct Arguments {
    /// Print one JSON object on stdout (for inspect: a line a sample)
    #[arg(long, global = true)]
    pub(super) json: bool,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write images, tars or another data set into a store; again after a crash to go on
    Ingest(Ingest),
    /// Say what a data set is
    Info(Info),
    /// Look at samples one after another
    Inspect(Inspect),
    /// Compare every payload with its checksum
    Verify(Verify),
    /// Write a data set out as the files that it came from
    #[cfg(feature = "folder")]
    Export(Export),
    /// Measure how fast a loader reads a data set
    Bench(Bench),
    /// Ingest photographs, verify them and read one epoch
    Demo(Demo),
}

#[derive(Debug, Args)]
pub(super) struct Ingest {
    /// A folder of images, tars (a folder of them, one, or a brace pattern), an MDS set, or any store
    #[arg(value_name = "SRC")]
    pub(super) source: OsString,
    /// The store: a path (embedded) or a URI
    #[arg(long, value_name = "URI")]
    pub(super) to: OsString,
    /// What SRC holds, where looking at it does not tell: folder, webdataset, mds, embedded
    #[arg(long, value_name = "F")]
    pub(super) format: Option<String>,
    /// What a bad sample does
    #[arg(long, value_name = "P", value_enum, default_value_t = OnError::Fail)]
    pub(super) on_error: OnError,
}

#[derive(Debug, Args)]
pub(super) struct Info {
    #[command(flatten)]
    pub(super) data: Data,
}

#[derive(Debug, Args)]
pub(super) struct Inspect {
    #[command(flatten)]
    pub(super) data: Data,
    /// Look at this sample alone; may be repeated
    #[arg(long = "key", value_name = "PATH")]
    pub(super) keys: Vec<OsString>,
    /// Decode each image, for its size and mean colour
    #[arg(long)]
    pub(super) decode: bool,
    /// Whether the orientation that an image carries turns it
    #[arg(long, value_enum, default_value_t = Turn::Ignore)]
    pub(super) orientation: Turn,
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    #[command(flatten)]
    pub(super) data: Data,
    /// Decode each image too
    #[arg(long)]
    pub(super) decode: bool,
}

#[cfg(feature = "folder")]
#[derive(Debug, Args)]
pub(super) struct Export {
    #[command(flatten)]
    pub(super) data: Data,
    /// The folder to write to
    #[arg(long, value_name = "DIR")]
    pub(super) to: PathBuf,
    /// Replace files that have other bytes
    #[arg(long)]
    pub(super) overwrite: bool,
}

#[derive(Debug, Args)]
pub(super) struct Bench {
    #[command(flatten)]
    pub(super) data: Data,
    /// Samples in a batch
    #[arg(long, default_value_t = 256)]
    pub(super) batch: u64,
    /// Epochs to read
    #[arg(long, default_value_t = 1)]
    pub(super) epochs: u64,
    /// Decode to N×N pixels (random resized crop and flip) instead of reading raw bytes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub(super) decode: Option<u32>,
    /// How samples are packed into batches
    #[arg(long, value_enum, default_value_t = Packing::Arrival)]
    pub(super) order: Packing,
    /// How much is fetched ahead: fixed:N batches, or fixed:N:K for one more with every K taken
    #[arg(long, value_name = "POLICY", value_parser = prefetch)]
    pub(super) prefetch: Option<Prefetch>,
    /// Bytes that may be held at once
    #[arg(long, value_name = "SIZE", default_value = "512MB", value_parser = size)]
    pub(super) memory: u64,
    /// Seed of the order
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// Time that the consumer spends on each batch, ms
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    pub(super) think_ms: Duration,
}

#[derive(Debug, Args)]
pub(super) struct Demo {
    /// A folder of photographs in class folders
    #[arg(long, value_name = "DIR")]
    pub(super) photos: PathBuf,
    /// Where the store is made
    #[arg(long, value_name = "DIR")]
    pub(super) out: PathBuf,
}

/// The data set that a command reads.
#[derive(Debug, Args)]
pub(super) struct Data {
    /// A path, or a URI such as embedded:PATH
    #[arg(value_name = "URI")]
    pub(super) uri: OsString,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OnError {
    /// It ends the ingest and nothing is published
    Fail,
    /// It is counted and left out
    Skip,
}

impl From<OnError> for OnBadSample {
    fn from(policy: OnError) -> Self {
        match policy {
            OnError::Fail => Self::Fail,
            OnError::Skip => Self::Skip,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Turn {
    /// Turn images as their tag says; sizes follow
    Apply,
    /// Leave them as they are stored
    Ignore,
}

impl From<Turn> for Orientation {
    fn from(turn: Turn) -> Self {
        match turn {
            Turn::Apply => Self::Apply,
            Turn::Ignore => Self::Ignore,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Packing {
    /// As samples arrive
    Arrival,
    /// Batches have fixed contents in any order
    Window,
    /// Everything follows from the seed
    Strict,
}

impl From<Packing> for Order {
    fn from(packing: Packing) -> Self {
        match packing {
            Packing::Arrival => Self::Arrival,
            Packing::Window => Self::Window,
            Packing::Strict => Self::Strict,
        }
    }
}

fn size(text: &str) -> Result<u64, String> {
    parse::size(text).map_err(|error| in_words(&error))
}

fn prefetch(text: &str) -> Result<Prefetch, String> {
    parse::prefetch(text).map_err(|error| in_words(&error))
}

/// What is wrong and what to do, in the one text that an argument's error has.
fn in_words(error: &Error) -> String {
    let advice = error
        .advice()
        .map_or(String::new(), |hint| format!("; {hint}"));
    format!("{}{advice}", error.message())
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .map(Duration::from_millis)
        .map_err(|_| format!("{text:?} is no whole number of milliseconds"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }
}
