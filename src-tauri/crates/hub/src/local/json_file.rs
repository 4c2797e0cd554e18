//! Small JSON files of the data folder: when a model last answered, what was read of each model.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use files::{write_private, Durability};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Reads a file; one that is missing or broken counts as empty, because all of them can be made again.
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
    written.map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// When models last answered, by reference, in milliseconds since 1970.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LastUsed(pub BTreeMap<String, i64>);
