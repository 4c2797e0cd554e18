//! The file list that huggingface_hub stores next to its snapshots: `trees/<commit>.json`. It tells an incomplete
//! snapshot without a request.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use api::FileFault;
use serde::Deserialize;

use crate::cache::model_files::model_files;
use crate::cache::RemoteFile;
use crate::cache::{Etag, FilePath, MOST_FILES};
use crate::local::integrity::Fault;

/// Limit of a list, in bytes.
const LARGEST: u64 = 16 << 20;
/// The only known format.
const FORMAT: u32 = 1;

#[derive(Deserialize)]
struct Tree {
    format_version: u32,
    files: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    size: u64,
    blob_id: String,
    lfs_sha256: Option<String>,
    lfs_size: Option<u64>,
}

/// The path of the list of a snapshot in the cache; `None` for other folders.
pub(crate) fn place(snapshot: &Path) -> Option<std::path::PathBuf> {
    let snapshots = snapshot
        .parent()
        .filter(|parent| parent.file_name().is_some_and(|name| name == "snapshots"))?;
    let commit = snapshot.file_name()?.to_str()?;
    Some(snapshots.parent()?.join("trees").join(format!("{commit}.json")))
}

/// The files of the list that a model needs; `None` if there is no list that can be read.
pub(crate) fn listed(snapshot: &Path) -> Option<Vec<RemoteFile>> {
    let place = place(snapshot)?;
    fs::metadata(&place)
        .ok()
        .filter(|meta| meta.is_file() && meta.len() <= LARGEST)?;
    let tree: Tree = serde_json::from_slice(&fs::read(place).ok()?).ok()?;
    if tree.format_version != FORMAT || tree.files.len() > MOST_FILES {
        return None;
    }
    let wanted = model_files(tree.files.keys().map(String::as_str));
    let files = tree.files.iter().filter(|(path, _)| wanted.contains(path.as_str()));
    files
        .map(|(path, entry)| {
            Some(RemoteFile {
                path: FilePath::new(path).ok()?,
                bytes: entry.lfs_size.unwrap_or(entry.size),
                etag: Etag::new(entry.lfs_sha256.as_ref().unwrap_or(&entry.blob_id)).ok()?,
            })
        })
        .collect()
}

/// True if a model needs this file to run. Other programs leave out the card and the license.
pub(crate) fn essential(path: &str) -> bool {
    let endings = [
        ".json",
        ".jinja",
        ".safetensors",
        ".model",
        ".tiktoken",
        "merges.txt",
        "vocab.txt",
    ];
    endings.iter().any(|ending| path.ends_with(ending))
}

/// The first file of the list that the snapshot lacks.
pub(crate) fn first_missing(snapshot: &Path) -> Option<Fault> {
    let missing = listed(snapshot)?
        .into_iter()
        .find(|file| essential(file.path.as_str()) && !file.path.under(snapshot).is_file())?;
    Some(Fault::new(missing.path.as_str(), FileFault::Missing, "is missing"))
}
