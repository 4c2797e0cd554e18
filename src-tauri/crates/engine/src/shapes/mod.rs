//! Models of real sizes with random weights, so that speed can be measured without a download. A shape is a `config.json`
//! and the tensors that it asks for, in the names of the published checkpoints.

mod configs;
mod layout;
mod write;

use std::path::{Path, PathBuf};

use protocol::ModelSource;

pub use configs::NAMES;

use crate::error::{Error, Result};

/// A tensor of a checkpoint.
struct Entry {
    name: String,
    shape: Vec<u64>,
    kind: Kind,
}

/// What a tensor is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Projections and tables, quantised where the shape is: the last axis are the inputs.
    Matrix,
    /// A matrix that checkpoints keep in 16 bits.
    Wide,
    /// Factors around 1.
    Factors,
    /// Small numbers around 0.
    Offsets,
}

/// Writes a model of random weights with these shapes into a folder; `config` is its config.json.
pub fn write_model(config: &serde_json::Value, folder: &Path) -> Result<ModelSource> {
    let entries = layout::entries(config)?;
    write::write(folder, config, &entries).map_err(|error| Error::Unreadable {
        file: folder.display().to_string(),
        reason: error.to_string(),
    })?;
    Ok(ModelSource {
        reference: folder.display().to_string(),
        path: folder.to_owned(),
        revision: Some("random".into()),
    })
}

/// The model of a shape, written below `folder` where it is not there yet.
pub fn prepare(name: &str, folder: &Path) -> Result<ModelSource> {
    let config = configs::config(name)
        .ok_or_else(|| Error::BadRequest(format!("there is no shape `{name}`; the shapes are {}", NAMES.join(", "))))?;
    let path: PathBuf = folder.join(name);
    if !path.join("complete").is_file() {
        write_model(&config, &path)?;
    }
    Ok(ModelSource {
        reference: format!("shape:{name}"),
        path,
        revision: Some("random".into()),
    })
}
