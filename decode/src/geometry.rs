//! Which part of a picture becomes an image, and how large that is.

use loader_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::{draws::Draws, window::Window};

/// From a picture of any size to an image. It applies to the picture as delivered, after its orientation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Geometry {
    /// The whole picture at its own size.
    Whole,
    /// The shorter side is resized to `resize`, and `size`×`size` pixels are cut from the middle: torchvision's
    /// `Resize(resize)` and `CenterCrop(size)`, antialiased. For evaluation.
    ResizeCentreCrop {
        /// Length of the shorter side, pixels.
        resize: u32,
        /// Side of the image, pixels; at most `resize`.
        size: u32,
    },
    /// A random part of random shape, resized to `size`×`size` with antialiasing, and mirrored at random: the distribution of
    /// torchvision's `RandomResizedCrop` and `RandomHorizontalFlip`. For training.
    RandomResizedCrop {
        /// Side of the image, pixels.
        size: u32,
        /// Least and greatest share of the picture's area.
        scale: (f64, f64),
        /// Least and greatest width ÷ height.
        ratio: (f64, f64),
        /// Probability of mirroring left and right.
        flip: f64,
    },
}

/// How often a part that does not fit is drawn anew before the middle is taken.
const ATTEMPTS: u32 = 10;
/// Draws of one attempt: area, shape, left, top.
const DRAWS_OF_ATTEMPT: u32 = 4;

impl Geometry {
    /// A random part between 8 % and all of the picture, 3:4 to 4:3, mirrored half of the time.
    pub fn random_resized_crop(size: u32) -> Self {
        Self::RandomResizedCrop {
            size,
            scale: (0.08, 1.0),
            ratio: (3.0 / 4.0, 4.0 / 3.0),
            flip: 0.5,
        }
    }

    /// The middle, after the shorter side was resized; 256 and 224 are usual.
    pub fn resize_centre_crop(resize: u32, size: u32) -> Self {
        Self::ResizeCentreCrop { resize, size }
    }

    /// Width and height of every image; `None` where they follow the picture.
    pub fn image_size(&self) -> Option<(u32, u32)> {
        match *self {
            Self::Whole => None,
            Self::ResizeCentreCrop { size, .. } | Self::RandomResizedCrop { size, .. } => {
                Some((size, size))
            }
        }
    }

    /// Refuses parameters that make no sense.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] naming the parameter.
    pub fn validate(&self) -> Result<()> {
        let usage = |message: String| Err(Error::new(ErrorKind::Usage, message));
        let range = |name, (low, high): (f64, f64)| {
            if low > 0.0 && low <= high && high.is_finite() {
                Ok(())
            } else {
                usage(format!("{name} {low}..{high} is no range above 0"))
            }
        };
        let side = |size| {
            if (1..=16_384).contains(&size) {
                Ok(())
            } else {
                usage(format!("an image size of {size} is not in 1..=16384"))
            }
        };
        match *self {
            Self::Whole => Ok(()),
            Self::ResizeCentreCrop { resize, size } => {
                side(resize)?;
                side(size)?;
                if size > resize {
                    usage(format!("a crop of {size} does not fit into {resize}"))
                } else {
                    Ok(())
                }
            }
            Self::RandomResizedCrop {
                size,
                scale,
                ratio,
                flip,
            } => {
                side(size)?;
                range("scale", scale)?;
                range("ratio", ratio)?;
                if scale.1 > 1.0 {
                    return usage(format!(
                        "scale reaches to {}, more than the whole picture",
                        scale.1
                    ));
                }
                if (0.0..=1.0).contains(&flip) {
                    Ok(())
                } else {
                    usage(format!("flip {flip} is no probability"))
                }
            }
        }
    }

    /// The part of a `width`×`height` picture that the image shows.
    pub fn window(&self, width: u32, height: u32, draws: Draws) -> Window {
        match *self {
            Self::Whole => whole(width, height),
            Self::ResizeCentreCrop { resize, size } => centre(width, height, resize, size),
            Self::RandomResizedCrop { scale, ratio, .. } => {
                random(width, height, scale, ratio, draws)
            }
        }
    }

    /// True where the image is mirrored left and right.
    pub fn flips(&self, draws: Draws) -> bool {
        match *self {
            Self::RandomResizedCrop { flip, .. } => draws.unit(ATTEMPTS * DRAWS_OF_ATTEMPT) < flip,
            _ => false,
        }
    }
}

fn whole(width: u32, height: u32) -> Window {
    Window {
        x: 0.0,
        y: 0.0,
        width: width.into(),
        height: height.into(),
        looks_beyond: false,
    }
}

fn centre(width: u32, height: u32, resize: u32, size: u32) -> Window {
    let (w, h) = (f64::from(width), f64::from(height));
    let (side, crop) = (f64::from(resize), f64::from(size));
    // The longer side is cut to a whole number, and offsets are rounded half to even: both as torchvision does.
    let (resized_width, resized_height) = if width <= height {
        (side, (side * h / w).floor())
    } else {
        ((side * w / h).floor(), side)
    };
    let left = ((resized_width - crop) / 2.0).round_ties_even();
    let top = ((resized_height - crop) / 2.0).round_ties_even();
    let (step_x, step_y) = (w / resized_width, h / resized_height);
    Window {
        x: left * step_x,
        y: top * step_y,
        width: crop * step_x,
        height: crop * step_y,
        looks_beyond: true,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "compared with a u32 first"
)]
fn random(width: u32, height: u32, scale: (f64, f64), ratio: (f64, f64), draws: Draws) -> Window {
    let (w, h) = (f64::from(width), f64::from(height));
    let within = |(low, high): (f64, f64), unit: f64| low + (high - low) * unit;
    for attempt in 0..ATTEMPTS {
        let first = attempt * DRAWS_OF_ATTEMPT;
        let area = w * h * within(scale, draws.unit(first));
        let shape = within((ratio.0.ln(), ratio.1.ln()), draws.unit(first + 1)).exp();
        let crop_width = (area * shape).sqrt().round_ties_even();
        let crop_height = (area / shape).sqrt().round_ties_even();
        if (1.0..=w).contains(&crop_width) && (1.0..=h).contains(&crop_height) {
            let x = draws.between(first + 2, 0, width - crop_width as u32);
            let y = draws.between(first + 3, 0, height - crop_height as u32);
            return Window {
                x: x.into(),
                y: y.into(),
                width: crop_width,
                height: crop_height,
                looks_beyond: false,
            };
        }
    }
    // No part of such a shape fits: the middle, as near to the shapes allowed as the picture lets it.
    let shape = (w / h).clamp(ratio.0, ratio.1);
    let (crop_width, crop_height) = if w / h < ratio.0 {
        (w, (w / shape).round_ties_even().clamp(1.0, h))
    } else if w / h > ratio.1 {
        ((h * shape).round_ties_even().clamp(1.0, w), h)
    } else {
        (w, h)
    };
    let (x, y) = (
        ((w - crop_width) / 2.0).floor(),
        ((h - crop_height) / 2.0).floor(),
    );
    Window {
        x,
        y,
        width: crop_width,
        height: crop_height,
        looks_beyond: false,
    }
}
