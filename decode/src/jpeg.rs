//! JPEG by libjpeg-turbo: any part of a picture, at 1/1, 1/2, 1/4 or 1/8 of its size.

use loader_core::{Error, ErrorKind, Result};

use crate::{
    config::{DecodeConfig, Limits, Orientation, Truncated},
    exif::{Turn, orientation_of_block},
    jpeg::handle::{Bounds, Handle, Opened},
    window::{Region, Window},
};

mod handle;

/// More scans than any encoder makes of a picture; each costs a pass over all of it.
const MAX_SCANS: u16 = 256;

/// A reusable decoder, made at the first picture.
#[derive(Debug, Default)]
pub(crate) struct JpegDecoder {
    handle: Option<Handle>,
    /// Rows of four-component pictures, before they are RGB.
    pub(crate) inks: Vec<u8>,
}

/// A JPEG whose header is read and within the limits.
#[derive(Debug)]
pub(crate) struct JpegPicture<'a> {
    opened: Opened<'a>,
    inks: &'a mut Vec<u8>,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) turn: Turn,
    /// True where the coded data have to be read to the last row, because they may end before it.
    read_on: bool,
}

impl JpegDecoder {
    /// Gives back rows that take more than so many bytes.
    pub(crate) fn trim(&mut self, kept_bytes: usize) {
        if self.inks.capacity() > kept_bytes {
            self.inks = Vec::new();
        }
    }

    /// Reads the header and holds it against the limits.
    pub(crate) fn open<'a>(
        &'a mut self,
        bytes: &'a [u8],
        config: &DecodeConfig,
    ) -> Result<JpegPicture<'a>> {
        let handle = match &mut self.handle {
            Some(handle) => handle,
            empty => empty.insert(Handle::new()?),
        };
        let accept_partial = config.truncated == Truncated::Accept;
        let bounds = Bounds {
            memory: config.limits.max_bytes,
            scans: MAX_SCANS,
            accept_partial,
        };
        if is_lossless(bytes) {
            return Err(Error::new(ErrorKind::Unsupported, "JPEG: lossless coding"));
        }
        let opened = handle.open(bytes, bounds)?;
        let header = opened.header;
        check(&config.limits, &header)?;
        let turn = match config.orientation {
            Orientation::Ignore => Turn::NONE,
            Orientation::Apply => stored_orientation(bytes).unwrap_or(Turn::NONE),
        };
        Ok(JpegPicture {
            opened,
            inks: &mut self.inks,
            width: header.width,
            height: header.height,
            turn,
            read_on: accept_partial || !is_closed(bytes),
        })
    }
}

fn check(limits: &Limits, header: &handle::Header) -> Result<()> {
    // 16-bit coefficients of every component wait until the last scan has come.
    let coefficients = if header.is_multi_scan() {
        2 * u64::from(header.components)
    } else {
        0
    };
    let inks = if header.is_cmyk() { 4 } else { 0 };
    limits.check(header.width, header.height, 3 + inks + coefficients)
}

/// RGB pixels of a part of a picture, and where that part lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// The scale that it was decoded at: 1, 2, 4 or 8 stored pixels for one of these.
    pub(crate) shrink: u32,
    /// Where it lies in the picture of that scale.
    pub(crate) region: Region,
    /// True where some of it was missing.
    pub(crate) is_partial: bool,
}

impl JpegPicture<'_> {
    /// All pixels, as stored.
    pub(crate) fn whole(self, pixels: &mut Vec<u8>) -> Result<bool> {
        let region = Region {
            x: 0,
            y: 0,
            width: self.width,
            height: self.height,
        };
        Ok(self.region(1, region, pixels)?.is_partial)
    }

    /// What is needed to make an image of `width`×`height` of the window.
    ///
    /// The picture is decoded at the smallest scale at which the window is still no smaller than the image.
    pub(crate) fn window(
        self,
        window: &Window,
        width: u32,
        height: u32,
        pixels: &mut Vec<u8>,
    ) -> Result<Part> {
        let fits = |shrink: u32| {
            let shrink = f64::from(shrink);
            window.width >= shrink * f64::from(width) && window.height >= shrink * f64::from(height)
        };
        let shrink = [8, 4, 2]
            .into_iter()
            .find(|shrink| fits(*shrink))
            .unwrap_or(1);
        let (scaled_width, scaled_height) =
            (self.width.div_ceil(shrink), self.height.div_ceil(shrink));
        let scaled = window.shrunk(shrink);
        let region = scaled.region(width, height, scaled_width, scaled_height);
        self.region(shrink, region, pixels)
    }

    fn region(self, shrink: u32, region: Region, pixels: &mut Vec<u8>) -> Result<Part> {
        let header = self.opened.header;
        let eighths = u8::try_from(8 / shrink).expect("shrink is 1, 2, 4 or 8");
        // The smooth upsampling of chroma looks one chroma sample to either side; at the edge of what is decoded it
        // invents one, which must not be in the region.
        let margin = header.mcu_width / 8;
        let left = region.x.saturating_sub(margin);
        let right = (region.x + region.width + margin).min(self.width.div_ceil(shrink));
        let started = self.opened.start(eighths, left, right - left)?;
        let columns = started.columns;
        let bytes = columns.width as usize * region.height as usize * header.pixel_bytes();
        let is_partial = if header.is_cmyk() {
            let inks = grown(self.inks, bytes);
            let is_partial = started.read(region.y, region.height, inks, self.read_on)?;
            ink_to_rgb(inks, grown(pixels, bytes / 4 * 3));
            is_partial
        } else {
            let pixels = grown(pixels, bytes);
            started.read(region.y, region.height, pixels, self.read_on)?
        };
        let region = Region {
            x: columns.x,
            width: columns.width,
            ..region
        };
        Ok(Part {
            shrink,
            region,
            is_partial,
        })
    }
}

/// The first `bytes` bytes of a buffer that is kept; it is cleared only where it grows.
fn grown(buffer: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    if buffer.len() < bytes {
        buffer.resize(bytes, 0);
    }
    &mut buffer[..bytes]
}

/// Inks are stored inverted, so that C'·K'/255 is the red of a pixel. No colour profile is applied.
fn ink_to_rgb(inks: &[u8], pixels: &mut [u8]) {
    for (pixel, ink) in pixels
        .as_chunks_mut::<3>()
        .0
        .iter_mut()
        .zip(inks.as_chunks::<4>().0)
    {
        for channel in 0..3 {
            pixel[channel] = scale_byte(ink[channel], ink[3]);
        }
    }
}

/// a·b/255, rounded.
pub(crate) fn scale_byte(a: u8, b: u8) -> u8 {
    u8::try_from((u16::from(a) * u16::from(b) + 127) / 255).expect("a·b/255 is at most 255")
}

/// The orientation in the first Exif block that has one.
fn stored_orientation(bytes: &[u8]) -> Option<Turn> {
    let is_exif =
        |(marker, segment): &(u8, &[u8])| *marker == 0xe1 && segment.starts_with(b"Exif\0\0");
    segments(bytes)
        .filter(is_exif)
        .find_map(|(_, segment)| orientation_of_block(segment))
}

/// True where the frame is of a lossless kind, of which no part can be decoded by itself.
fn is_lossless(bytes: &[u8]) -> bool {
    segments(bytes).any(|(marker, _)| matches!(marker, 0xc3 | 0xc7 | 0xcb | 0xcf))
}

/// True where the coded data of the first scan run into an end marker, with nothing between that does not belong there.
///
/// A file that was cut has no such marker, so all of it is read and the cut comes out whatever part is wanted. Where there is
/// one, what lies below the part that is wanted need not be decoded: a third of the time of a large picture.
fn is_closed(bytes: &[u8]) -> bool {
    let Some(mut rest) = coded_data(bytes) else {
        return false;
    };
    while let Some(at) = memchr::memchr(0xff, rest) {
        rest = &rest[at + 1..];
        match rest.first() {
            // A stuffed zero, a restart marker, or one fill byte of several.
            Some(0x00 | 0xd0..=0xd7 | 0xff) => {}
            marker => return marker == Some(&0xd9),
        }
    }
    false
}

/// What follows the header of the first scan.
fn coded_data(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = segments(bytes);
    rest.by_ref().for_each(drop);
    let scan = bytes.get(rest.at..)?;
    let length = usize::from(u16::from_be_bytes(scan.get(..2)?.try_into().ok()?));
    scan.get(length..)
}

/// The segments before the first scan: their marker and what is in them.
fn segments(bytes: &[u8]) -> Segments<'_> {
    Segments { bytes, at: 2 }
}

/// Walks from marker to marker; once it has ended, `at` is behind the marker of the first scan.
struct Segments<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Segments<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            let start = memchr::memchr(0xff, rest)?;
            let fill = rest[start..].iter().position(|byte| *byte != 0xff)?;
            let marker = rest[start + fill];
            let segment = &rest[start + fill + 1..];
            match marker {
                0xd8 | 0x01 | 0x00 | 0xd0..=0xd7 => self.at += start + fill + 1,
                0xd9 | 0xda => {
                    self.at += start + fill + 1;
                    return None;
                }
                _ => {
                    let length = segment.get(..2)?.try_into().ok()?;
                    let length = usize::from(u16::from_be_bytes(length));
                    let content = segment.get(2..length)?;
                    self.at += start + fill + 1 + length;
                    return Some((marker, content));
                }
            }
        }
    }
}

/// Decodes one JPEG that is part of another file, such as a strip of a TIFF.
pub(crate) fn decode_embedded(bytes: &[u8], config: &DecodeConfig) -> Result<(u32, u32, Vec<u8>)> {
    let mut decoder = JpegDecoder::default();
    let mut pixels = Vec::new();
    let config = config
        .with_orientation(Orientation::Ignore)
        .with_truncated(Truncated::Error);
    let picture = decoder.open(bytes, &config)?;
    let (width, height) = (picture.width, picture.height);
    picture
        .whole(&mut pixels)
        .map_err(|error: Error| error.during("decode"))?;
    Ok((width, height, pixels))
}
