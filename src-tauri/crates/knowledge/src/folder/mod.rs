//! The files of a collection: what is in its folder, what is left out and why, and reading one file.

mod open;
mod rules;
mod walk;

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

pub use api::SkipReason;
pub use open::{read, Reading};
pub use rules::Rules;
pub(crate) use rules::{is_ignore_file, FileFilter, IgnoreFiles};
pub use walk::walk;

/// The place of the files of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A folder with its subfolders.
    Folder(PathBuf),
    /// Single files by their absolute paths.
    Files(Vec<PathBuf>),
}

/// The state of a file, as far as it can be told without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes.
    pub size: u64,
    /// The time of its last change, in Unix nanoseconds; 0 if it is not known.
    pub modified: i64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        let since = metadata
            .modified()
            .ok()
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Self {
            size: metadata.len(),
            modified: since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(0)),
        }
    }
}

/// A file that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Its path below the folder, or its absolute path if it was named by itself.
    pub path: PathBuf,
    /// Its state when it was found.
    pub stamp: Stamp,
}

/// A file or folder that does not count although nobody chose so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFile {
    /// As [`FoundFile::path`].
    pub path: PathBuf,
    /// Its state when it was found.
    pub stamp: Stamp,
    /// Why.
    pub reason: SkipReason,
}

/// The outcome of looking through a collection. Both lists are in the order of their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// The files that count.
    pub files: Vec<FoundFile>,
    /// Files and folders that do not, by nobody's choice; of more than the most files only as many as there are files at most.
    pub skipped: Vec<SkippedFile>,
    /// How many files and folders were left out for each reason; of a folder nothing inside is counted.
    pub left_out: BTreeMap<SkipReason, u64>,
    /// Folders that could not be listed: nothing is known of the files in them.
    pub unlisted: Vec<PathBuf>,
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
