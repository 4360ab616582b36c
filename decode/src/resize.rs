//! Antialiased resizing of RGB pixels.

use fast_image_resize::{
    CropBoxError, FilterType, PixelType, ResizeAlg, ResizeError, ResizeOptions, Resizer,
    images::{CroppedImage, Image, ImageRef},
};
use loader_core::{Error, ErrorKind, Result};

use crate::window::{Region, Window};

/// RGB pixels, rows without gaps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pixels<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// Resizes the window (in pixels of `source`) to `width`×`height` into `target`, by a triangle filter that widens with the
/// scale: what Pillow, torchvision and TensorFlow call antialiased bilinear.
pub(crate) fn resize(
    resizer: &mut Resizer,
    source: Pixels<'_>,
    window: &Window,
    (width, height): (u32, u32),
    target: &mut [u8],
) -> Result<()> {
    let image = ImageRef::new(source.width, source.height, source.bytes, PixelType::U8x3)
        .map_err(broken)?;
    let mut target =
        Image::from_slice_u8(width, height, target, PixelType::U8x3).map_err(broken)?;
    // Cut out first where pixels beyond the edges must not weigh in; fractions are left, from pictures decoded smaller.
    let view = if window.looks_beyond {
        Region {
            x: 0,
            y: 0,
            width: source.width,
            height: source.height,
        }
    } else {
        window.region(width, height, source.width, source.height)
    };
    let view_image =
        CroppedImage::new(&image, view.x, view.y, view.width, view.height).map_err(broken)?;
    let left = (window.x - f64::from(view.x)).max(0.0);
    let top = (window.y - f64::from(view.y)).max(0.0);
    let span_x = window.width.min(f64::from(view.width) - left);
    let span_y = window.height.min(f64::from(view.height) - top);
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(FilterType::Bilinear))
        .crop(left, top, span_x, span_y)
        .use_alpha(false);
    resizer
        .resize(&view_image, &mut target, &options)
        .map_err(|error| match error {
            // A sliver of a picture so long that the window is narrower than the smallest number.
            ResizeError::SrcCroppingError(CropBoxError::WidthOrHeightLessThanZero) => {
                Error::new(ErrorKind::Unsupported, "the window to resize is empty")
            }
            other => broken(other),
        })
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(
        ErrorKind::Internal,
        "pixels do not have the shape that they were made for",
    )
    .caused_by(error)
}
