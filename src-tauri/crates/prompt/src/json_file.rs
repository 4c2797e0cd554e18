//! The text and JSON files of a model's folder.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};

/// Reads a text file; `None` if it is missing.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>> {
    found(path, std::fs::read_to_string(path))
}

/// The contents of a file; `None` if it is missing.
fn found<T>(path: &Path, read: std::io::Result<T>) -> Result<Option<T>> {
    match read {
        Ok(contents) => Ok(Some(contents)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::File {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Reads a JSON file; `null` if it is missing.
pub(crate) fn read_json(path: &Path) -> Result<Value> {
    let Some(bytes) = found(path, std::fs::read(path))? else {
        return Ok(Value::Null);
    };
    serde_json::from_slice(&bytes).map_err(|source| Error::Json {
        path: path.to_owned(),
        source,
    })
}
