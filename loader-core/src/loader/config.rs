//! The options of a loader.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, ErrorKind, Result},
    loader::plan::{Deal, LastBatch},
    prefetch::fixed::FixedConfig,
};

/// How samples are packed into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// As they arrive: no sample holds up a batch until it is `horizon` batches late. Fastest over a distance.
    #[default]
    Arrival,
    /// What is in a batch is fixed by the seed, the order inside it is not.
    Window,
    /// Everything is fixed by the seed.
    Strict,
}

/// What a bad sample does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// It ends the epoch with its error.
    #[default]
    Fail,
    /// It is left out: that batch is shorter, or masked where the shape is fixed. The number of batches stays.
    Skip,
    /// Another sample of the same class stands in for it, chosen by the seed.
    Substitute,
}

/// How many bad samples an epoch of one rank may have under `Skip` and `Substitute`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxErrors {
    /// Any number.
    #[default]
    Unlimited,
    /// So many.
    Count(u64),
    /// This share of the rank's samples in the epoch, 0.0 to 1.0.
    Rate(f64),
}

impl MaxErrors {
    /// The largest number of failures that is still allowed among `samples`.
    pub fn allowed(self, samples: u64) -> u64 {
        match self {
            Self::Unlimited => u64::MAX,
            Self::Count(count) => count,
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a count"
            )]
            Self::Rate(rate) => (samples as f64 * rate.clamp(0.0, 1.0)).floor() as u64,
        }
    }
}

/// How far a sample may arrive after the batch that it was planned for, under [`Order::Arrival`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Horizon {
    /// Twice the prefetched batches, at least 8, and no more than 12,000 samples so that a state stays below 4 KB.
    #[default]
    Auto,
    /// So many batches.
    Batches(NonZeroU64),
    /// For ever, as the original's out-of-order mode: states may exceed 4 KB.
    Unbounded,
}

/// How much is fetched ahead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Prefetch {
    /// A fixed number of batches.
    Fixed(FixedConfig),
}

impl Default for Prefetch {
    fn default() -> Self {
        Self::Fixed(FixedConfig::default())
    }
}

/// The options of a loader. Every field has a default; none needs tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LoaderConfig {
    /// Samples in a batch of this rank. Default 256. More: fewer, larger steps and proportionally more memory.
    pub batch_samples: u64,
    /// Seed of the order and of the augmentation. Default 0. All ranks must have the same.
    pub seed: u64,
    /// Whether the order of the rows is shuffled anew each epoch. Default true; costs nothing.
    pub shuffle: bool,
    /// Ranks that share an epoch. Default 1.
    pub ranks: u64,
    /// This rank, from 0. Default 0.
    pub rank: u64,
    /// What becomes of samples that do not fill the last batch. Default `Partial`.
    pub last_batch: LastBatch,
    /// How samples are packed. Default `Arrival`; `Strict` waits for stragglers.
    pub order: Order,
    /// How late a sample may be under `Arrival`. More tolerates longer stragglers and makes states larger.
    pub horizon: Horizon,
    /// What a bad sample does. Default `Fail`.
    pub on_error: OnError,
    /// How many bad samples are tolerated. Default `Unlimited` (only `Skip` and `Substitute` get that far).
    pub max_errors: MaxErrors,
    /// Bytes that may be held at once: in flight, unordered, ready, and lent to the consumer. Default 4 GB. The batch being
    /// filled is always fetched, so one batch more than this is the real bound.
    pub memory_bytes: u64,
    /// How much is fetched ahead.
    pub prefetch: Prefetch,
    /// Threads that decode. Default: the cores of the machine. More than cores only adds switches.
    pub threads: usize,
    /// Names of the parts to fetch (matched without case); `None` for all. Fewer move fewer bytes where the store can.
    pub parts: Option<Vec<String>>,
}

impl Default for LoaderConfig {
    fn default() -> Self {
        Self {
            batch_samples: 256,
            seed: 0,
            shuffle: true,
            ranks: 1,
            rank: 0,
            last_batch: LastBatch::default(),
            order: Order::default(),
            horizon: Horizon::default(),
            on_error: OnError::default(),
            max_errors: MaxErrors::default(),
            memory_bytes: 4_000_000_000,
            prefetch: Prefetch::default(),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            parts: None,
        }
    }
}

impl LoaderConfig {
    /// How an epoch is dealt under these options.
    pub fn deal(&self) -> Deal {
        Deal {
            batch_samples: self.batch_samples,
            ranks: self.ranks,
            rank: self.rank,
            last_batch: self.last_batch,
        }
    }

    /// The horizon in batches.
    pub fn horizon_batches(&self) -> u64 {
        match self.horizon {
            Horizon::Unbounded => u64::MAX,
            Horizon::Batches(batches) => batches.get(),
            Horizon::Auto => {
                let Prefetch::Fixed(fixed) = &self.prefetch;
                fixed
                    .batches
                    .saturating_mul(2)
                    .max(8)
                    .min(12_000 / self.batch_samples)
                    .max(1)
            }
        }
    }

    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] naming the option, what it was and what it may be.
    pub fn check(&self) -> Result<()> {
        let wrong = |message: String| Err(Error::new(ErrorKind::Usage, message));
        if self.batch_samples == 0 || self.batch_samples > 1 << 24 {
            return wrong(format!(
                "batch size is {}: it must be between 1 and 16777216",
                self.batch_samples
            ));
        }
        if self.ranks == 0 || self.ranks > 1 << 20 {
            return wrong(format!(
                "world size is {}: it must be between 1 and 1048576",
                self.ranks
            ));
        }
        if self.rank >= self.ranks {
            return wrong(format!(
                "rank is {}: it must be below the world size, {}",
                self.rank, self.ranks
            ));
        }
        if self.threads == 0 || self.threads > 4096 {
            return wrong(format!(
                "threads is {}: it must be between 1 and 4096",
                self.threads
            ));
        }
        if self.memory_bytes < 1 << 20 {
            return wrong(format!(
                "memory is {} bytes: it must be at least 1 MiB, 1048576 bytes",
                self.memory_bytes
            ));
        }
        if let MaxErrors::Rate(rate) = self.max_errors
            && !(0.0..=1.0).contains(&rate)
        {
            return wrong(format!(
                "the error rate is {rate}: it must be between 0 and 1"
            ));
        }
        Ok(())
    }
}
