//! A decoded picture.

/// RGB pixels of a picture: 8 bits a channel, rows from top to bottom without gaps, no colour profile applied.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Image {
    /// Width, pixels.
    pub width: u32,
    /// Height, pixels.
    pub height: u32,
    /// height × width × 3 bytes: red, green, blue.
    pub pixels: Vec<u8>,
    /// True where the file ended early and the pixels after that are grey; only under [`crate::Truncated::Accept`].
    pub is_partial: bool,
}

impl Image {
    /// Means of red, green and blue over all pixels, 0 to 255.
    #[expect(
        clippy::cast_precision_loss,
        reason = "sums of a picture are far below 2⁵³"
    )]
    pub fn mean(&self) -> [f64; 3] {
        let mut sums = [0_u64; 3];
        for pixel in self.pixels.as_chunks::<3>().0 {
            sums.iter_mut()
                .zip(pixel)
                .for_each(|(sum, value)| *sum += u64::from(*value));
        }
        sums.map(|sum| sum as f64 / (self.pixels.len() / 3).max(1) as f64)
    }
}
