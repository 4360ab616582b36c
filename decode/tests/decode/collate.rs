//! Batches: one buffer, every image in its place, the same on any number of threads.

use std::thread;

use decode::{DecodeConfig, Geometry, ImageBatch, ImageCollate, Layout, RaggedCollate};
use loader_core::{
    Collate, ErrorKind, NO_LABEL,
    collate::{Filled, SampleSeed, Tag},
};

use crate::support::{photo, place_one, sample};

const SEED: SampleSeed = SampleSeed { seed: 9, epoch: 2 };

fn collate(layout: Layout) -> ImageCollate {
    ImageCollate::new(
        DecodeConfig::default(),
        Geometry::random_resized_crop(32),
        layout,
    )
    .unwrap()
}

fn tag(number: u64) -> Tag {
    Tag {
        position: number,
        row: number,
        path: format!("{number}.jpg").into(),
        label: i64::try_from(number).unwrap() + 100,
    }
}

/// A batch of a photograph under several names, placed by so many threads.
fn batch(samples: u64, threads: usize) -> ImageBatch {
    let collate = collate(Layout::Nchw);
    let bytes = photo("chelsea-420.jpg");
    let mut slots: Vec<_> = (0..samples)
        .zip(collate.slots(usize::try_from(samples).unwrap()).unwrap())
        .collect();
    let share = slots.len().div_ceil(threads);
    thread::scope(|scope| {
        for slots in slots.chunks_mut(share) {
            let (collate, bytes) = (&collate, &bytes);
            scope.spawn(move || {
                for (number, slot) in slots {
                    collate
                        .place(slot, sample(&format!("{number}.jpg"), bytes), SEED)
                        .unwrap();
                }
            });
        }
    });
    collate.finish(
        slots
            .into_iter()
            .map(|(number, slot)| Filled::Sample {
                slot,
                tag: tag(number),
            })
            .collect(),
    )
}

#[test]
fn a_batch_is_the_same_on_any_number_of_threads() {
    let one = batch(13, 1);
    assert_eq!(
        (
            one.samples,
            one.height,
            one.width,
            one.channels,
            one.mask.clone()
        ),
        (13, 32, 32, 3, None)
    );
    assert_eq!(one.pixels.len(), 13 * 3 * 32 * 32);
    for threads in [2, 3, 8] {
        assert!(batch(13, threads) == one, "{threads} threads");
    }
}

#[test]
fn every_image_is_where_it_was_written() {
    let batch = batch(5, 2);
    let bytes = photo("chelsea-420.jpg");
    for (number, image) in batch.pixels.chunks(3 * 32 * 32).enumerate() {
        let path = format!("{number}.jpg");
        let alone = place_one(
            DecodeConfig::default(),
            Geometry::random_resized_crop(32),
            Layout::Nchw,
            SEED,
            &path,
            &bytes,
        );
        assert!(image == alone, "image {number}");
    }
}

#[test]
fn joining_the_slots_moves_nothing() {
    let collate = collate(Layout::Nhwc);
    let slots = collate.slots(4).unwrap();
    let start = slots[0].as_ptr();
    let batch = collate.finish(
        (0..4)
            .zip(slots)
            .map(|(number, slot)| Filled::Sample {
                slot,
                tag: tag(number),
            })
            .collect(),
    );
    assert_eq!(batch.pixels.as_ptr(), start);
    assert_eq!(batch.pixels.len(), 4 * 32 * 32 * 3);
    assert_eq!(batch.labels, [100, 101, 102, 103]);
}

/// Slots 0 … 4, each filled with its number plus one; the second and fourth failed, the last is padding.
fn mixed(collate: &ImageCollate) -> Vec<Filled<bytes::BytesMut>> {
    let fill = |(number, mut slot): (u8, bytes::BytesMut)| {
        slot.fill(number + 1);
        match number {
            1 | 3 => Filled::Failed(slot),
            4 => {
                slot.fill(0);
                Filled::Padding(slot)
            }
            _ => Filled::Sample {
                slot,
                tag: tag(number.into()),
            },
        }
    };
    (0..).zip(collate.slots(5).unwrap()).map(fill).collect()
}

#[test]
fn failed_samples_are_left_out_and_padding_is_masked() {
    let collate = collate(Layout::Nhwc);
    let batch = collate.finish(mixed(&collate));
    let firsts: Vec<u8> = batch
        .pixels
        .chunks(32 * 32 * 3)
        .map(|image| image[0])
        .collect();
    assert_eq!(firsts, [1, 3, 0]);
    assert!(
        batch
            .pixels
            .chunks(32 * 32 * 3)
            .all(|image| image.iter().all(|byte| *byte == image[0]))
    );
    assert_eq!(batch.labels, [100, 102, NO_LABEL]);
    assert_eq!(batch.mask, Some(vec![true, true, false]));
    assert_eq!(batch.tags, [tag(0), tag(2)]);
    assert_eq!(batch.samples, 3);
}

#[test]
fn a_fixed_shape_masks_failed_samples() {
    let collate = collate(Layout::Nhwc).with_fixed_shape(true);
    let batch = collate.finish(mixed(&collate));
    let firsts: Vec<u8> = batch
        .pixels
        .chunks(32 * 32 * 3)
        .map(|image| image[0])
        .collect();
    assert_eq!(firsts, [1, 0, 3, 0, 0]);
    assert_eq!(batch.mask, Some(vec![true, false, true, false, false]));
    assert_eq!(batch.labels, [100, NO_LABEL, 102, NO_LABEL, NO_LABEL]);
}

#[test]
fn a_batch_of_nothing_or_of_failures_is_empty() {
    let collate = collate(Layout::Nchw);
    assert_eq!(collate.finish(Vec::new()).samples, 0);
    let failed = collate
        .slots(2)
        .unwrap()
        .into_iter()
        .map(Filled::Failed)
        .collect();
    let batch = collate.finish(failed);
    assert_eq!(
        (batch.samples, batch.pixels.len(), batch.mask),
        (0, 0, None)
    );
}

#[test]
fn images_of_different_sizes_need_a_list() {
    let error =
        ImageCollate::new(DecodeConfig::default(), Geometry::Whole, Layout::Nchw).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(
        collate(Layout::Nchw)
            .slots(usize::MAX / 2)
            .unwrap_err()
            .kind(),
        ErrorKind::TooLarge
    );
}

#[test]
fn a_batch_that_no_memory_holds_is_an_error_and_not_the_end_of_the_process() {
    let geometry = Geometry::ResizeCentreCrop {
        resize: 16_384,
        size: 16_384,
    };
    let collate = ImageCollate::new(DecodeConfig::default(), geometry, Layout::Nhwc).unwrap();
    // 2^53 bytes are a size that a program may ask for, and more than a processor can address; then what does not fit a word.
    for samples in [1 << 24, 1 << 40] {
        let error = collate.slots(samples).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{samples}");
    }
    let list = RaggedCollate::new(DecodeConfig::default(), Geometry::Whole).unwrap();
    let error = list.slots(1 << 50).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}
