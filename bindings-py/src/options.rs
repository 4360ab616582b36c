//! The options of a loader, from the words of Python to those of the engine.

use std::num::NonZeroU64;

use farhaul::{
    Dataset, Error, ErrorKind, Horizon, LastBatch, LoaderConfig, MaxErrors, OnError, Order, Result,
    decode::{DecodeConfig, Geometry, ImageCollate, Layout, Orientation, RaggedCollate},
    parse,
};
use pyo3::prelude::*;

use crate::{buffer::allocator::keep_freed_memory, content::PayloadCollate, engine::AnyLoader};

/// What `farhaul.loader.Options` holds; read attribute by attribute.
#[derive(Debug, FromPyObject)]
pub(crate) struct Options {
    batch_size: u64,
    image_size: Option<u64>,
    decode: bool,
    augment: Option<String>,
    layout: String,
    resize: Option<u64>,
    scale: (f64, f64),
    ratio: (f64, f64),
    flip: f64,
    seed: u64,
    shuffle: bool,
    order: String,
    horizon: Option<u64>,
    memory: Size,
    on_error: String,
    max_errors: Option<Limit>,
    last_batch: String,
    rank: u64,
    world_size: u64,
    threads: Option<usize>,
    prefetch: String,
    orientation: String,
    parts: Option<Vec<String>>,
}

/// Bytes as a number or as people write them.
#[derive(Debug, FromPyObject)]
enum Size {
    Bytes(u64),
    Text(String),
}

/// A number of bad samples, or their share.
#[derive(Debug, FromPyObject)]
enum Limit {
    Count(u64),
    Share(f64),
}

impl Options {
    /// The loader that these options ask for.
    pub(crate) fn loader(&self, dataset: &Dataset) -> Result<Box<dyn AnyLoader>> {
        self.make(dataset).map_err(|error| error.during("loader"))
    }

    fn make(&self, dataset: &Dataset) -> Result<Box<dyn AnyLoader>> {
        let config = self.config()?;
        if !self.decode {
            self.refuse_for_payloads()?;
            keep_freed_memory();
            let collate = PayloadCollate {
                parts: self.parts.clone(),
            };
            return Ok(Box::new(dataset.loader(collate, config)?));
        }
        let decoding = DecodeConfig::default().with_orientation(orientation(&self.orientation)?);
        match self.geometry()? {
            Geometry::Whole => Ok(Box::new(
                dataset.loader(RaggedCollate::new(decoding, Geometry::Whole)?, config)?,
            )),
            geometry => {
                let is_fixed = config.last_batch == LastBatch::Mask;
                let collate = ImageCollate::new(decoding, geometry, self.layout()?)?
                    .with_fixed_shape(is_fixed);
                Ok(Box::new(dataset.loader(collate, config)?))
            }
        }
    }

    fn config(&self) -> Result<LoaderConfig> {
        let mut config = LoaderConfig::default();
        config.batch_samples = self.batch_size;
        config.seed = self.seed;
        config.shuffle = self.shuffle;
        config.ranks = self.world_size;
        config.rank = self.rank;
        config.last_batch = self.last_batch()?;
        config.order = choose(
            "order",
            &self.order,
            &[
                ("arrival", Order::Arrival),
                ("window", Order::Window),
                ("strict", Order::Strict),
            ],
        )?;
        config.horizon = match self.horizon {
            None => Horizon::Auto,
            Some(batches) => Horizon::Batches(
                NonZeroU64::new(batches)
                    .ok_or_else(|| usage("horizon is 0: it must be at least 1"))?,
            ),
        };
        let policies = [
            ("fail", OnError::Fail),
            ("skip", OnError::Skip),
            ("substitute", OnError::Substitute),
        ];
        config.on_error = choose("on_error", &self.on_error, &policies)?;
        config.max_errors = match self.max_errors {
            None => MaxErrors::Unlimited,
            Some(Limit::Count(count)) => MaxErrors::Count(count),
            Some(Limit::Share(share)) => MaxErrors::Rate(share),
        };
        config.memory_bytes = match &self.memory {
            Size::Bytes(bytes) => *bytes,
            Size::Text(text) => parse::size(text).map_err(|error| named("memory", &error))?,
        };
        config.prefetch =
            parse::prefetch(&self.prefetch).map_err(|error| named("prefetch", &error))?;
        if let Some(threads) = self.threads {
            config.threads = threads;
        }
        config.parts.clone_from(&self.parts);
        config.check()?;
        Ok(config)
    }

    fn last_batch(&self) -> Result<LastBatch> {
        let kinds = [
            ("partial", LastBatch::Partial),
            ("drop", LastBatch::Drop),
            ("mask", LastBatch::Mask),
        ];
        let last_batch = choose("last_batch", &self.last_batch, &kinds)?;
        if last_batch == LastBatch::Mask && self.image_size.is_none() {
            return Err(usage(
                "last_batch=\"mask\" fills a batch up with void images, which takes an image_size",
            ));
        }
        Ok(last_batch)
    }

    fn layout(&self) -> Result<Layout> {
        choose(
            "layout",
            &self.layout,
            &[("NCHW", Layout::Nchw), ("NHWC", Layout::Nhwc)],
        )
    }

    fn geometry(&self) -> Result<Geometry> {
        self.layout()?;
        let augment = self.augment.as_deref();
        let kinds = [
            ("random_resized_crop", Some(true)),
            ("centre_crop", Some(false)),
        ];
        let is_random = augment.map_or(Ok(None), |name| choose("augment", name, &kinds))?;
        let Some(size) = self.image_size else {
            return match augment {
                None => Ok(Geometry::Whole),
                Some(name) => Err(usage(format!(
                    "augment={name:?} makes images of one size, which takes an image_size"
                ))),
            };
        };
        // What is no u32 is refused as too large by the geometry itself.
        let side = |pixels: u64| u32::try_from(pixels).unwrap_or(u32::MAX);
        let shorter = |otherwise: u64| side(self.resize.unwrap_or(otherwise));
        match is_random {
            Some(true) => Ok(Geometry::RandomResizedCrop {
                size: side(size),
                scale: self.scale,
                ratio: self.ratio,
                flip: self.flip,
            }),
            // 224 of 256, as ImageNet is evaluated.
            Some(false) => {
                let resize = shorter(size.saturating_mul(8) / 7);
                Ok(Geometry::resize_centre_crop(resize, side(size)))
            }
            None => Ok(Geometry::resize_centre_crop(shorter(size), side(size))),
        }
    }

    fn refuse_for_payloads(&self) -> Result<()> {
        if self.image_size.is_some() || self.augment.is_some() {
            return Err(usage(
                "decode=False gives bytes as they were stored: it goes with no image_size and no augment",
            ));
        }
        Ok(())
    }
}

/// What an EXIF orientation does to the pixels.
pub(crate) fn orientation(word: &str) -> Result<Orientation> {
    choose(
        "orientation",
        word,
        &[
            ("ignore", Orientation::Ignore),
            ("apply", Orientation::Apply),
        ],
    )
}

/// The choice that a word stands for.
pub(crate) fn choose<T: Copy>(option: &str, word: &str, choices: &[(&str, T)]) -> Result<T> {
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == word) {
        return Ok(*choice);
    }
    let names: Vec<_> = choices
        .iter()
        .map(|(name, _)| format!("{name:?}"))
        .collect();
    Err(usage(format!(
        "{option} is {word:?}: it may be {}",
        names.join(", ")
    )))
}

/// The same error with the option in front: the parsers are shared and do not know it.
fn named(option: &str, error: &Error) -> Error {
    usage(format!("{option}: {}", error.message()))
}

fn usage(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Usage, message)
}
