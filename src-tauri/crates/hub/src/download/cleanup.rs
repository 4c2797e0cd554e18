//! Removal of the leftovers of a download.

use std::collections::BTreeSet;
use std::fs;

use files::DRAFT_PREFIX;

use super::file::partial::discard;
use crate::cache::{entries, Etag, Lock, Repository};

/// Removes the partial files of a repository and the blobs that no snapshot uses, unless another program works on them,
/// and the folder if that leaves it empty. The caller holds the lock of the whole model, because the blobs of a
/// download have no name in a snapshot before its end. Blocks.
pub fn remove_leftovers(repository: &Repository) {
    let used: BTreeSet<Etag> = repository
        .commits()
        .iter()
        .flat_map(|commit| repository.files(commit))
        .filter_map(|file| file.etag)
        .collect();
    let mut locks = Vec::new();
    for etag in blobs(repository) {
        let Ok(Some(lock)) = repository.try_lock(&etag) else {
            continue;
        };
        let removed = discard(&repository.partial(&etag)).and_then(|()| {
            if used.contains(&etag) {
                return Ok(());
            }
            discard(&repository.blob(&etag))
        });
        match removed {
            Ok(()) => locks.push(lock),
            Err(error) => tracing::warn!("a part of a download is left: {error}"),
        }
    }
    // Drafts of a killed process.
    for entry in entries(&repository.folder()) {
        let draft = entry.file_name().to_string_lossy().starts_with(DRAFT_PREFIX);
        if draft && entry.file_type().is_ok_and(|kind| !kind.is_dir()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    // Only empty folders are removed.
    for name in ["blobs", "snapshots", "refs"] {
        let _ = fs::remove_dir(repository.folder().join(name));
    }
    if fs::remove_dir(repository.folder()).is_ok() {
        locks.into_iter().for_each(Lock::remove);
        let others = entries(&repository.locks());
        for lock in others.filter_map(|entry| Lock::try_take(&entry.path()).ok().flatten()) {
            lock.remove();
        }
        let _ = fs::remove_dir(repository.locks());
    }
}

/// Every blob in the folder, complete or partial.
fn blobs(repository: &Repository) -> BTreeSet<Etag> {
    entries(&repository.folder().join("blobs"))
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Etag::new(name.split('.').next()?)
                .ok()
                .filter(|_| !name.ends_with(".incomplete"))
        })
        .collect()
}
