//! Crops: their distribution, their place, and how near the fast ways come to the plain one.

use decode::{DecodeConfig, Draws, Geometry, Image, Layout, Orientation, Window, decode};
use fast_image_resize::{
    FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer,
    images::{CroppedImage, Image as Pixels, ImageRef},
};
use loader_core::collate::SampleSeed;
use proptest::prelude::*;

use crate::support::{generated_image, photo, place_one};

/// The plain way: decode all of it, cut the window out, resize it.
fn plain(picture: &Image, window: &Window, size: u32) -> Vec<u8> {
    let source = ImageRef::new(
        picture.width,
        picture.height,
        &picture.pixels,
        PixelType::U8x3,
    )
    .unwrap();
    let mut target = Pixels::new(size, size, PixelType::U8x3);
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
    let mut resizer = Resizer::new();
    if window.looks_beyond {
        let options = options.crop(window.x, window.y, window.width, window.height);
        resizer.resize(&source, &mut target, &options).unwrap();
    } else {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "random windows are whole pixels"
        )]
        let view = CroppedImage::new(
            &source,
            window.x as u32,
            window.y as u32,
            window.width as u32,
            window.height as u32,
        )
        .unwrap();
        resizer.resize(&view, &mut target, &options).unwrap();
    }
    target.into_vec()
}

fn mirrored(pixels: &[u8], size: u32) -> Vec<u8> {
    let row = size as usize * 3;
    pixels
        .chunks(row)
        .flat_map(|row| row.chunks(3).rev().flatten().copied())
        .collect()
}

/// Mean and greatest difference.
fn difference(a: &[u8], b: &[u8]) -> (f64, u8) {
    assert_eq!(a.len(), b.len());
    let differences = || a.iter().zip(b).map(|(a, b)| a.abs_diff(*b));
    let count = u32::try_from(a.len()).unwrap();
    (
        f64::from(differences().map(u32::from).sum::<u32>()) / f64::from(count),
        differences().max().unwrap_or(0),
    )
}

/// The worst of many crops: mean and greatest difference between the fast and the plain way.
fn worst(name: &str, geometry: Geometry, epochs: u64) -> (f64, u8) {
    let bytes = photo(name);
    let picture = decode(&bytes, &DecodeConfig::default()).unwrap();
    let (size, _) = geometry.image_size().unwrap();
    let mut worst = (0.0_f64, 0);
    for epoch in 0..epochs {
        let seed = SampleSeed { seed: 11, epoch };
        let draws = Draws::new(seed, b"a.jpg");
        let window = geometry.window(picture.width, picture.height, draws);
        let mut expected = plain(&picture, &window, size);
        if geometry.flips(draws) {
            expected = mirrored(&expected, size);
        }
        let got = place_one(
            DecodeConfig::default(),
            geometry,
            Layout::Nhwc,
            seed,
            "a.jpg",
            &bytes,
        );
        let (mean, most) = difference(&got, &expected);
        worst = (worst.0.max(mean), worst.1.max(most));
    }
    worst
}

#[test]
fn a_crop_decoded_by_itself_is_the_crop_of_the_whole() {
    for name in ["chelsea-420.jpg", "chelsea-444-progressive.jpg"] {
        // 224 is more than half of the picture's height, so nothing is decoded smaller.
        let (mean, most) = worst(name, Geometry::random_resized_crop(224), 40);
        assert!(most == 0, "{name}: mean {mean}, greatest {most}");
        let (mean, most) = worst(name, Geometry::resize_centre_crop(256, 224), 1);
        assert!(most == 0, "{name}: mean {mean}, greatest {most}");
    }
}

#[test]
fn a_picture_decoded_smaller_is_near_the_plain_one() {
    for (size, name) in [
        (112, "chelsea-420.jpg"),
        (56, "chelsea-420.jpg"),
        (28, "chelsea-420.jpg"),
        (64, "chelsea-444-progressive.jpg"),
    ] {
        let (mean, most) = worst(name, Geometry::random_resized_crop(size), 40);
        assert!(mean < 2.5, "{name} to {size}: mean {mean}, greatest {most}");
        let (mean, most) = worst(name, Geometry::resize_centre_crop(size * 8 / 7, size), 1);
        assert!(mean < 2.5, "{name} to {size}: mean {mean}, greatest {most}");
    }
}

#[test]
fn planes_are_the_rows_in_another_order() {
    let bytes = photo("chelsea-420.jpg");
    let geometry = Geometry::random_resized_crop(96);
    for epoch in 0..8 {
        let seed = SampleSeed { seed: 1, epoch };
        let rows = place_one(
            DecodeConfig::default(),
            geometry,
            Layout::Nhwc,
            seed,
            "a.jpg",
            &bytes,
        );
        let planes = place_one(
            DecodeConfig::default(),
            geometry,
            Layout::Nchw,
            seed,
            "a.jpg",
            &bytes,
        );
        let again: Vec<u8> = (0..96 * 96)
            .flat_map(|at| [0, 1, 2].map(|channel| planes[channel * 96 * 96 + at]))
            .collect();
        assert!(rows == again, "epoch {epoch}");
    }
}

#[test]
fn geometry_applies_to_the_upright_picture() {
    let turned = DecodeConfig::default().with_orientation(Orientation::Apply);
    for number in 1..=8 {
        let case = generated_image(&format!("orientation_{number}.jpg"));
        let upright = decode(&case.bytes, &turned).unwrap();
        // More than half of the picture's height, so that nothing is decoded smaller.
        let geometry = Geometry::random_resized_crop(12);
        for epoch in 0..8 {
            let seed = SampleSeed { seed: 5, epoch };
            let draws = Draws::new(seed, b"a.jpg");
            let mut expected = plain(
                &upright,
                &geometry.window(upright.width, upright.height, draws),
                12,
            );
            if geometry.flips(draws) {
                expected = mirrored(&expected, 12);
            }
            let got = place_one(turned, geometry, Layout::Nhwc, seed, "a.jpg", &case.bytes);
            // Rows are resized after columns here, and before them in the turned picture.
            let (mean, most) = difference(&got, &expected);
            assert!(
                mean < 1.0 && most <= 4,
                "orientation {number}, epoch {epoch}: mean {mean}, greatest {most}"
            );
        }
    }
}

#[test]
fn the_centre_is_where_torchvision_cuts_it() {
    let draws = Draws::new(SampleSeed { seed: 0, epoch: 0 }, b"");
    let window = Geometry::resize_centre_crop(256, 224).window(500, 375, draws);
    // 500×375 becomes 341×256; offsets 58.5 → 58 and 16.
    let (x, y) = (500.0 / 341.0, 375.0 / 256.0);
    let expected = [58.0 * x, 16.0 * y, 224.0 * x, 224.0 * y];
    for (got, wanted) in [window.x, window.y, window.width, window.height]
        .into_iter()
        .zip(expected)
    {
        assert!((got - wanted).abs() < 1e-9, "{window:?}");
    }
}

#[test]
fn parameters_without_sense_are_refused() {
    let crop = |scale, ratio, flip| Geometry::random_resized_crop(224).with(scale, ratio, flip);
    let refused = [
        Geometry::random_resized_crop(0),
        Geometry::resize_centre_crop(224, 256),
        crop((0.0, 1.0), (0.75, 1.3), 0.5),
        crop((0.5, 1.5), (0.75, 1.3), 0.5),
        crop((0.5, 1.0), (1.3, 0.75), 0.5),
        crop((0.5, 1.0), (0.75, f64::NAN), 0.5),
        crop((0.5, 1.0), (0.75, 1.3), 1.5),
    ];
    for geometry in refused {
        assert!(geometry.validate().is_err(), "{geometry:?}");
    }
    assert!(Geometry::random_resized_crop(224).validate().is_ok());
}

/// A geometry with other ranges.
trait With {
    fn with(self, scale: (f64, f64), ratio: (f64, f64), flip: f64) -> Geometry;
}

impl With for Geometry {
    fn with(mut self, new_scale: (f64, f64), new_ratio: (f64, f64), new_flip: f64) -> Geometry {
        if let Self::RandomResizedCrop {
            scale, ratio, flip, ..
        } = &mut self
        {
            (*scale, *ratio, *flip) = (new_scale, new_ratio, new_flip);
        }
        self
    }
}

#[test]
fn areas_shapes_and_flips_are_spread_as_they_should_be() {
    let geometry = Geometry::random_resized_crop(224);
    let samples = 20_000_u32;
    let (mut area, mut flips, mut left) = (0.0, 0, 0.0);
    for number in 0..samples {
        let draws = Draws::new(SampleSeed { seed: 0, epoch: 0 }, &number.to_le_bytes());
        let window = geometry.window(1000, 1000, draws);
        area += window.width * window.height / 1e6;
        left += if window.width < 1000.0 {
            window.x / (1000.0 - window.width)
        } else {
            0.5
        };
        flips += u32::from(geometry.flips(draws));
    }
    let mean = |sum: f64| sum / f64::from(samples);
    // torchvision itself has a mean area of 0.48 on a square: the largest areas fit only when nearly square.
    assert!((mean(area) - 0.48).abs() < 0.02, "{}", mean(area));
    assert!((mean(left) - 0.5).abs() < 0.01, "{}", mean(left));
    assert!((mean(f64::from(flips)) - 0.5).abs() < 0.02, "{flips}");
}

proptest! {
    #[test]
    fn a_random_window_lies_inside_and_has_the_shape_asked_for(
        width in 1_u32..4000, height in 1_u32..4000, seed: u64, epoch in 0_u64..100, path: Vec<u8>,
    ) {
        let geometry = Geometry::random_resized_crop(224);
        let draws = Draws::new(SampleSeed { seed, epoch }, &path);
        let window = geometry.window(width, height, draws);
        prop_assert!(window.x >= 0.0 && window.y >= 0.0 && window.width >= 1.0 && window.height >= 1.0);
        prop_assert!(window.x + window.width <= f64::from(width) && window.y + window.height <= f64::from(height));
        for side in [window.x, window.y, window.width, window.height] {
            prop_assert!(side.fract().abs() < f64::EPSILON, "whole pixels");
        }
        let wide = f64::from(width) / f64::from(height);
        if (0.8..1.25).contains(&wide) && width > 200 && height > 200 {
            let shape = window.width / window.height;
            prop_assert!((0.7..1.43).contains(&shape), "{}", shape);
            let area = window.width * window.height / f64::from(width) / f64::from(height);
            prop_assert!((0.07..=1.0).contains(&area), "{}", area);
        }
        prop_assert_eq!(window, geometry.window(width, height, Draws::new(SampleSeed { seed, epoch }, &path)));
    }

    #[test]
    fn a_centre_window_lies_inside(width in 1_u32..4000, height in 1_u32..4000, size in 1_u32..300, more in 0_u32..100) {
        let geometry = Geometry::resize_centre_crop(size + more, size);
        let window = geometry.window(width, height, Draws::new(SampleSeed { seed: 0, epoch: 0 }, b""));
        prop_assert!(window.x >= -1e-9 && window.y >= -1e-9 && window.width > 0.0 && window.height > 0.0);
        prop_assert!(window.x + window.width <= f64::from(width) + 1e-9);
        prop_assert!(window.y + window.height <= f64::from(height) + 1e-9);
    }
}
