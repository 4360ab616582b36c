//! The way of one picture: bytes, pixels, window, image.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
};

use fast_image_resize::Resizer;
use loader_core::{Error, ErrorKind, Result};

use crate::{
    bmp,
    config::{DecodeConfig, Limits, Orientation},
    draws::Draws,
    exif::Turn,
    format::Format,
    geometry::Geometry,
    gif,
    image::Image,
    jpeg::{JpegDecoder, Part},
    place::{Layout, place},
    png,
    raster::Raw,
    resize::{Pixels, resize},
    tiff, webp,
    window::{Region, Window},
};

/// What a thread keeps from picture to picture, so that none of it is made or cleared anew.
#[derive(Debug, Default)]
struct Scratch {
    jpeg: JpegDecoder,
    resizer: Resizer,
    /// Decoded pixels.
    pixels: Vec<u8>,
    /// Resized pixels that are turned, mirrored or split into planes.
    resized: Vec<u8>,
}

impl Scratch {
    /// Gives back the buffers that one huge picture has grown.
    fn trim(&mut self) {
        for buffer in [&mut self.pixels, &mut self.resized] {
            if buffer.capacity() > KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
        if self.resizer.size_of_internal_buffers() > KEPT_BYTES {
            self.resizer.reset_internal_buffers();
        }
        self.jpeg.trim(KEPT_BYTES);
    }
}

/// A buffer that has grown beyond this is given back after the picture that needed it, bytes.
const KEPT_BYTES: usize = 64 << 20;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Runs `work` with this thread's scratch, and turns a panic of a decoder into an error of the sample.
fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> Result<T>) -> Result<T> {
    SCRATCH.with(|scratch| {
        let Ok(mut scratch) = scratch.try_borrow_mut() else {
            return Err(Error::new(
                ErrorKind::Internal,
                "a decoder was entered twice on one thread",
            ));
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut scratch))).unwrap_or_else(|_| {
            // What the panic left behind is not to be trusted.
            *scratch = Scratch::default();
            Err(Error::new(
                ErrorKind::Malformed,
                "the decoder panicked on this picture",
            ))
        });
        scratch.trim();
        outcome.map_err(|error| error.during("decode"))
    })
}

/// Decodes a picture of any known format to RGB.
///
/// # Errors
/// [`ErrorKind::Empty`], [`ErrorKind::Truncated`], [`ErrorKind::Malformed`], [`ErrorKind::Unsupported`] or
/// [`ErrorKind::TooLarge`]. Never a panic, whatever the bytes.
pub fn decode(bytes: &[u8], config: &DecodeConfig) -> Result<Image> {
    with_scratch(|scratch| {
        let mut pixels = Vec::new();
        let (raw, turn, is_partial) = whole(&mut scratch.jpeg, bytes, config, &mut pixels)?;
        let (width, height) = turn.size(raw.width, raw.height);
        pixels.truncate(raw.width as usize * raw.height as usize * 3);
        if turn != Turn::NONE {
            let mut upright = vec![0; pixels.len()];
            place(
                &pixels,
                turn,
                false,
                (width, height),
                Layout::Nhwc,
                &mut upright,
            );
            pixels = upright;
        }
        Ok(Image {
            width,
            height,
            pixels,
            is_partial,
        })
    })
}

/// Width and height of the picture that [`decode`] would deliver, from its header alone.
///
/// # Errors
/// As [`decode`], as far as the header shows.
pub fn dimensions(bytes: &[u8], config: &DecodeConfig) -> Result<(u32, u32)> {
    with_scratch(|scratch| {
        let format = Format::sniff(bytes)?;
        if format == Format::Jpeg {
            let picture = scratch.jpeg.open(bytes, config)?;
            return Ok(picture.turn.size(picture.width, picture.height));
        }
        let (width, height) = size_of(format, bytes, &config.limits)?;
        Ok(turn_of(format, bytes, config).size(width, height))
    })
}

fn size_of(format: Format, bytes: &[u8], limits: &Limits) -> Result<(u32, u32)> {
    match format {
        Format::Jpeg => Err(Error::new(
            ErrorKind::Internal,
            "a JPEG has a decoder of its own",
        )),
        Format::Png => png::size(bytes, limits),
        Format::WebP => webp::size(bytes, limits),
        Format::Tiff => tiff::size(bytes, limits),
        Format::Gif => gif::size(bytes, limits),
        Format::Bmp => bmp::size(bytes, limits),
    }
}

fn turn_of(format: Format, bytes: &[u8], config: &DecodeConfig) -> Turn {
    if config.orientation == Orientation::Ignore {
        return Turn::NONE;
    }
    let found = match format {
        Format::Png => png::orientation(bytes),
        Format::WebP => webp::orientation(bytes),
        Format::Tiff => crate::exif::orientation(bytes),
        // A JPEG's is read by its decoder; the others have none.
        Format::Jpeg | Format::Gif | Format::Bmp => None,
    };
    found.unwrap_or(Turn::NONE)
}

/// The whole picture as stored, at the start of `pixels`; how it has to be turned; whether some of it is missing.
fn whole(
    jpeg: &mut JpegDecoder,
    bytes: &[u8],
    config: &DecodeConfig,
    pixels: &mut Vec<u8>,
) -> Result<(Raw, Turn, bool)> {
    let format = Format::sniff(bytes)?;
    let limits = &config.limits;
    let raw = match format {
        Format::Jpeg => {
            let picture = jpeg.open(bytes, config)?;
            let (raw, turn) = (
                Raw {
                    width: picture.width,
                    height: picture.height,
                },
                picture.turn,
            );
            let is_partial = picture.whole(pixels)?;
            return Ok((raw, turn, is_partial));
        }
        Format::Png => png::decode(bytes, limits, pixels)?,
        Format::WebP => webp::decode(bytes, limits, pixels)?,
        Format::Tiff => tiff::decode(bytes, config, pixels)?,
        Format::Gif => gif::decode(bytes, limits, pixels)?,
        Format::Bmp => bmp::decode(bytes, limits, pixels)?,
    };
    Ok((raw, turn_of(format, bytes, config), false))
}

/// Decodes the part of a picture that `geometry` wants, resizes it to `size` and puts it into `target`, which holds exactly
/// one image. True where pixels were missing.
pub(crate) fn render(
    bytes: &[u8],
    config: &DecodeConfig,
    geometry: &Geometry,
    draws: Draws,
    layout: Layout,
    size: (u32, u32),
    target: &mut [u8],
) -> Result<bool> {
    with_scratch(|scratch| {
        let Scratch {
            jpeg,
            resizer,
            pixels,
            resized,
        } = scratch;
        let (part, window, turn) = if Format::sniff(bytes)? == Format::Jpeg {
            let picture = jpeg.open(bytes, config)?;
            let turn = picture.turn;
            let window = stored_window(geometry, picture.width, picture.height, turn, draws);
            let (width, height) = turn.size(size.0, size.1);
            (
                picture.window(&window, width, height, pixels)?,
                window,
                turn,
            )
        } else {
            let (raw, turn, is_partial) = whole(jpeg, bytes, config, pixels)?;
            let region = Region {
                x: 0,
                y: 0,
                width: raw.width,
                height: raw.height,
            };
            (
                Part {
                    shrink: 1,
                    region,
                    is_partial,
                },
                stored_window(geometry, raw.width, raw.height, turn, draws),
                turn,
            )
        };
        let region = part.region;
        let source = Pixels {
            bytes: &pixels[..region.width as usize * region.height as usize * 3],
            width: region.width,
            height: region.height,
        };
        let mut window = window.shrunk(part.shrink);
        window.x -= f64::from(region.x);
        window.y -= f64::from(region.y);
        let flip = geometry.flips(draws);
        let stored_size = turn.size(size.0, size.1);
        if layout == Layout::Nhwc && !flip && turn == Turn::NONE {
            resize(resizer, source, &window, stored_size, target)?;
        } else {
            resized.resize(target.len(), 0);
            resize(resizer, source, &window, stored_size, resized)?;
            place(resized, turn, flip, size, layout, target);
        }
        Ok(part.is_partial)
    })
}

/// The window of the upright picture, in pixels as they are stored.
fn stored_window(geometry: &Geometry, width: u32, height: u32, turn: Turn, draws: Draws) -> Window {
    let (upright_width, upright_height) = turn.size(width, height);
    let mut window = geometry.window(upright_width, upright_height, draws);
    if turn.transposes() {
        window = Window {
            x: window.y,
            y: window.x,
            width: window.height,
            height: window.width,
            ..window
        };
    }
    if turn.mirrors_columns() {
        window.x = f64::from(width) - window.x - window.width;
    }
    if turn.mirrors_rows() {
        window.y = f64::from(height) - window.y - window.height;
    }
    window
}

/// As [`render`], into an image of its own; [`Geometry::Whole`] keeps the picture's size.
pub(crate) fn render_image(
    bytes: &[u8],
    config: &DecodeConfig,
    geometry: &Geometry,
    draws: Draws,
) -> Result<Image> {
    let Some((width, height)) = geometry.image_size() else {
        return decode(bytes, config);
    };
    let mut pixels = vec![0; width as usize * height as usize * 3];
    let is_partial = render(
        bytes,
        config,
        geometry,
        draws,
        Layout::Nhwc,
        (width, height),
        &mut pixels,
    )?;
    Ok(Image {
        width,
        height,
        pixels,
        is_partial,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that this thread keeps.
    fn kept() -> [usize; 3] {
        let sizes = |scratch: &mut Scratch| {
            Ok([
                scratch.pixels.capacity(),
                scratch.resized.capacity(),
                scratch.jpeg.inks.capacity(),
            ])
        };
        with_scratch(sizes).unwrap()
    }

    #[test]
    fn what_a_huge_picture_needed_is_given_back_and_what_a_usual_one_needed_is_kept() {
        let need = |bytes: usize| {
            let grow = |scratch: &mut Scratch| {
                for buffer in [
                    &mut scratch.pixels,
                    &mut scratch.resized,
                    &mut scratch.jpeg.inks,
                ] {
                    buffer.reserve_exact(bytes);
                }
                Ok(())
            };
            with_scratch(grow).unwrap();
        };
        need(1 << 20);
        assert_eq!(kept(), [1 << 20; 3]);
        need(KEPT_BYTES + 1);
        assert_eq!(kept(), [0; 3]);
    }
}
