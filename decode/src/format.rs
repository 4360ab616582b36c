//! Which format bytes are in: the first bytes decide, never a name.

use loader_core::{Error, ErrorKind, Result, identity::display_bytes};

/// A picture format that can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// JPEG: baseline, progressive, arithmetic coded; 8 bits.
    Jpeg,
    /// PNG and APNG.
    Png,
    /// WebP, lossy, lossless and animated.
    WebP,
    /// TIFF, both byte orders.
    Tiff,
    /// GIF.
    Gif,
    /// Windows and OS/2 bitmaps.
    Bmp,
}

impl Format {
    /// The format that the first bytes stand for; `None` for any other.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Some(Self::WebP),
            [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => Some(Self::Tiff),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'B', b'M', ..] => Some(Self::Bmp),
            _ => None,
        }
    }

    /// As [`of`](Self::of), with the error that a sample deserves.
    pub(crate) fn sniff(bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Err(Error::new(ErrorKind::Empty, "no bytes"));
        }
        Self::of(bytes).ok_or_else(|| {
            const MAGICS: [&[u8]; 5] = [
                &[0xff, 0xd8, 0xff],
                b"\x89PNG\r\n\x1a\n",
                b"RIFF",
                b"II*\0",
                b"GIF89a",
            ];
            if MAGICS.iter().any(|magic| magic.starts_with(bytes)) {
                return Error::new(ErrorKind::Truncated, format!("only {} bytes", bytes.len()));
            }
            let start = display_bytes(&bytes[..bytes.len().min(8)]);
            Error::new(
                ErrorKind::Unsupported,
                format!("no known picture format starts with {start:?}"),
            )
            .hint("JPEG, PNG, WebP, TIFF, GIF and BMP are read")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_picture_say_how_they_start() {
        assert_eq!(Format::sniff(b"").unwrap_err().kind(), ErrorKind::Empty);
        assert_eq!(
            Format::sniff(&[0xff, 0xd8]).unwrap_err().kind(),
            ErrorKind::Truncated
        );
        let error = Format::sniff(b"<html><body>").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("<html><b"), "{error}");
    }
}
