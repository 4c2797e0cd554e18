use std::path::{Path, PathBuf};

/// A path as a person gave it, from the root.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
