//! Batches of images of any size: a list.

use loader_core::{
    Collate, Error, ErrorKind, Result, Sample,
    collate::{Filled, SampleSeed, Tag},
};

use crate::{DecodeConfig, Draws, Geometry, Image, render::render_image};

/// Collates images into a list, each with its own size.
#[derive(Debug, Clone)]
pub struct RaggedCollate {
    config: DecodeConfig,
    geometry: Geometry,
}

/// A batch of images of any size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RaggedBatch {
    /// The images, height × width × 3 each; samples that failed and padding are left out.
    pub images: Vec<Image>,
    /// Their labels; [`loader_core::NO_LABEL`] where there is none.
    pub labels: Vec<i64>,
    /// Which samples they are.
    pub tags: Vec<Tag>,
}

impl RaggedCollate {
    /// Batches of what `geometry` makes, mostly [`Geometry::Whole`].
    ///
    /// # Errors
    /// [`loader_core::ErrorKind::Usage`] where the geometry makes no sense.
    pub fn new(config: DecodeConfig, geometry: Geometry) -> Result<Self> {
        geometry.validate()?;
        Ok(Self { config, geometry })
    }
}

impl Collate for RaggedCollate {
    type Slot = Option<Image>;
    type Batch = RaggedBatch;

    /// Where sizes are not fixed: ten bytes of pixels for one of a JPEG, as at the usual qualities.
    fn slot_bytes(&self, payload_bytes: u64) -> u64 {
        match self.geometry.image_size() {
            Some((width, height)) => u64::from(width) * u64::from(height) * 3,
            None => payload_bytes.saturating_mul(10),
        }
    }

    fn filled_bytes(&self, slot: &Option<Image>) -> u64 {
        slot.as_ref().map_or(0, |image| image.pixels.len() as u64)
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn slots(&self, samples: usize) -> Result<Vec<Option<Image>>> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(samples).map_err(|_| {
            let message =
                format!("a list of {samples} images is larger than the memory that can be had");
            Error::new(ErrorKind::TooLarge, message).hint("make batches smaller")
        })?;
        slots.resize_with(samples, || None);
        Ok(slots)
    }

    fn place(&self, slot: &mut Option<Image>, sample: Sample, seed: SampleSeed) -> Result<()> {
        let draws = Draws::new(seed, &sample.path);
        let outcome = sample
            .image()
            .and_then(|bytes| render_image(&bytes, &self.config, &self.geometry, draws));
        *slot = Some(outcome.map_err(|error| error.at(sample.path))?);
        Ok(())
    }

    fn finish(&self, slots: Vec<Filled<Option<Image>>>) -> RaggedBatch {
        let mut batch = RaggedBatch::default();
        for filled in slots {
            if let Filled::Sample {
                slot: Some(image),
                tag,
            } = filled
            {
                batch.images.push(image);
                batch.labels.push(tag.label);
                batch.tags.push(tag);
            }
        }
        batch
    }
}
