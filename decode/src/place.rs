//! From resized pixels to their place in a batch: turned, mirrored, and in the batch's layout.

use serde::{Deserialize, Serialize};

use crate::exif::Turn;

/// The order of a batch's axes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Image, channel, row, column: what PyTorch wants.
    #[default]
    Nchw,
    /// Image, row, column, channel: what TensorFlow, JAX and image files want.
    Nhwc,
}

/// Writes stored pixels (`stored`, RGB) as an upright image of `width`×`height` into `target`.
pub(crate) fn place(
    stored: &[u8],
    turn: Turn,
    flip: bool,
    (width, height): (u32, u32),
    layout: Layout,
    target: &mut [u8],
) {
    let (width, height) = (width as usize, height as usize);
    if turn == Turn::NONE {
        match layout {
            Layout::Nhwc => rows(stored, width, flip, target),
            Layout::Nchw => planes(stored, width, height, flip, target),
        }
        return;
    }
    let (stored_width, stored_height) = if turn.transposes() {
        (height, width)
    } else {
        (width, height)
    };
    let plane = width * height;
    for y in 0..height {
        for x in 0..width {
            let column = if flip { width - 1 - x } else { x };
            let (mut sx, mut sy) = if turn.transposes() {
                (y, column)
            } else {
                (column, y)
            };
            if turn.mirrors_columns() {
                sx = stored_width - 1 - sx;
            }
            if turn.mirrors_rows() {
                sy = stored_height - 1 - sy;
            }
            let pixel = &stored[(sy * stored_width + sx) * 3..][..3];
            let at = y * width + x;
            match layout {
                Layout::Nhwc => target[at * 3..at * 3 + 3].copy_from_slice(pixel),
                Layout::Nchw => {
                    (0..3).for_each(|channel| target[channel * plane + at] = pixel[channel]);
                }
            }
        }
    }
}

fn rows(stored: &[u8], width: usize, flip: bool, target: &mut [u8]) {
    if !flip {
        target.copy_from_slice(stored);
        return;
    }
    for (target, stored) in target
        .chunks_exact_mut(width * 3)
        .zip(stored.chunks_exact(width * 3))
    {
        let mirrored = stored.as_chunks::<3>().0.iter().rev();
        target
            .as_chunks_mut::<3>()
            .0
            .iter_mut()
            .zip(mirrored)
            .for_each(|(target, pixel)| *target = *pixel);
    }
}

fn planes(stored: &[u8], width: usize, height: usize, flip: bool, target: &mut [u8]) {
    let plane = width * height;
    let (red, rest) = target.split_at_mut(plane);
    let (green, blue) = rest.split_at_mut(plane);
    let colours = red
        .chunks_exact_mut(width)
        .zip(green.chunks_exact_mut(width))
        .zip(blue.chunks_exact_mut(width));
    for (((red, green), blue), row) in colours.zip(stored.chunks_exact(width * 3)) {
        let pixels = row.as_chunks::<3>().0;
        let places = red.iter_mut().zip(green).zip(blue);
        let put = |(((red, green), blue), pixel): (((&mut u8, &mut u8), &mut u8), &[u8; 3])| {
            (*red, *green, *blue) = (pixel[0], pixel[1], pixel[2]);
        };
        if flip {
            places.zip(pixels.iter().rev()).for_each(put);
        } else {
            places.zip(pixels).for_each(put);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3×2 stored pixels, numbered.
    const STORED: [u8; 18] = [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6];

    fn turned(orientation: u16, flip: bool, layout: Layout) -> Vec<u8> {
        let turn = Turn::new(orientation).unwrap();
        let mut target = vec![0; 18];
        place(&STORED, turn, flip, turn.size(3, 2), layout, &mut target);
        match layout {
            Layout::Nhwc => target.chunks(3).map(|pixel| pixel[0]).collect(),
            Layout::Nchw => target[6..12].to_vec(),
        }
    }

    #[test]
    fn each_of_the_eight_orientations_stands_upright() {
        // From the Exif definition: where the first stored row and column lie in the upright picture.
        let upright = [
            [1, 2, 3, 4, 5, 6],
            [3, 2, 1, 6, 5, 4],
            [6, 5, 4, 3, 2, 1],
            [4, 5, 6, 1, 2, 3],
            [1, 4, 2, 5, 3, 6],
            [4, 1, 5, 2, 6, 3],
            [6, 3, 5, 2, 4, 1],
            [3, 6, 2, 5, 1, 4],
        ];
        for (number, expected) in (1..).zip(upright) {
            for layout in [Layout::Nhwc, Layout::Nchw] {
                assert_eq!(
                    turned(number, false, layout),
                    expected,
                    "orientation {number}, {layout:?}"
                );
            }
        }
    }

    #[test]
    fn a_mirrored_image_is_mirrored_after_it_is_turned() {
        for layout in [Layout::Nhwc, Layout::Nchw] {
            assert_eq!(turned(1, true, layout), [3, 2, 1, 6, 5, 4]);
            assert_eq!(turned(6, true, layout), [1, 4, 2, 5, 3, 6]);
        }
    }
}
