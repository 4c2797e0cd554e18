//! A cache with the real Pebble, written through the layout under its real hashes.

#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

use hub::cache::digest::Digest;
use hub::cache::{Cache, Commit, Etag, FilePath, Repository, RepositoryId, Revision};

pub const FIRST: &str = "0123456789abcdef0123456789abcdef01234567";
pub const SECOND: &str = "89abcdef0123456789abcdef0123456789abcdef";

pub fn commit(text: &str) -> Commit {
    Commit::new(text).unwrap()
}

pub fn pebble() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../pebble/model")
        .canonicalize()
        .unwrap()
}

/// The hub's hash of this content: git's for small files, SHA-256 for weights.
pub fn etag_of(path: &str, content: &[u8]) -> Etag {
    let kind = if path.ends_with(".safetensors") { 64 } else { 40 };
    let mut digest = Digest::new(&Etag::new(&"0".repeat(kind)).unwrap(), content.len() as u64);
    digest.update(content);
    Etag::new(&digest.finish()).unwrap()
}

pub fn repository(cache: &Path, id: &str) -> Repository {
    Cache::at(cache).repository(&RepositoryId::new(id).unwrap())
}

/// Writes a file of a commit.
pub fn add(repository: &Repository, commit: &Commit, path: &str, content: &[u8]) -> Etag {
    let etag = etag_of(path, content);
    repository.prepare().unwrap();
    fs::write(repository.blob(&etag), content).unwrap();
    repository
        .publish(commit, &FilePath::new(path).unwrap(), &etag)
        .unwrap();
    etag
}

/// Writes Pebble as one commit, with `changed` files replaced or added.
pub fn add_pebble(repository: &Repository, commit: &Commit, changed: &[(&str, &[u8])]) {
    for entry in fs::read_dir(pebble()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_file() && !changed.iter().any(|(path, _)| *path == name) {
            add(repository, commit, &name, &fs::read(entry.path()).unwrap());
        }
    }
    for (path, content) in changed {
        add(repository, commit, path, content);
    }
    repository.set_ref(&Revision::main(), commit).unwrap();
}

/// Every file and link below a folder with its content or target.
pub fn all_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.push((path.clone(), Vec::new()));
            found.extend(all_below(&path));
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            found.push((path, target.to_string_lossy().into_owned().into_bytes()));
        } else {
            let content = fs::read(&path).unwrap();
            found.push((path, content));
        }
    }
    found.sort();
    found
}

/// Bytes of the blobs of a repository.
pub fn bytes_of_blobs(repository: &Repository) -> u64 {
    let blobs = fs::read_dir(repository.folder().join("blobs"))
        .into_iter()
        .flatten()
        .flatten();
    blobs.map(|entry| entry.metadata().unwrap().len()).sum()
}
