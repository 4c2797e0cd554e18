//! Files of the cache, opened without following a link.

use std::fs::{self, File, OpenOptions};
use std::path::Path;

use crate::error::Error;

/// Refuses anything but a file at `path`: a link would lead the writer to another place.
///
/// # Errors
/// [`Error::Trap`].
pub(crate) fn refuse_link(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) {
        true => Err(Error::Trap(path.to_owned())),
        false => Ok(()),
    }
}

/// Opens a file for reading and writing, and creates it if it is missing. Its content stays; a link is refused.
///
/// # Errors
/// [`Error::Trap`], [`Error::Write`].
pub(crate) fn open_file(path: &Path) -> Result<File, Error> {
    refuse_link(path)?;
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    opened.map_err(|source| Error::write(path, source))
}
