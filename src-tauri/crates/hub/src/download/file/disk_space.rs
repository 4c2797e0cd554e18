//! Free space on the disk.

use std::path::Path;

use crate::error::Error;

/// Checks that `needed` bytes fit on the disk of `path`, with `margin` bytes left free.
///
/// # Errors
/// [`Error::DiskFull`] if they do not. If the file system does not say, writing decides.
pub fn ensure_free(path: &Path, needed: u64, margin: u64) -> Result<(), Error> {
    let Some(folder) = path.ancestors().find(|folder| folder.is_dir()) else {
        return Ok(());
    };
    match fs4::available_space(folder) {
        Ok(free) if free < needed.saturating_add(margin) => Err(Error::DiskFull {
            path: folder.to_owned(),
            needed: Some((needed, free)),
        }),
        _ => Ok(()),
    }
}
