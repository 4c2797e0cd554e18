//! The list of a repository's files, as the hub sends it and as huggingface_hub stores it next to the snapshots.

use super::{Commit, Etag, FilePath};

/// The files of a repository at a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoFiles {
    /// The commit.
    pub commit: Commit,
    /// Its files, in the hub's order, without folders. No two names collide, and none leads out of its folder.
    pub files: Vec<RemoteFile>,
}

/// A file as the hub lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its path in the repository.
    pub path: FilePath,
    /// Its size, in bytes.
    pub bytes: u64,
    /// SHA-256 of a large file, git's blob hash of a small one.
    pub etag: Etag,
}
