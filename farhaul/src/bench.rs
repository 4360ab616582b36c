//! Bench: a loader over a data set, and what it took.

use std::time::{Duration, Instant};

use loader_core::{
    Collate, Result,
    collate::Raw,
    loader::{Loader, config::LoaderConfig, epoch::Step},
};
use serde::Serialize;

use self::memory::Watch;
use crate::{
    dataset::Dataset,
    task::{Cancel, Outcome, Progress},
};

mod memory;

/// How long one look for the next batch lasts, so that a wish to stop is seen.
const PATIENCE: Duration = Duration::from_millis(100);

/// What is measured.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BenchOptions {
    /// Epochs to read; default 1.
    pub epochs: u64,
    /// Side of the square images that are decoded, pixels (random resized crop and flip); `None` reads raw bytes, the default.
    pub image_size: Option<u32>,
    /// Time that the consumer spends on each batch; default none.
    pub think: Duration,
    /// The options of the loader.
    pub loader: LoaderConfig,
}

impl Default for BenchOptions {
    fn default() -> Self {
        Self {
            epochs: 1,
            image_size: None,
            think: Duration::ZERO,
            loader: LoaderConfig::default(),
        }
    }
}

/// What a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BenchReport {
    /// Samples delivered.
    pub samples: u64,
    /// Payload bytes of them.
    pub bytes: u64,
    /// From the start of the first epoch to the end of the last.
    pub seconds: f64,
    /// Samples a second.
    pub samples_per_s: f64,
    /// Millions of payload bytes a second.
    pub megabytes_per_s: f64,
    /// From the start to the first batch.
    pub first_batch_s: f64,
    /// Share of the time that the consumer waited for batches.
    pub stall_share: f64,
    /// The most anonymous and shared memory of the process.
    pub peak_rss_bytes: u64,
    /// The most memory that is mapped from files, which processes share.
    pub mapped_bytes: u64,
    /// The largest prefetch window.
    pub window_bytes_max: u64,
    /// The most payload and batch memory that the loader held.
    pub held_bytes_max: u64,
    /// Requests that were asked again.
    pub retries: u64,
    /// Requests that were sent a second time because the first was late.
    pub hedges: u64,
    /// Samples that failed.
    pub failures: u64,
}

/// Reads epochs as a training loop does.
///
/// # Errors
/// In the outcome: options that make no sense, what the loader met, [`loader_core::ErrorKind::Cancelled`].
pub fn bench(
    data: &Dataset,
    options: &BenchOptions,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Outcome<BenchReport> {
    let mut report = BenchReport::default();
    progress.started("bench", Some(data.len().saturating_mul(options.epochs)));
    let watch = Watch::start();
    let result = match options.image_size {
        None => run(data, Raw, options, progress, cancel, &mut report),
        Some(size) => decoded(data, size, options, progress, cancel, &mut report),
    };
    progress.finished();
    (report.peak_rss_bytes, report.mapped_bytes) = watch.stop();
    if report.seconds > 0.0 {
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let rate = |count: u64| count as f64 / report.seconds;
        (report.samples_per_s, report.megabytes_per_s) =
            (rate(report.samples), rate(report.bytes) / 1e6);
    }
    Outcome::new(report, result, "bench")
}

#[cfg(feature = "decode")]
fn decoded(
    data: &Dataset,
    size: u32,
    options: &BenchOptions,
    progress: &dyn Progress,
    cancel: &Cancel,
    report: &mut BenchReport,
) -> Result<()> {
    let geometry = decode::Geometry::random_resized_crop(size);
    let collate = decode::ImageCollate::new(
        decode::DecodeConfig::default(),
        geometry,
        decode::Layout::default(),
    )?;
    run(data, collate, options, progress, cancel, report)
}

#[cfg(not(feature = "decode"))]
fn decoded(
    _: &Dataset,
    _: u32,
    _: &BenchOptions,
    _: &dyn Progress,
    _: &Cancel,
    _: &mut BenchReport,
) -> Result<()> {
    let message = "this build of farhaul cannot decode: it lacks the feature `decode`";
    Err(loader_core::Error::new(
        loader_core::ErrorKind::Usage,
        message,
    ))
}

fn run<C: Collate>(
    data: &Dataset,
    collate: C,
    options: &BenchOptions,
    progress: &dyn Progress,
    cancel: &Cancel,
    report: &mut BenchReport,
) -> Result<()> {
    let begun = Instant::now();
    let mut loader = data.loader(collate, options.loader.clone())?;
    let (mut waited, mut whole) = (Duration::ZERO, Duration::ZERO);
    let mut result = Ok(());
    for epoch in 0..options.epochs {
        result = one_epoch(&mut loader, options.think, progress, cancel);
        let stats = loader.stats();
        report.samples += stats.samples;
        report.bytes += stats.bytes;
        report.failures += stats.failures;
        report.retries += stats.retries;
        report.hedges += stats.hedges;
        report.window_bytes_max = report.window_bytes_max.max(stats.window_bytes_max);
        report.held_bytes_max = report.held_bytes_max.max(stats.held_bytes_max);
        if epoch == 0 {
            report.first_batch_s = stats.first_batch.unwrap_or_default().as_secs_f64();
        }
        waited += stats.waits.total();
        whole += stats.waits.total() + stats.consumer;
        if let Err(error) = &result {
            // Under `fail` the sample that ended it is not in the loader's count.
            report.failures += u64::from(error.is_of_one_sample());
            break;
        }
    }
    report.seconds = begun.elapsed().as_secs_f64();
    report.stall_share = if whole.is_zero() {
        0.0
    } else {
        waited.as_secs_f64() / whole.as_secs_f64()
    };
    result
}

fn one_epoch<C: Collate>(
    loader: &mut Loader<C>,
    think: Duration,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<()> {
    let mut epoch = loader.start()?;
    loop {
        cancel.check()?;
        match epoch.next_within(PATIENCE)? {
            Step::Pending => {}
            Step::End => return Ok(()),
            Step::Batch(delivered) => {
                progress.advanced(delivered.samples, delivered.payload_bytes);
                pause(think, cancel)?;
            }
        }
    }
}

/// The consumer's work, which a wish to stop cuts short.
fn pause(time: Duration, cancel: &Cancel) -> Result<()> {
    let mut left = time;
    while !left.is_zero() {
        cancel.check()?;
        let slice = left.min(PATIENCE);
        std::thread::sleep(slice);
        left -= slice;
    }
    Ok(())
}
