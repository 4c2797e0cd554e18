//! Models of real sizes with random weights, so that speed can be measured without a download: for `ponder-bench
//! --shape` and for tests. A shape is a `config.json` and the tensors that it asks for, named as in the published
//! checkpoints.

mod configs;
mod entry;
mod error;
mod layout;
mod names;
mod pooled;
mod recurrent;
mod towers;
mod write;

use std::path::Path;

use protocol::FolderSource;

pub use error::{Error, Result};
pub use names::NAMES;

/// Writes a model of random weights into a folder; `config` is its config.json.
///
/// # Errors
/// [`Error::UnsupportedConfig`] if the tensors of such a config are not known, [`Error::Unwritable`] if the folder
/// cannot be written.
pub fn write_model(config: &serde_json::Value, folder: &Path) -> Result<FolderSource> {
    let entries = layout::entries(config)?;
    write::write(folder, config, &entries).map_err(|source| Error::Unwritable {
        folder: folder.to_owned(),
        source,
    })?;
    Ok(FolderSource {
        reference: folder.display().to_string(),
        path: folder.to_owned(),
        revision: Some("random".into()),
        adapter: None,
    })
}

/// The model of a shape, written below `folder` unless it is there already.
///
/// # Errors
/// [`Error::UnknownShape`], and those of [`write_model`].
pub fn prepare(name: &str, folder: &Path) -> Result<FolderSource> {
    let known = NAMES.contains(&name).then(|| configs::config(name)).flatten();
    let config = known.ok_or_else(|| Error::UnknownShape { name: name.to_owned() })?;
    let path = folder.join(name);
    if !path.join("complete").is_file() {
        write_model(&config, &path)?;
    }
    Ok(FolderSource {
        reference: format!("shape:{name}"),
        path,
        revision: Some("random".into()),
        adapter: None,
    })
}
