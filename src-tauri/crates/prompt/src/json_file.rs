//! The JSON files of a model's folder.

use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};

/// Reads a JSON file; `null` if it is missing.
pub(crate) fn read_json(path: &Path) -> Result<Value> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|source| Error::Json {
            path: path.to_owned(),
            source,
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Value::Null),
        Err(source) => Err(Error::File {
            path: path.to_owned(),
            source,
        }),
    }
}
