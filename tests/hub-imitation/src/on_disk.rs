//! Checks of a cache after a download: it is compared with the served files, byte for byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha1::{Digest, Sha1};
use sha2::Sha256;

use crate::content::File;
use crate::Repository;

/// The state of a cache.
#[derive(Debug, Default)]
pub struct OnDisk {
    /// True if the commit that `refs/main` names is complete and equal to the source.
    pub complete: bool,
    /// True if `refs/main` names a commit with missing files.
    pub promised: bool,
    /// The faults: content under a wrong name, links that lead out of the cache, unknown files.
    pub wrong: Vec<String>,
    /// Bytes in files, links not counted.
    pub bytes: u64,
}

impl OnDisk {
    /// Checks the cache in `folder`, into which only this repository was fetched, for the `wanted` paths.
    pub fn look(folder: &Path, repository: &Repository, wanted: impl Fn(&str) -> bool) -> Self {
        let mut found = Self::default();
        let state = repository.state();
        let model = format!("models--{}", state.id.replace('/', "--"));
        for (path, link) in all_files(folder) {
            if !link {
                found.bytes += fs::metadata(&path).map_or(0, |meta| meta.len());
            }
            let name = path
                .strip_prefix(folder)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            let parts: Vec<&str> = name.split('/').collect();
            match parts.as_slice() {
                // huggingface_hub's tag of the folder.
                ["CACHEDIR.TAG"] => {}
                [".locks", repository, ..] if *repository == model => {}
                [repository, "blobs", blob] if *repository == model => found.check_blob(&path, blob),
                [repository, "refs", ..] if *repository == model => {
                    let commit = fs::read_to_string(&path).unwrap_or_default();
                    if !state.commits.iter().any(|known| known.sha == commit) {
                        found
                            .wrong
                            .push(format!("{name} names {commit:?}, which was never a commit"));
                    }
                }
                [repository, "snapshots", commit, rest @ ..] if *repository == model => {
                    let rest = rest.join("/");
                    let served: Vec<&Arc<File>> = state
                        .commits
                        .iter()
                        .filter(|known| known.sha == *commit)
                        .filter_map(|known| known.files.get(&rest))
                        .collect();
                    let inside = fs::canonicalize(&path).is_ok_and(|target| {
                        fs::canonicalize(folder.join(&model)).is_ok_and(|model| target.starts_with(model))
                    });
                    if !inside {
                        found.wrong.push(format!("{name} leads nowhere or elsewhere"));
                    } else if served.is_empty() || !served.iter().any(|file| same(&path, file)) {
                        found.wrong.push(format!("{name} is not what the hub has"));
                    }
                }
                // huggingface_hub's lists of a commit's files, and its records of missing ones.
                [repository, "trees" | ".no_exist", ..] if *repository == model => {}
                _ => found.wrong.push(format!("{name} is nobody's")),
            }
        }
        let snapshots = folder.join(&model).join("snapshots");
        let main = fs::read_to_string(folder.join(&model).join("refs/main")).unwrap_or_default();
        if let Some(commit) = state.commits.iter().find(|known| known.sha == main) {
            let mut all = commit.files.iter().filter(|(path, _)| wanted(path));
            found.complete = all
                .clone()
                .all(|(path, file)| same(&snapshots.join(&main).join(path), file));
            found.promised = all.any(|(path, _)| !snapshots.join(&main).join(path).exists());
        }
        found
    }

    fn check_blob(&mut self, path: &Path, name: &str) {
        let is_hash = [40, 64].contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hash {
            // A partial download, whose name says that it is no blob yet.
            return;
        }
        let Ok(bytes) = fs::read(path) else {
            self.wrong.push(format!("the blob {name} cannot be read"));
            return;
        };
        let hash = if name.len() == 64 {
            format!("{:x}", Sha256::digest(&bytes))
        } else {
            let hash = Sha1::new_with_prefix(format!("blob {}\0", bytes.len()));
            format!("{:x}", hash.chain_update(&bytes).finalize())
        };
        if hash != name {
            self.wrong.push(format!(
                "the blob {name} holds {} bytes with the hash {hash}",
                bytes.len()
            ));
        }
    }
}

/// True if a file on disk equals the served one.
fn same(path: &Path, file: &File) -> bool {
    fs::read(path).is_ok_and(|bytes| {
        bytes.len() as u64 == file.content.len() && bytes == file.content.read(0..file.content.len())
    })
}

/// Every file and link below a folder, and true for each link; links are not followed.
pub fn all_files(folder: &Path) -> Vec<(PathBuf, bool)> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            match fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_dir() => open.push(path),
                Ok(meta) => files.push((path, meta.file_type().is_symlink())),
                Err(_) => {}
            }
        }
    }
    files.sort();
    files
}
