//! Batches of images of one size: each image is written once, where it stays.

use bytes::{Bytes, BytesMut};
use loader_core::{
    Collate, Error, ErrorKind, Result, Sample,
    collate::{Filled, SampleSeed, Tag},
};

use crate::{DecodeConfig, Draws, Geometry, Layout, render::render};

/// Collates images of one size into one buffer.
///
/// The buffer is allocated once a batch and cut into disjoint slots, which worker threads fill in any order; joining them
/// again moves nothing. Only where samples failed and were left out do later images move down.
#[derive(Debug, Clone)]
pub struct ImageCollate {
    config: DecodeConfig,
    geometry: Geometry,
    layout: Layout,
    fixed_shape: bool,
    size: (u32, u32),
    image_bytes: usize,
}

/// A batch of images of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageBatch {
    /// samples × 3 × height × width bytes in the order of `layout`, contiguous.
    pub pixels: BytesMut,
    /// Images in `pixels`, those that `mask` marks as void included.
    pub samples: usize,
    /// Height of an image, pixels.
    pub height: usize,
    /// Width of an image, pixels.
    pub width: usize,
    /// Channels of an image: 3, red, green and blue.
    pub channels: usize,
    /// The order of the axes.
    pub layout: Layout,
    /// Label of every image; [`loader_core::NO_LABEL`] where it has none or is void.
    pub labels: Vec<i64>,
    /// Which samples they are, in order; void images have none, so this may be shorter than `labels`.
    pub tags: Vec<Tag>,
    /// Where the batch has a fixed number of images and some are void (zeros): true for those that are real.
    pub mask: Option<Vec<bool>>,
}

impl ImageCollate {
    /// Batches of what `geometry` makes.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] where the geometry makes no sense or gives images of different sizes.
    pub fn new(config: DecodeConfig, geometry: Geometry, layout: Layout) -> Result<Self> {
        geometry.validate()?;
        let Some(size) = geometry.image_size() else {
            return Err(Error::new(
                ErrorKind::Usage,
                "a batch in one buffer needs images of one size",
            )
            .hint("set an image size, or take a list of images"));
        };
        let image_bytes = size.0 as usize * size.1 as usize * 3;
        Ok(Self {
            config,
            geometry,
            layout,
            fixed_shape: false,
            size,
            image_bytes,
        })
    }

    /// Keeps the images of failed samples as zeros, masked, so that every batch has the number of images it was meant to
    /// have.
    #[must_use]
    pub fn with_fixed_shape(mut self, fixed_shape: bool) -> Self {
        self.fixed_shape = fixed_shape;
        self
    }
}

impl Collate for ImageCollate {
    type Slot = BytesMut;
    type Batch = ImageBatch;

    fn slot_bytes(&self, _: u64) -> u64 {
        self.image_bytes as u64
    }

    fn filled_bytes(&self, slot: &BytesMut) -> u64 {
        slot.len() as u64
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn slots(&self, samples: usize) -> Result<Vec<BytesMut>> {
        let too_large = || {
            let message = format!(
                "a batch of {samples} images of {} bytes is larger than the memory that can be had",
                self.image_bytes
            );
            Error::new(ErrorKind::TooLarge, message).hint("make batches or images smaller")
        };
        let bytes = self
            .image_bytes
            .checked_mul(samples)
            .ok_or_else(too_large)?;
        let mut slots = Vec::new();
        slots.try_reserve_exact(samples).map_err(|_| too_large())?;
        // Zeroed pages come from the system for nothing; a page is touched first by the thread that writes its image.
        let buffer = bytemuck::allocation::try_zeroed_vec(bytes).map_err(|()| too_large())?;
        // Bytes that nobody shares become writable without a copy.
        let mut buffer = BytesMut::from(Bytes::from(buffer));
        slots.extend((0..samples).map(|_| buffer.split_to(self.image_bytes)));
        Ok(slots)
    }

    fn place(&self, slot: &mut BytesMut, sample: Sample, seed: SampleSeed) -> Result<()> {
        let draws = Draws::new(seed, &sample.path);
        let outcome = sample.image().and_then(|bytes| {
            render(
                &bytes,
                &self.config,
                &self.geometry,
                draws,
                self.layout,
                self.size,
                slot,
            )
        });
        outcome.map(drop).map_err(|error| error.at(sample.path))
    }

    fn finish(&self, slots: Vec<Filled<BytesMut>>) -> ImageBatch {
        let mut joined = Joined::with_capacity(slots.len());
        for filled in slots {
            match filled {
                Filled::Sample { slot, tag } => joined.image(slot, tag),
                Filled::Padding(slot) => joined.void(slot),
                Filled::Failed(mut slot) if self.fixed_shape => {
                    // A decoder may have written rows before it failed.
                    slot.fill(0);
                    joined.void(slot);
                }
                Filled::Failed(slot) => joined.left_out(slot),
            }
        }
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        joined.into_batch(self.image_bytes, height, width, self.layout)
    }
}

/// Slots that have been joined so far.
struct Joined {
    buffer: BytesMut,
    /// For every slot joined, whether it stays.
    stays: Vec<bool>,
    labels: Vec<i64>,
    tags: Vec<Tag>,
    mask: Vec<bool>,
}

impl Joined {
    fn with_capacity(slots: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            stays: Vec::with_capacity(slots),
            labels: Vec::with_capacity(slots),
            tags: Vec::with_capacity(slots),
            mask: Vec::with_capacity(slots),
        }
    }

    fn image(&mut self, slot: BytesMut, tag: Tag) {
        self.join(slot, true);
        self.labels.push(tag.label);
        self.tags.push(tag);
        self.mask.push(true);
    }

    fn void(&mut self, slot: BytesMut) {
        self.join(slot, true);
        self.labels.push(loader_core::NO_LABEL);
        self.mask.push(false);
    }

    fn left_out(&mut self, slot: BytesMut) {
        self.join(slot, false);
    }

    fn join(&mut self, slot: BytesMut, stays: bool) {
        // Neighbours of one allocation are joined without a copy.
        if self.buffer.is_empty() {
            self.buffer = slot;
        } else {
            self.buffer.unsplit(slot);
        }
        self.stays.push(stays);
    }

    fn into_batch(
        mut self,
        image_bytes: usize,
        height: usize,
        width: usize,
        layout: Layout,
    ) -> ImageBatch {
        let samples = self.labels.len();
        if samples < self.stays.len() {
            let sources = self
                .stays
                .iter()
                .enumerate()
                .filter(|(_, stays)| **stays)
                .map(|(number, _)| number);
            for (target, source) in sources.enumerate() {
                if target != source {
                    self.buffer.copy_within(
                        source * image_bytes..(source + 1) * image_bytes,
                        target * image_bytes,
                    );
                }
            }
            self.buffer.truncate(samples * image_bytes);
        }
        let mask = self.mask.contains(&false).then_some(self.mask);
        let (labels, tags) = (self.labels, self.tags);
        ImageBatch {
            pixels: self.buffer,
            samples,
            height,
            width,
            channels: 3,
            layout,
            labels,
            tags,
            mask,
        }
    }
}
