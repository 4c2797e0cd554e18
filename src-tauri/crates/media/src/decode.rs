//! Unfolding a picture's file.

use crate::{Error, Result};

/// A picture as a person sees it: turned upright, over white where it is transparent, the first frame of what moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Red, green and blue of each pixel, row by row: `width · height · 3` bytes.
    pub rgb: Vec<u8>,
    /// Whether the file has more frames, which are not shown.
    pub animated: bool,
}

/// Unfolds the first frame of a file. Sizes are checked by its header before.
pub fn decode(bytes: &[u8]) -> Result<Picture> {
    let _ = bytes;
    Err(Error::UnknownKind("this file".into()))
}
