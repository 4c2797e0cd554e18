//! A decoded image.

use crate::pixels::Rgb;

/// An image as a person sees it: turned upright, over white where it is transparent, the first frame of what moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedImage {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Red, green and blue of each pixel, row by row: `width · height · 3` bytes.
    pub rgb: Vec<u8>,
    /// Width and height of the image in its file, turned upright: those above, except for images of more than 32
    /// megapixels, which are halved.
    pub original: (u32, u32),
    /// True if the file has more frames, which are not shown.
    pub animated: bool,
}

/// An image, its size in the file, and true if it moves.
pub(crate) type Unfolded = (Rgb, (u32, u32), bool);

/// An image without other frames.
pub(crate) fn still(rgb: Rgb, original: Option<(u32, u32)>) -> Unfolded {
    let size = original.unwrap_or((rgb.width, rgb.height));
    (rgb, size, false)
}
