//! Looking through a folder: by names and kinds alone, nothing is opened but ignore files.

use std::fs::{DirEntry, FileType};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::rules::{FileFilter, IgnoreFiles, Rules};
use super::{FoundFile, SkipReason, SkippedFile, Source, Stamp, Walk};
use crate::{Error, Result};

/// Looks through a collection. Links are never followed, but the folder itself may be one.
///
/// # Errors
/// [`Error::Folder`] if the folder itself cannot be listed: that says nothing of its files. [`Error::Pattern`] if a
/// pattern cannot be read.
pub fn walk(source: &Source, rules: &Rules) -> Result<Walk> {
    let mut found = Walk::default();
    match source {
        Source::Folder(folder) => Walker {
            folder,
            rules,
            choice: FileFilter::new(folder, rules)?,
            found: &mut found,
        }
        .walk()?,
        Source::Files(files) => {
            for path in files {
                single(path, rules, &mut found);
            }
        }
    }
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    found.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    found.files.dedup_by(|a, b| a.path == b.path);
    found.unlisted.sort();
    Ok(found)
}

impl Walk {
    /// Notes a file by its kind and size.
    fn sort_in(&mut self, path: PathBuf, kind: FileType, stamp: Stamp, rules: &Rules) {
        let reason = match kind {
            kind if kind.is_symlink() => SkipReason::Link,
            kind if !kind.is_file() => SkipReason::Special,
            _ if stamp.size == 0 => SkipReason::Empty,
            _ if stamp.size > rules.most_bytes => SkipReason::TooLarge,
            _ if self.files.len() as u64 >= rules.most_files => SkipReason::TooMany,
            _ => return self.files.push(FoundFile { path, stamp }),
        };
        self.leave_out(path, stamp, reason, rules);
    }

    fn leave_out(&mut self, path: PathBuf, stamp: Stamp, reason: SkipReason, rules: &Rules) {
        *self.left_out.entry(reason).or_default() += 1;
        if !reason.is_chosen() && (self.skipped.len() as u64) < rules.most_files {
            self.skipped.push(SkippedFile { path, stamp, reason });
        }
    }
}

const UNKNOWN: Stamp = Stamp { size: 0, modified: 0 };

/// A file that was named by itself counts whatever its name is.
fn single(path: &Path, rules: &Rules, found: &mut Walk) {
    match std::fs::symlink_metadata(path) {
        Ok(file) if file.is_dir() => found.leave_out(path.to_owned(), UNKNOWN, SkipReason::Special, rules),
        Ok(file) => found.sort_in(path.to_owned(), file.file_type(), Stamp::of(&file), rules),
        // Gone only if its folder is there without it.
        Err(error) if error.kind() == ErrorKind::NotFound && path.parent().is_some_and(Path::is_dir) => {}
        Err(_) => {
            found.leave_out(path.to_owned(), UNKNOWN, SkipReason::Unreadable, rules);
            found.unlisted.push(path.to_owned());
        }
    }
}

struct Walker<'a> {
    folder: &'a Path,
    rules: &'a Rules,
    choice: FileFilter,
    found: &'a mut Walk,
}

/// A folder that is still to be listed, by its path below that of the collection.
type Waiting = (PathBuf, Option<Arc<IgnoreFiles>>);

impl Walker<'_> {
    fn walk(mut self) -> Result<()> {
        let mut waiting: Vec<Waiting> = vec![(PathBuf::new(), None)];
        while let Some((below, outer)) = waiting.pop() {
            let entries = match self.entries(&below) {
                Ok(entries) => entries,
                Err(source) if below.as_os_str().is_empty() => {
                    return Err(Error::Folder {
                        path: self.folder.to_owned(),
                        source,
                    })
                }
                Err(_) => {
                    self.found
                        .leave_out(below.clone(), UNKNOWN, SkipReason::Unreadable, self.rules);
                    self.found.unlisted.push(below);
                    continue;
                }
            };
            let ignored = IgnoreFiles::of(self.folder, &below, outer.as_ref());
            let folders = entries
                .into_iter()
                .filter_map(|entry| self.look(&below, &entry, ignored.as_deref()));
            let mut folders: Vec<PathBuf> = folders.collect();
            // The first one is taken from the end.
            folders.reverse();
            waiting.extend(folders.into_iter().map(|folder| (folder, ignored.clone())));
        }
        Ok(())
    }

    /// The entries of a folder by their names. The order in which the system gives them is none.
    fn entries(&self, below: &Path) -> std::io::Result<Vec<DirEntry>> {
        let path = self.folder.join(below);
        if !below.as_os_str().is_empty() && std::fs::symlink_metadata(&path)?.is_symlink() {
            return Err(ErrorKind::NotADirectory.into());
        }
        let mut entries: Vec<DirEntry> = std::fs::read_dir(path)?.collect::<std::io::Result<_>>()?;
        entries.sort_by_key(DirEntry::file_name);
        Ok(entries)
    }

    /// Notes an entry; returns its path if it is a folder that counts.
    fn look(&mut self, below: &Path, entry: &DirEntry, ignored: Option<&IgnoreFiles>) -> Option<PathBuf> {
        let path = below.join(entry.file_name());
        let Ok(kind) = entry.file_type() else {
            self.found.leave_out(path, UNKNOWN, SkipReason::Unreadable, self.rules);
            return None;
        };
        let chosen = self.choice.leaves_out(&path, kind.is_dir(), ignored);
        if let Some(reason) = chosen {
            self.found.leave_out(path, UNKNOWN, reason, self.rules);
            return None;
        }
        if kind.is_dir() {
            return Some(path);
        }
        match entry.metadata() {
            Ok(file) => self.found.sort_in(path, kind, Stamp::of(&file), self.rules),
            // It went away meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => self.found.leave_out(path, UNKNOWN, SkipReason::Unreadable, self.rules),
        }
        None
    }
}
