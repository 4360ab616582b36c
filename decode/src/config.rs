//! What may be decoded, how large, and which way up.

use loader_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// What can be done about a picture beyond the limits.
const MAKE_SMALLER: &str =
    "scale the picture down before the ingest, or leave it out with on_error=\"skip\"";

/// How bytes become pixels. The default is right for training: as stored, whole or not at all, bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct DecodeConfig {
    /// The largest picture that is decoded.
    pub limits: Limits,
    /// Whether the orientation that a picture carries turns its pixels. Default: [`Orientation::Ignore`].
    pub orientation: Orientation,
    /// What a picture is worth whose data end early. Default: [`Truncated::Error`].
    pub truncated: Truncated,
}

impl DecodeConfig {
    /// This configuration with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// This configuration with another treatment of the orientation.
    #[must_use]
    pub fn with_orientation(mut self, orientation: Orientation) -> Self {
        self.orientation = orientation;
        self
    }

    /// This configuration with another treatment of pictures that end early.
    #[must_use]
    pub fn with_truncated(mut self, truncated: Truncated) -> Self {
        self.truncated = truncated;
        self
    }
}

/// Bounds that are compared with the header, before memory for pixels is asked for, in every format alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// Most pixels (width × height as stored) of a picture. Default: 178,956,970, as Pillow refuses more. More of it costs
    /// three bytes a pixel and thread.
    pub max_pixels: u64,
    /// Most memory for one picture in bytes: its RGB pixels and what its decoder holds besides (16-bit rows, coefficients of
    /// a progressive JPEG, a canvas with alpha). Default: 2 GiB.
    pub max_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_pixels: 178_956_970,
            max_bytes: 2 << 30,
        }
    }
}

impl Limits {
    /// Limits of so many pixels and bytes.
    pub fn new(max_pixels: u64, max_bytes: u64) -> Self {
        Self {
            max_pixels,
            max_bytes,
        }
    }

    /// Refuses a picture that is empty or too large, given what a pixel costs while it is decoded.
    pub(crate) fn check(&self, width: u32, height: u32, bytes_per_pixel: u64) -> Result<()> {
        if width == 0 || height == 0 {
            return Err(Error::new(
                ErrorKind::Malformed,
                format!("a picture of {width}x{height} has no pixels"),
            ));
        }
        let pixels = u64::from(width) * u64::from(height);
        if pixels > self.max_pixels {
            let message = format!(
                "{width}x{height} is {pixels} pixels, more than the {} allowed",
                self.max_pixels
            );
            return Err(Error::new(ErrorKind::TooLarge, message).hint(MAKE_SMALLER));
        }
        let bytes = pixels.saturating_mul(bytes_per_pixel);
        if bytes > self.max_bytes {
            let message = format!(
                "{width}x{height} takes {bytes} bytes to decode, more than the {} allowed",
                self.max_bytes
            );
            return Err(Error::new(ErrorKind::TooLarge, message).hint(MAKE_SMALLER));
        }
        Ok(())
    }
}

/// What becomes of the orientation in Exif (JPEG, PNG, WebP) or in the tag of that name (TIFF): one switch, one meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Orientation {
    /// Pixels come as they are stored. What most training pipelines do.
    #[default]
    Ignore,
    /// Pixels are turned and mirrored as the tag says; sizes that are reported follow. A tag that cannot be read, or that
    /// is none of 1 to 8, counts as absent.
    Apply,
}

/// What becomes of a picture whose coded data end before its pixels do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncated {
    /// It is [`ErrorKind::Truncated`], whichever part of it is wanted.
    #[default]
    Error,
    /// What arrived of a JPEG is delivered, the rest grey, and marked ([`crate::Image::is_partial`]). Other formats, and
    /// files cut inside their header, still fail.
    Accept,
}
