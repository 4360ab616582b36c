//! Looking at the image of a sample, where this build can decode.

use loader_core::{Error, ErrorKind, Result, Sample};

/// Whether the orientation that an image carries turns it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Orientation {
    /// As stored.
    #[default]
    Ignore,
    /// Turned as its tag says; sizes follow.
    Apply,
}

/// Size and mean of an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Width, pixels.
    pub width: u32,
    /// Height, pixels.
    pub height: u32,
    /// Means of red, green and blue, 0 to 255.
    pub mean: [f64; 3],
}

/// Decodes images to look at them.
#[derive(Debug, Clone, Default)]
pub struct Pixels {
    #[cfg(feature = "decode")]
    config: decode::DecodeConfig,
}

impl Pixels {
    /// A decoder of whole images.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] in a build without the feature `decode`.
    #[cfg_attr(
        not(feature = "decode"),
        expect(unused_variables, reason = "nothing can be decoded")
    )]
    pub fn new(orientation: Orientation) -> Result<Self> {
        #[cfg(not(feature = "decode"))]
        return Err(Error::new(
            ErrorKind::Usage,
            "this build of farhaul cannot decode: it lacks the feature `decode`",
        ));
        #[cfg(feature = "decode")]
        {
            let orientation = match orientation {
                Orientation::Ignore => decode::Orientation::Ignore,
                Orientation::Apply => decode::Orientation::Apply,
            };
            Ok(Self {
                config: decode::DecodeConfig::default().with_orientation(orientation),
            })
        }
    }

    /// Decodes the first image of a sample.
    ///
    /// # Errors
    /// What is wrong with it, naming the sample; a decoder that panics is [`ErrorKind::Malformed`].
    pub fn of(&self, sample: &Sample) -> Result<Look> {
        let look = || {
            let bytes = sample.image()?;
            self.decode(&bytes)
        };
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(look));
        let broke = || {
            Err(Error::new(
                ErrorKind::Malformed,
                "the image made its decoder break down",
            ))
        };
        caught
            .unwrap_or_else(|_| broke())
            .map_err(|error| error.during("decode").at(sample.path.clone()))
    }

    #[cfg(feature = "decode")]
    fn decode(&self, bytes: &[u8]) -> Result<Look> {
        let image = decode::decode(bytes, &self.config)?;
        Ok(Look {
            width: image.width,
            height: image.height,
            mean: image.mean(),
        })
    }

    #[cfg(not(feature = "decode"))]
    #[expect(
        clippy::unused_self,
        reason = "a build with decoding has a configuration"
    )]
    fn decode(&self, _: &[u8]) -> Result<Look> {
        Err(Error::new(
            ErrorKind::Usage,
            "this build of farhaul cannot decode",
        ))
    }
}
