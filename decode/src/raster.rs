//! Pixels of any kind to RGB, in the buffer where they are.

/// The size of what was decoded, as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// RGBA to RGB: the colour stays, however transparent it was.
pub(crate) fn drop_alpha(pixels: &mut Vec<u8>) {
    let count = pixels.len() / 4;
    for pixel in 0..count {
        // Always forwards: what is written is never read again.
        pixels.copy_within(pixel * 4..pixel * 4 + 3, pixel * 3);
    }
    pixels.truncate(count * 3);
}

/// Grey, with whatever follows it in `stride` bytes a pixel, to RGB.
pub(crate) fn grey_to_rgb(pixels: &mut Vec<u8>, stride: usize) {
    let count = pixels.len() / stride;
    let grey: Vec<u8> = pixels.iter().step_by(stride).copied().collect();
    pixels.resize(count * 3, 0);
    pixels
        .as_chunks_mut::<3>()
        .0
        .iter_mut()
        .zip(grey)
        .for_each(|(pixel, grey)| *pixel = [grey; 3]);
}
