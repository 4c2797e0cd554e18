//! Small JSON files of the data folder.

use std::fs;
use std::path::Path;

use files::{write_private, Durability};
use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::error::Error;

/// Reads a file. A missing or broken one counts as empty, because the content of all of them can be made again.
pub(crate) fn read<T: DeserializeOwned + Default>(path: &Path) -> T {
    let Ok(text) = fs::read(path) else {
        return T::default();
    };
    serde_json::from_slice(&text).unwrap_or_else(|error| {
        tracing::warn!("{} cannot be read and is replaced: {error}", path.display());
        T::default()
    })
}

/// Writes a file in one step, so that a reader finds the old or the new one.
pub(crate) fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let written = serde_json::to_vec(value)
        .map_err(std::io::Error::from)
        .and_then(|text| write_private(path, &text, Durability::PowerLoss));
    written.map_err(|source| Error::write(path, source))
}
