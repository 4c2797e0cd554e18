//! A folder that is there whole or not at all.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{Builder, TempDir};

use crate::sync_folder;

/// How the name of a folder that is being written begins.
const PREFIX: &str = ".ponder-draft-";

/// A file in such a folder that its writer holds locked.
const LOCK: &str = ".lock";

/// The age of a folder without a lock from which on nobody is about to make one.
const ABANDONED: Duration = Duration::from_secs(60);

/// A folder beside the one that it becomes, under a name that no program reads. It is removed when it is dropped.
#[derive(Debug)]
pub struct DraftFolder {
    folder: TempDir,
    target: PathBuf,
    // Locked until the process ends or this is dropped.
    _lock: File,
}

impl DraftFolder {
    /// Begins the folder `target`, and removes those that killed processes left beside it. Missing folders on the way
    /// are made.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there is something of this name, and those of the file system.
    pub fn create(target: &Path) -> io::Result<Self> {
        let (parent, name) = (parent_of(target)?, target.file_name().unwrap_or_default());
        refuse_existing(target)?;
        fs::create_dir_all(parent)?;
        remove_leftovers(parent);
        let prefix = [OsStr::new(PREFIX), name, OsStr::new("-")].join(OsStr::new(""));
        let mut builder = Builder::new();
        builder.prefix(&prefix);
        if let Some(permissions) = shared_folder() {
            builder.permissions(permissions);
        }
        let folder = builder.tempdir_in(parent)?;
        let lock = File::create_new(folder.path().join(LOCK))?;
        lock.lock()?;
        Ok(Self {
            folder,
            target: target.to_owned(),
            _lock: lock,
        })
    }

    /// The place of its files. Their writers force them to the disk.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives the folder its name.
    ///
    /// # Errors
    /// As [`DraftFolder::create`]; nothing is left then.
    pub fn finish(self) -> io::Result<()> {
        refuse_existing(&self.target)?;
        fs::remove_file(self.path().join(LOCK))?;
        sync_folder(self.path());
        fs::rename(self.path(), &self.target)?;
        // Nothing is left to be removed.
        let _ = self.folder.keep();
        sync_folder(parent_of(&self.target)?);
        Ok(())
    }
}

/// Bytes that are free on the disk of a folder, or of the first one above it that exists.
///
/// # Errors
/// If the file system does not say.
pub fn free_space(folder: &Path) -> io::Result<u64> {
    let there = folder.ancestors().find(|folder| folder.is_dir());
    fs4::available_space(there.unwrap_or(Path::new(".")))
}

fn parent_of(target: &Path) -> io::Result<&Path> {
    match (target.parent(), target.file_name()) {
        (Some(parent), Some(_)) if parent.as_os_str().is_empty() => Ok(Path::new(".")),
        (Some(parent), Some(_)) => Ok(parent),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn refuse_existing(target: &Path) -> io::Result<()> {
    match fs::symlink_metadata(target) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => Ok(()),
    }
}

/// Removes the drafts in a folder that nobody writes. One that cannot be removed stays.
fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_draft = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if is_draft && entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(draft: &Path) -> bool {
    match File::open(draft.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let changed = fs::metadata(draft).and_then(|meta| meta.modified());
            changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > ABANDONED))
        }
        Err(_) => false,
    }
}

#[cfg(unix)]
fn shared_folder() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    // The umask is taken off when the folder is made.
    Some(Permissions::from_mode(0o777))
}

#[cfg(not(unix))]
fn shared_folder() -> Option<Permissions> {
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_appears_whole_and_a_dropped_one_not_at_all() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("on/the way/model");
        let draft = DraftFolder::create(&target).unwrap();
        fs::write(draft.path().join("a"), "x").unwrap();
        assert!(!target.exists());
        draft.finish().unwrap();
        assert_eq!(names(&target), ["a"]);
        assert_eq!(names(target.parent().unwrap()), ["model"]);
        let other = target.with_file_name("other");
        drop(DraftFolder::create(&other).unwrap());
        assert_eq!(names(target.parent().unwrap()), ["model"]);
        let error = DraftFolder::create(&target).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_folder_that_came_meanwhile_is_not_touched() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("model");
        let draft = DraftFolder::create(&target).unwrap();
        fs::create_dir(&target).unwrap();
        assert_eq!(draft.finish().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(names(parent.path()), ["model"]);
    }

    #[test]
    fn what_killed_processes_left_is_removed_and_what_is_being_written_stays() {
        let parent = tempfile::tempdir().unwrap();
        let running = DraftFolder::create(&parent.path().join("a")).unwrap();
        let left = parent.path().join(".ponder-draft-b-x");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        let fresh = parent.path().join(".ponder-draft-c-x");
        fs::create_dir(&fresh).unwrap();
        fs::create_dir(parent.path().join("mine")).unwrap();
        let draft = DraftFolder::create(&parent.path().join("d")).unwrap();
        assert!(running.path().is_dir() && draft.path().is_dir() && fresh.is_dir() && !left.exists());
        draft.finish().unwrap();
        running.finish().unwrap();
        assert_eq!(names(parent.path()), [".ponder-draft-c-x", "a", "d", "mine"]);
        assert!(free_space(&parent.path().join("not/there")).unwrap() > 0);
    }
}
