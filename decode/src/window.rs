//! Rectangles of pictures: whole pixels and fractions of them.

/// A rectangle of whole pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// The part of a picture that an image shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Left edge, pixels from the left of the picture.
    pub x: f64,
    /// Upper edge, pixels from the top of the picture.
    pub y: f64,
    /// Width, pixels.
    pub width: f64,
    /// Height, pixels.
    pub height: f64,
    /// True where pixels beyond the edges may weigh in (the picture is resized, then cropped); false where the window is cut
    /// out first.
    pub looks_beyond: bool,
}

impl Window {
    /// The window in a picture that is `shrink` times smaller.
    pub(crate) fn shrunk(self, shrink: u32) -> Self {
        let shrink = f64::from(shrink);
        Self {
            x: self.x / shrink,
            y: self.y / shrink,
            width: self.width / shrink,
            height: self.height / shrink,
            ..self
        }
    }

    /// The whole pixels of a `width`×`height` picture that an image of `image_width`×`image_height` depends on.
    pub(crate) fn region(
        &self,
        image_width: u32,
        image_height: u32,
        width: u32,
        height: u32,
    ) -> Region {
        // A triangle filter reaches one pixel of the coarser grid to either side.
        let reach = |span: f64, image: u32| {
            if self.looks_beyond {
                (span / f64::from(image)).max(1.0) + 1.0
            } else {
                0.0
            }
        };
        let (x, width) = whole_span(self.x, self.width, reach(self.width, image_width), width);
        let (y, height) = whole_span(
            self.y,
            self.height,
            reach(self.height, image_height),
            height,
        );
        Region {
            x,
            y,
            width,
            height,
        }
    }
}

/// The whole pixels under `start − reach .. start + length + reach`, inside `0 .. limit`; at least one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0 ..= limit, a u32"
)]
fn whole_span(start: f64, length: f64, reach: f64, limit: u32) -> (u32, u32) {
    // What is computed from quotients may miss a whole number by a hair, which must not cost a pixel.
    const HAIR: f64 = 1e-6;
    let clamp = |value: f64| value.clamp(0.0, f64::from(limit)) as u32;
    let first = clamp((start - reach + HAIR).floor()).min(limit.saturating_sub(1));
    let end = clamp((start + length + reach - HAIR).ceil()).max(first + 1);
    (first, end - first)
}
