//! Bytes to pixels: pictures of any common format, decoded, cropped, resized and batched.
//!
//! # What a picture's pixels are
//! RGB of 8 bits. The first frame of an animation, the first page of a document, the default image of an APNG. Alpha is
//! dropped, never blended; 16 bits become 8 by `v >> 8`; CMYK and YCCK become RGB as C'·K'/255 of the stored, inverted inks;
//! colour profiles are ignored. The first bytes decide which format it is, never a name. Broken Exif, profiles or comments
//! and junk around a picture never make it fail; missing or damaged pixels always do, whichever part of it is wanted, unless
//! [`Truncated::Accept`] is asked for.
//!
//! # Accuracy
//! [`decode`] gives what libjpeg-turbo gives with its accurate transform and smooth chroma. Where a [`Geometry`] wants an
//! image much smaller than the part of the JPEG that it shows, the JPEG is decoded at 1/2, 1/4 or 1/8 and resized from
//! there: in photographs the mean difference from full decoding is below 2.5 of 255 levels (`tests/geometry.rs` holds it to
//! that).

mod bmp;
mod bytes;
mod collate;
mod config;
mod draws;
mod exif;
mod format;
mod geometry;
mod gif;
mod image;
mod jpeg;
mod place;
mod png;
mod ragged;
mod raster;
mod render;
mod resize;
mod tiff;
mod webp;
mod window;

pub use collate::{ImageBatch, ImageCollate};
pub use config::{DecodeConfig, Limits, Orientation, Truncated};
pub use draws::Draws;
pub use format::Format;
pub use geometry::Geometry;
pub use image::Image;
pub use place::Layout;
pub use ragged::{RaggedBatch, RaggedCollate};
pub use render::{decode, dimensions};
pub use window::Window;
