//! The choice of files: patterns of the collection, ignore files of its folders.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use serde::{Deserialize, Serialize};

use super::open::open_below;
use super::SkipReason;
use crate::{Error, Result};

/// The ignore files of a folder; a later one decides before an earlier one.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ponderignore"];
/// The longest ignore file; of a longer one the beginning counts, in bytes.
const LONGEST: u64 = 256 << 10;

/// The files of a folder that count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// Patterns as in ignore files: `*.md` lets in what matches one of these alone, `!drafts/` leaves out.
    pub patterns: Vec<String>,
    /// True if files count whose names begin with a dot.
    pub hidden: bool,
    /// The largest file, in bytes.
    pub most_bytes: u64,
    /// The most files.
    pub most_files: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            hidden: false,
            most_bytes: documents::MAX_BYTES as u64,
            most_files: 100_000,
        }
    }
}

/// The choice of files and folders by their names alone.
pub(crate) struct FileFilter {
    folder: PathBuf,
    hidden: bool,
    patterns: Override,
}

impl FileFilter {
    /// The choice in a folder.
    ///
    /// # Errors
    /// [`Error::Pattern`] if a pattern cannot be read.
    pub fn new(folder: &Path, rules: &Rules) -> Result<Self> {
        let wrong = |error: ignore::Error| Error::Pattern(error.to_string());
        let mut builder = OverrideBuilder::new(folder);
        for pattern in &rules.patterns {
            builder.add(pattern).map_err(wrong)?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            hidden: rules.hidden,
            patterns: builder.build().map_err(wrong)?,
        })
    }

    /// The reason why a path below the folder is left out, if it is; `ignored` is of the folder that it is in.
    pub fn leaves_out(&self, below: &Path, is_folder: bool, ignored: Option<&IgnoreFiles>) -> Option<SkipReason> {
        let name = below.file_name().unwrap_or_default();
        if !self.hidden && name.as_encoded_bytes().starts_with(b".") {
            return Some(SkipReason::Hidden);
        }
        let whole = self.folder.join(below);
        if self.patterns.matched(&whole, is_folder).is_ignore() {
            return Some(SkipReason::Pattern);
        }
        let is_ignored = ignored.is_some_and(|ignored| ignored.leaves_out(&whole, is_folder));
        is_ignored.then_some(SkipReason::Ignored)
    }
}

/// True for the name of a file that says which files of its folder are left out.
pub(crate) fn is_ignore_file(name: &OsStr) -> bool {
    IGNORE_FILES.iter().any(|file| name == *file)
}

/// The ignore files of a folder and of those around it, up to that of the collection.
pub(crate) struct IgnoreFiles {
    own: Gitignore,
    outer: Option<Arc<IgnoreFiles>>,
}

impl IgnoreFiles {
    /// Those of a folder below that of the collection; the outer ones themselves if it has none of its own.
    pub fn of(folder: &Path, below: &Path, outer: Option<&Arc<Self>>) -> Option<Arc<Self>> {
        let mut builder = GitignoreBuilder::new(folder.join(below));
        let mut has_lines = false;
        for name in IGNORE_FILES {
            let Some(text) = read_start(folder, &below.join(name)) else {
                continue;
            };
            for line in text.lines() {
                has_lines = true;
                // A line that cannot be read leaves out nothing.
                if let Err(error) = builder.add_line(None, line) {
                    tracing::debug!(%error, "a line of an ignore file is passed over");
                }
            }
        }
        let own = has_lines.then(|| builder.build().ok()).flatten();
        match own {
            Some(own) => Some(Arc::new(Self {
                own,
                outer: outer.cloned(),
            })),
            None => outer.cloned(),
        }
    }

    /// True if a file or folder is left out. The innermost ignore file that names it decides, as in git.
    pub fn leaves_out(&self, path: &Path, is_folder: bool) -> bool {
        let mut files = Some(self);
        while let Some(here) = files {
            match here.own.matched(path, is_folder) {
                ignore::Match::None => files = here.outer.as_deref(),
                found => return found.is_ignore(),
            }
        }
        false
    }
}

/// The beginning of a plain file; a link, or a pipe on which reading would wait, is none.
fn read_start(folder: &Path, below: &Path) -> Option<String> {
    let is_plain = std::fs::symlink_metadata(folder.join(below)).is_ok_and(|file| file.is_file());
    let file = is_plain.then(|| open_below(folder, below).ok()).flatten()?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_start_matches('\u{feff}').to_owned())
}
