//! The files of images and texts: in a folder beside the database, or in memory for a history that is never written.

use std::collections::{HashMap, HashSet};
use std::io::Result;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use files::Durability;
use protocol::ImageBytes;

/// The files by their ids, the SHA-256 of their bytes. Clones share them.
#[derive(Debug, Clone)]
pub(crate) enum AttachmentFiles {
    /// Files of these names in this folder, which exists once there is one.
    Folder(PathBuf),
    /// Bytes that are gone with the last clone.
    Memory(Arc<Mutex<HashMap<String, ImageBytes>>>),
}

impl AttachmentFiles {
    /// Keeps a file, an identical one once; false if that one was there.
    pub(crate) fn keep(&self, bytes: &ImageBytes) -> Result<bool> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(bytes.id());
                // A file of the right length was written in one step, so it is whole.
                let whole = |file: std::fs::Metadata| file.is_file() && file.len() == bytes.len() as u64;
                if std::fs::metadata(&path).is_ok_and(whole) {
                    return Ok(false);
                }
                files::write_private(&path, bytes, Durability::PowerLoss)?;
                Ok(true)
            }
            Self::Memory(kept) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(kept.insert(bytes.id(), bytes.clone()).is_none())
            }
        }
    }

    /// The file of an id; `None` if it is gone or is another one.
    pub(crate) fn read(&self, sha256: &str) -> Result<Option<ImageBytes>> {
        let bytes = match self {
            Self::Folder(folder) => files::found(std::fs::read(folder.join(sha256)))?.map(ImageBytes::from),
            Self::Memory(kept) => kept.lock().unwrap_or_else(PoisonError::into_inner).get(sha256).cloned(),
        };
        Ok(bytes.filter(|bytes| bytes.id() == sha256))
    }

    /// Removes the files of these names, and those that nobody knows and that are older than `before`; returns how
    /// many.
    pub(crate) fn remove(&self, names: &[String], known: &HashSet<String>, before: i64) -> Result<u64> {
        match self {
            Self::Folder(folder) => remove_files(folder, names, known, before),
            Self::Memory(kept) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(names.iter().filter(|name| kept.remove(*name).is_some()).count() as u64)
            }
        }
    }
}

/// Removes the files of these names, and those that nobody knows and that are older than `before`; returns how many.
fn remove_files(folder: &Path, names: &[String], known: &HashSet<String>, before: i64) -> Result<u64> {
    let mut removed = 0;
    for name in names {
        removed += u64::from(files::found(std::fs::remove_file(folder.join(name)))?.is_some());
    }
    for entry in files::found(std::fs::read_dir(folder))?.into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Nothing but what this program puts there: images, and drafts of theirs that a kill left.
        let ours = ImageBytes::is_id(&name) || name.starts_with(files::DRAFT_PREFIX);
        let written = entry.metadata().and_then(|file| file.modified()).ok();
        let since = written.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let old = since.is_some_and(|since| (since.as_millis() as i64) < before);
        if ours && old && !known.contains(&name) && std::fs::remove_file(entry.path()).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}
