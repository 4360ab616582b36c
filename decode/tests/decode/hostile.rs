//! Bytes that mean harm, or were harmed: every answer is a picture or a typed error, soon and in bounded memory.

use std::time::{Duration, Instant};

use decode::{
    DecodeConfig, Geometry, Image, ImageCollate, Layout, Limits, RaggedCollate, Truncated, decode,
    dimensions,
};
use loader_core::{
    Collate, ErrorKind,
    collate::{Filled, SampleSeed, Tag},
};
use proptest::prelude::*;

use crate::support::{Case, generated, generated_image, photo, real, sample};

/// Far above what any of these small files can need.
const SOON: Duration = Duration::from_secs(5);

fn config() -> DecodeConfig {
    DecodeConfig::default().with_limits(Limits::new(4 << 20, 64 << 20))
}

/// Decodes and holds the outcome against what every outcome has to be.
fn answer(bytes: &[u8], what: &str) -> Option<Image> {
    let start = Instant::now();
    let outcome = decode(bytes, &config());
    let _ = dimensions(bytes, &config());
    let _ = decode(bytes, &config().with_truncated(Truncated::Accept));
    assert!(start.elapsed() < SOON, "{what} took {:?}", start.elapsed());
    match outcome {
        Ok(image) => {
            assert_eq!(
                image.pixels.len(),
                image.width as usize * image.height as usize * 3,
                "{what}"
            );
            Some(image)
        }
        Err(error) => {
            assert!(error.kind().is_of_one_sample(), "{what}: {error}");
            assert!(!error.message().contains("panicked"), "{what}: {error}");
            None
        }
    }
}

fn small_cases() -> Vec<Case> {
    let mut cases = generated();
    cases.extend(real());
    cases.retain(|case| case.name.starts_with("image/") || !case.name.contains('/'));
    cases
}

#[test]
fn a_cut_file_never_gives_other_pixels() {
    for case in small_cases() {
        let whole = answer(&case.bytes, &case.name);
        let step = (case.bytes.len() / 61).max(1);
        for length in (0..case.bytes.len()).step_by(step) {
            let what = format!("{} cut to {length} bytes", case.name);
            if let Some(part) = answer(&case.bytes[..length], &what) {
                // What is left out was not needed: an end marker, a comment, a later frame.
                assert!(whole.as_ref() == Some(&part), "{what} gives other pixels");
            }
        }
    }
}

#[test]
fn flipped_bytes_are_survived() {
    let mut state = 1_u64;
    for case in small_cases() {
        for _ in 0..40 {
            let mut bytes = case.bytes.clone();
            if bytes.is_empty() {
                continue;
            }
            for _ in 0..3 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let at = usize::try_from(state >> 33).unwrap() % bytes.len();
                bytes[at] ^= u8::try_from((state >> 24) & 0xff).unwrap() | 1;
            }
            answer(&bytes, &format!("{} with flipped bytes", case.name));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_behind_any_first_bytes_are_survived(
        magic in prop::sample::select(vec![
            &b"\xff\xd8\xff"[..], b"\xff\xd8\xff\xc0\0\x11\x08", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"RIFF\xff\0\0\0WEBPVP8 ",
            b"RIFF\xff\0\0\0WEBPVP8L", b"RIFF\xff\0\0\0WEBPVP8X", b"II*\0\x08\0\0\0\x05\0", b"MM\0*\0\0\0\x08\0\x05", b"GIF89a", b"BM",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        answer(&[magic, &rest].concat(), "random bytes");
    }
}

#[test]
fn a_picture_of_endless_scans_is_refused() {
    let mut bytes = photo("chelsea-444-progressive.jpg");
    // The first scan, of the means of blocks, may be said again and again: each time it decodes without a fault.
    let start = bytes
        .windows(2)
        .position(|marker| marker == [0xff, 0xda])
        .unwrap();
    let is_marker = |pair: &[u8]| pair[0] == 0xff && pair[1] != 0;
    let end = start + 2 + bytes[start + 2..].windows(2).position(is_marker).unwrap();
    let scan = bytes[start..end].to_vec();
    bytes.splice(end..end, scan.repeat(100));
    assert!(decode(&bytes, &config()).is_ok());
    bytes.splice(end..end, scan.repeat(400));
    let start = Instant::now();
    assert_eq!(
        decode(&bytes, &config()).unwrap_err().kind(),
        ErrorKind::TooLarge
    );
    assert!(start.elapsed() < SOON);
}

fn geometries() -> Vec<Geometry> {
    let crop = |size, least, most| {
        let mut geometry = Geometry::random_resized_crop(size);
        if let Geometry::RandomResizedCrop { scale, .. } = &mut geometry {
            *scale = (least, most);
        }
        geometry
    };
    vec![
        crop(64, 0.01, 0.02),
        crop(64, 0.3, 0.4),
        crop(64, 1.0, 1.0),
        crop(16, 0.9, 1.0),
        Geometry::resize_centre_crop(64, 56),
    ]
}

/// The kind of error, or none, of a picture under a geometry, an epoch and a layout.
fn outcome(geometry: Geometry, layout: Layout, epoch: u64, bytes: &[u8]) -> Result<(), ErrorKind> {
    let collate = ImageCollate::new(DecodeConfig::default(), geometry, layout).unwrap();
    let mut slots = collate.slots(1).unwrap();
    let placed = collate.place(
        &mut slots[0],
        sample("a.jpg", bytes),
        SampleSeed { seed: 3, epoch },
    );
    placed.map_err(|error| error.kind())
}

#[test]
fn a_cut_jpeg_has_one_outcome_whatever_part_is_wanted() {
    for name in ["chelsea-420.jpg", "chelsea-444-progressive.jpg"] {
        let bytes = photo(name);
        let lengths = [
            bytes.len() - 2,
            bytes.len() - 40,
            bytes.len() * 9 / 10,
            bytes.len() / 2,
            bytes.len() / 5,
        ];
        for damaged in lengths.map(|length| bytes[..length].to_vec()) {
            let wanted = decode(&damaged, &DecodeConfig::default())
                .map(drop)
                .map_err(|error| error.kind());
            for geometry in geometries() {
                for epoch in 0..4 {
                    let got = outcome(geometry, Layout::Nchw, epoch, &damaged);
                    assert_eq!(
                        got,
                        wanted,
                        "{name}, {} bytes, {geometry:?}, epoch {epoch}",
                        damaged.len()
                    );
                }
            }
        }
    }
}

#[test]
fn a_cut_jpeg_that_was_closed_is_found_out_where_what_is_missing_is_wanted() {
    let bytes = photo("chelsea-420.jpg");
    let closed = [&bytes[..bytes.len() / 2], &[0xff, 0xd9]].concat();
    let whole = decode(&closed, &DecodeConfig::default());
    assert_eq!(whole.unwrap_err().kind(), ErrorKind::Truncated);
    for geometry in geometries() {
        for epoch in 0..4 {
            if let Err(kind) = outcome(geometry, Layout::Nchw, epoch, &closed) {
                assert_eq!(kind, ErrorKind::Truncated);
            }
        }
    }
    let all = outcome(geometries()[2], Layout::Nchw, 0, &closed);
    assert_eq!(all, Err(ErrorKind::Truncated));
}

#[test]
fn a_damaged_jpeg_has_one_outcome_whatever_part_is_wanted() {
    let bytes = photo("chelsea-420.jpg");
    let mut failed = 0;
    for at in (bytes.len() / 3..bytes.len() - 2).step_by(bytes.len() / 40) {
        let mut damaged = bytes.clone();
        // A marker where none belongs: what follows it is lost.
        damaged[at..at + 2].copy_from_slice(&[0xff, 0xc4]);
        let wanted = decode(&damaged, &DecodeConfig::default())
            .map(drop)
            .map_err(|error| error.kind());
        failed += usize::from(wanted.is_err());
        for geometry in geometries() {
            assert_eq!(
                outcome(geometry, Layout::Nhwc, 0, &damaged),
                wanted,
                "byte {at}, {geometry:?}"
            );
        }
    }
    assert!(failed > 0, "some of it is noticed");
}

#[test]
fn a_failed_sample_names_its_path_and_spoils_no_other() {
    let collate = RaggedCollate::new(DecodeConfig::default(), Geometry::Whole).unwrap();
    let mut slots = collate.slots(2).unwrap();
    let seed = SampleSeed { seed: 0, epoch: 0 };
    let error = collate
        .place(
            &mut slots[0],
            sample("x/bad.jpg", b"\xff\xd8\xff\xd9"),
            seed,
        )
        .unwrap_err();
    assert_eq!(error.path().unwrap().to_string(), "x/bad.jpg");
    let good = generated_image("control.jpg");
    collate
        .place(&mut slots[1], sample("x/good.jpg", &good.bytes), seed)
        .unwrap();
    let tag = Tag {
        position: 1,
        row: 1,
        path: "x/good.jpg".into(),
        label: 5,
    };
    let mut slots = slots.into_iter();
    let batch = collate.finish(vec![
        Filled::Failed(slots.next().unwrap()),
        Filled::Sample {
            slot: slots.next().unwrap(),
            tag,
        },
    ]);
    assert_eq!((batch.images.len(), batch.labels), (1, vec![5]));
    assert_eq!(Some(&batch.images[0]), good.check().as_ref());
}

#[test]
fn a_lossless_jpeg_is_unsupported_whatever_part_is_wanted() {
    let mut bytes = generated_image("control.jpg").bytes;
    let frame = bytes
        .windows(2)
        .position(|marker| marker == [0xff, 0xc0])
        .unwrap();
    bytes[frame + 1] = 0xc3;
    assert_eq!(
        decode(&bytes, &config()).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    for geometry in geometries() {
        assert_eq!(
            outcome(geometry, Layout::Nchw, 0, &bytes),
            Err(ErrorKind::Unsupported)
        );
    }
}
