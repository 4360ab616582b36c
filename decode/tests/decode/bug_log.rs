//! Faults that people met with other loaders, by their number in the log of the shared cases.

use std::fs;

use decode::{DecodeConfig, Format, Limits, Orientation, Truncated, decode, dimensions};
use loader_core::ErrorKind;

use crate::support::{generated, generated_image, real_image};

const DEFAULT: fn() -> DecodeConfig = DecodeConfig::default;

fn upright() -> DecodeConfig {
    DEFAULT().with_orientation(Orientation::Apply)
}

#[test]
fn b01_four_inks_become_red_green_and_blue() {
    for name in ["cmyk_adobe0.jpg", "cmyk_adobe2_ycck.jpg"] {
        assert!(generated_image(name).check().is_some());
    }
    if let Some(case) = real_image("pil_sample_cmyk.jpg") {
        assert!(case.check().is_some());
    }
}

#[test]
fn b03_the_first_bytes_decide_and_never_the_name() {
    let cases = generated();
    let wrong: Vec<_> = cases
        .iter()
        .filter(|case| case.name.contains("wrong_ext"))
        .collect();
    let format = |name: &str| {
        let case = wrong.iter().find(|case| case.name.ends_with(name)).unwrap();
        assert!(case.check().is_some());
        Format::of(&case.bytes)
    };
    assert_eq!(format("png.JPEG"), Some(Format::Png));
    assert_eq!(format("jpeg.png"), Some(Format::Jpeg));
    assert_eq!(format("gif.jpg"), Some(Format::Gif));
    assert_eq!(format("webp.jpg"), Some(Format::WebP));
}

#[test]
fn b04_junk_around_the_end_marker_changes_nothing() {
    let plain = generated_image("control.jpg").check().unwrap();
    for name in ["junk_7f_before_eoi.jpg", "extra_after_eoi.jpg"] {
        assert_eq!(generated_image(name).check().unwrap(), plain, "{name}");
    }
    if let Some(case) = real_image("multiple-0xff-before-eoi.jpg") {
        assert!(case.check().is_some());
    }
}

#[test]
fn b08_a_cut_jpeg_is_an_error_unless_parts_are_accepted() {
    let half = generated_image("truncated_half.jpg");
    assert_eq!(half.error(), ErrorKind::Truncated);
    assert_eq!(
        generated_image("truncated_header.jpg").error(),
        ErrorKind::Truncated
    );
    assert_eq!(generated_image("empty.jpg").error(), ErrorKind::Empty);
    let accepting = DEFAULT().with_truncated(Truncated::Accept);
    let part = decode(&half.bytes, &accepting).unwrap();
    assert!(part.is_partial);
    assert_eq!((part.width, part.height), (96, 96));
    assert!(
        !decode(&generated_image("control.jpg").bytes, &accepting)
            .unwrap()
            .is_partial
    );
    assert!(decode(&generated_image("truncated_header.jpg").bytes, &accepting).is_err());
    if let Some(case) = real_image("truncated_jpeg.jpg") {
        assert_eq!(case.error(), ErrorKind::Truncated);
        assert!(decode(&case.bytes, &accepting).unwrap().is_partial);
    }
}

#[test]
fn b08_only_a_missing_end_marker_costs_no_pixel() {
    let plain = generated_image("control.jpg").check().unwrap();
    assert_eq!(generated_image("no_eoi.jpg").check(), Some(plain));
}

#[test]
fn b11_sixteen_bits_keep_their_upper_eight() {
    for name in ["grey16.png", "rgb16.png"] {
        assert!(generated_image(name).check().is_some());
    }
    let ramp = generated_image("grey16.png").check().unwrap();
    let expected: Vec<u8> = (0..64_u32)
        .map(|x| u8::try_from((x * 65_535 / 63) >> 8).unwrap())
        .collect();
    let first: Vec<u8> = ramp
        .pixels
        .chunks(3)
        .take(64)
        .map(|pixel| pixel[0])
        .collect();
    assert_eq!(first, expected);
    assert_eq!(
        decode(&tiff_grey16(&[0, 255, 256, 0x80ff, 0xffff]), &DEFAULT())
            .unwrap()
            .pixels
            .chunks(3)
            .map(|p| p[0])
            .collect::<Vec<_>>(),
        [0, 0, 1, 0x80, 0xff]
    );
    if let Some(case) = real_image("basi0g16.png") {
        assert!(case.check().is_some());
    }
}

/// A TIFF of one row of 16-bit grey.
fn tiff_grey16(values: &[u16]) -> Vec<u8> {
    let mut tiff = b"II*\0\x08\0\0\0".to_vec();
    let width = u32::try_from(values.len()).unwrap();
    let tags = [
        (256, width),
        (257, 1),
        (258, 16),
        (259, 1),
        (262, 1),
        (273, 8 + 2 + 8 * 12 + 4),
        (278, 1),
        (279, width * 2),
    ];
    tiff.extend(u16::try_from(tags.len()).unwrap().to_le_bytes());
    for (tag, value) in tags {
        tiff.extend(u16::to_le_bytes(tag));
        tiff.extend(4_u16.to_le_bytes());
        tiff.extend(1_u32.to_le_bytes());
        tiff.extend(u32::to_le_bytes(value));
    }
    tiff.extend(0_u32.to_le_bytes());
    for value in values {
        tiff.extend(value.to_le_bytes());
    }
    tiff
}

#[test]
fn b12_one_switch_turns_every_format_alike() {
    // Where the four coloured corners of the stored picture lie in the upright one: top left, top right, bottom left, bottom
    // right, as numbers of the stored corners in the same order.
    let upright_corners = [
        [0, 1, 2, 3],
        [1, 0, 3, 2],
        [3, 2, 1, 0],
        [2, 3, 0, 1],
        [0, 2, 1, 3],
        [2, 0, 3, 1],
        [3, 1, 2, 0],
        [1, 3, 0, 2],
    ];
    let colours = [[230, 30, 30], [30, 200, 30], [30, 30, 220], [245, 245, 245]];
    for (number, corners) in (1..).zip(upright_corners) {
        let case = generated_image(&format!("orientation_{number}.jpg"));
        let stored = decode(&case.bytes, &DEFAULT()).unwrap();
        assert_eq!((stored.width, stored.height), (24, 16));
        let turned = decode(&case.bytes, &upright()).unwrap();
        let size = if number > 4 { (16, 24) } else { (24, 16) };
        assert_eq!((turned.width, turned.height), size, "orientation {number}");
        assert_eq!(dimensions(&case.bytes, &upright()).unwrap(), size);
        assert_eq!(dimensions(&case.bytes, &DEFAULT()).unwrap(), (24, 16));
        let places = [
            (3, 3),
            (turned.width - 4, 3),
            (3, turned.height - 4),
            (turned.width - 4, turned.height - 4),
        ];
        for ((x, y), corner) in places.into_iter().zip(corners) {
            let at = ((y * turned.width + x) * 3) as usize;
            let near = |(got, wanted): (&u8, i32)| (i32::from(*got) - wanted).abs() < 12;
            let pixel = &turned.pixels[at..at + 3];
            assert!(
                pixel.iter().zip(colours[corner]).all(near),
                "orientation {number} at {x},{y}: {pixel:?}"
            );
        }
    }
}

#[test]
fn b12_the_switch_holds_for_png_webp_and_tiff() {
    let exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let chunk = |name: &[u8], length: [u8; 4], crc: &[u8]| [&length, name, &exif[..], crc].concat();
    let length = u32::try_from(exif.len()).unwrap();
    let mut png = generated_image("one_bit.png").bytes;
    let crc = flate2::Crc::new();
    let mut crc = crc;
    crc.update(b"eXIf");
    crc.update(exif);
    png.splice(
        33..33,
        chunk(b"eXIf", length.to_be_bytes(), &crc.sum().to_be_bytes()),
    );
    let mut webp = generated_image("still.webp").bytes;
    webp.extend([&b"EXIF"[..], &length.to_le_bytes(), exif].concat());
    for (bytes, stored) in [(png, (16, 4)), (webp, (20, 10))] {
        assert_eq!(dimensions(&bytes, &DEFAULT()).unwrap(), stored);
        let image = decode(&bytes, &upright()).unwrap();
        assert_eq!((image.width, image.height), (stored.1, stored.0));
    }
    if let Some(case) = real_image("g4_orientation_6.tif") {
        assert_eq!(dimensions(&case.bytes, &DEFAULT()).unwrap(), (88, 590));
        assert_eq!(dimensions(&case.bytes, &upright()).unwrap(), (590, 88));
        assert_eq!(decode(&case.bytes, &upright()).unwrap().width, 590);
    }
    if let Some(case) = real_image("orientation_rectangle.jpg") {
        assert_eq!(dimensions(&case.bytes, &upright()).unwrap(), (1, 2));
    }
}

#[test]
fn b13_an_arithmetic_coded_jpeg_is_read() {
    if let Some(case) = real_image("testimgari.jpg") {
        assert!(
            case.check().is_some(),
            "libjpeg-turbo is built with arithmetic decoding"
        );
    }
}

#[test]
fn b15_alpha_is_dropped_and_never_blended() {
    for name in ["palette_trns.png", "rgba.png", "one_bit.png"] {
        assert!(generated_image(name).check().is_some());
    }
    if let Some(case) = real_image("rgba16.png") {
        assert!(case.check().is_some());
    }
}

#[test]
fn b16_an_animation_gives_its_first_frame() {
    for name in ["anim.gif", "anim.webp", "multipage.tif"] {
        let image = generated_image(name).check().unwrap();
        assert_eq!(
            image.pixels.len(),
            image.width as usize * image.height as usize * 3
        );
    }
    for name in ["dispose_bgnd.gif", "random_lossy.webp", "multipage.tiff"] {
        if let Some(case) = real_image(name) {
            assert!(case.check().is_some());
        }
    }
}

/// Memory of this process that is its own, bytes.
fn own_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("RssAnon:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        << 10
}

#[test]
fn b17_a_bomb_is_refused_before_memory_is_asked_for() {
    let mut bombs = vec![generated_image("bomb_header.png").bytes];
    bombs.extend(real_image("max_size.jpg").map(|case| case.bytes));
    // The same for the other formats: headers that declare 65,535 × 65,535 or the most that they can.
    bombs.push(
        [
            &b"GIF89a\xff\xff\xff\xff\0\0\0"[..],
            &[
                0x2c, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 2, 1, 0, 0, 0x3b,
            ],
        ]
        .concat(),
    );
    bombs.push(
        [
            &b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\xff\xff\0\0\xff\xff\0\0\x01\0\x18\0"[..],
            &[0; 40],
        ]
        .concat(),
    );
    bombs.push(
        [
            &b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\0\xff\xff\0"[..],
            b"VP8L\x05\0\0\0\x2f\xff\xff\xff\x0f\0",
        ]
        .concat(),
    );
    let mut tiff = tiff_grey16(&[0; 4]);
    tiff[18..22].copy_from_slice(&65_535_u32.to_le_bytes());
    tiff[30..34].copy_from_slice(&65_535_u32.to_le_bytes());
    bombs.push(tiff);
    let before = own_memory();
    for bomb in &bombs {
        for _ in 0..4 {
            let error = decode(bomb, &DEFAULT()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
            assert_eq!(
                dimensions(bomb, &DEFAULT()).unwrap_err().kind(),
                ErrorKind::TooLarge
            );
        }
    }
    if let Some(case) = real_image("png_decompression_dos.png") {
        assert!(case.check().is_some(), "its text is never inflated");
    }
    let grown = own_memory().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes");
}

#[test]
fn b17_the_limits_hold_for_every_format() {
    for name in [
        "control.jpg",
        "control.png",
        "anim.gif",
        "still.webp",
        "multipage.tif",
    ] {
        let case = generated_image(name);
        let (width, height) = case.size.unwrap();
        let pixels = u64::from(width) * u64::from(height);
        let kind = |limits| {
            decode(&case.bytes, &DEFAULT().with_limits(limits))
                .map_err(|error| error.kind())
                .map(drop)
        };
        assert_eq!(
            kind(Limits::new(pixels - 1, u64::MAX)),
            Err(ErrorKind::TooLarge),
            "{name}"
        );
        assert_eq!(
            kind(Limits::new(u64::MAX, pixels * 3 - 1)),
            Err(ErrorKind::TooLarge),
            "{name}"
        );
        assert_eq!(kind(Limits::new(pixels, 1 << 20)), Ok(()), "{name}");
    }
}

#[test]
fn b19_broken_exif_and_profiles_cost_nothing() {
    let plain = generated_image("control.jpg").check().unwrap();
    for name in ["exif_garbage.jpg", "exif_empty.jpg"] {
        let case = generated_image(name);
        assert_eq!(case.check().unwrap(), plain, "{name}");
        assert_eq!(decode(&case.bytes, &upright()).unwrap(), plain, "{name}");
    }
    for name in ["invalid-exif.jpg", "icc_missing_chunk.jpeg"] {
        if let Some(case) = real_image(name) {
            let image = case.check().unwrap();
            assert_eq!(decode(&case.bytes, &upright()).unwrap(), image, "{name}");
        }
    }
}
