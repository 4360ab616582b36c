//! What the three modes of a loader put into a batch, and the payload mode's own collation.

use bytes::{Bytes, BytesMut};
use farhaul::{
    Collate, Error, ErrorKind, Filled, Result, Sample, SampleSeed, Tag,
    decode::{Image, ImageBatch, Layout, RaggedBatch},
};

/// A batch of any mode, before Python has it.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) images: Images,
    /// One for each image.
    pub(crate) labels: Vec<i64>,
    /// One for each image that is real.
    pub(crate) tags: Vec<Tag>,
    /// Where some images are void: true for those that are real.
    pub(crate) mask: Option<Vec<bool>>,
}

/// The images of a batch.
#[derive(Debug)]
pub(crate) enum Images {
    /// As they were stored.
    Payloads(Vec<Bytes>),
    /// Decoded, each of its own size.
    Pictures(Vec<Image>),
    /// Decoded and of one size, in one block.
    Block(BytesMut, [usize; 4]),
}

impl From<ImageBatch> for Content {
    fn from(batch: ImageBatch) -> Self {
        let ImageBatch {
            pixels,
            samples,
            height,
            width,
            channels,
            layout,
            labels,
            tags,
            mask,
            ..
        } = batch;
        let shape = match layout {
            Layout::Nchw => [samples, channels, height, width],
            Layout::Nhwc => [samples, height, width, channels],
        };
        Self {
            images: Images::Block(pixels, shape),
            labels,
            tags,
            mask,
        }
    }
}

impl From<RaggedBatch> for Content {
    fn from(batch: RaggedBatch) -> Self {
        let RaggedBatch {
            images,
            labels,
            tags,
            ..
        } = batch;
        Self {
            images: Images::Pictures(images),
            labels,
            tags,
            mask: None,
        }
    }
}

/// Batches of bytes as they were stored: the image of each sample, or the part that was named.
#[derive(Debug, Clone, Default)]
pub(crate) struct PayloadCollate {
    /// Names of parts, the most wanted first; `None` for the image.
    pub(crate) parts: Option<Vec<String>>,
}

/// What [`PayloadCollate`] makes.
#[derive(Debug, Default)]
pub(crate) struct PayloadBatch {
    payloads: Vec<Bytes>,
    tags: Vec<Tag>,
}

impl PayloadCollate {
    fn payload(&self, sample: &Sample) -> Result<Bytes> {
        let Some(names) = &self.parts else {
            return sample.image();
        };
        names
            .iter()
            .find_map(|name| sample.part(name))
            .ok_or_else(|| {
                // The others were not fetched, so that nobody can say here what there is.
                let message = format!("no part called {}", names.join(" or "));
                Error::new(ErrorKind::MissingPart, message).at(sample.path.clone())
            })
    }
}

impl Collate for PayloadCollate {
    type Slot = Option<Bytes>;
    type Batch = PayloadBatch;

    fn slot_bytes(&self, _: u64) -> u64 {
        0
    }

    fn filled_bytes(&self, _: &Self::Slot) -> u64 {
        0
    }

    fn is_heavy(&self) -> bool {
        false
    }

    fn slots(&self, samples: usize) -> Result<Vec<Self::Slot>> {
        Ok(vec![None; samples])
    }

    fn place(&self, slot: &mut Self::Slot, sample: Sample, _: SampleSeed) -> Result<()> {
        *slot = Some(self.payload(&sample)?);
        Ok(())
    }

    fn finish(&self, slots: Vec<Filled<Self::Slot>>) -> PayloadBatch {
        let mut batch = PayloadBatch::default();
        for filled in slots {
            if let Filled::Sample {
                slot: Some(payload),
                tag,
            } = filled
            {
                batch.payloads.push(payload);
                batch.tags.push(tag);
            }
        }
        batch
    }
}

impl From<PayloadBatch> for Content {
    fn from(PayloadBatch { payloads, tags }: PayloadBatch) -> Self {
        let labels = tags.iter().map(|tag| tag.label).collect();
        Self {
            images: Images::Payloads(payloads),
            labels,
            tags,
            mask: None,
        }
    }
}
