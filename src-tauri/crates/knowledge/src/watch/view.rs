//! Notifications, sorted by what they mean for a collection. Runs on the thread of `notify`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use notify::event::{AccessKind, AccessMode, Event, EventKind, ModifyKind};

use super::pending::Pending;
use crate::folder::{is_ignore_file, FileFilter, IgnoreFiles};

/// The ignore files of a folder and of those around it.
pub(super) type Ignored = Option<Arc<IgnoreFiles>>;

/// The folder of a collection.
pub(super) struct Root {
    /// Its path without links, as notifications name it.
    pub real: PathBuf,
    /// The choice of its files.
    pub choice: FileFilter,
}

/// The parts of a file system that count.
#[derive(Default)]
pub(super) struct View {
    /// The folder, if the collection has one and it is there.
    pub root: Option<Root>,
    /// The entries of other folders that the ways to the collection lead through.
    pub entries: HashSet<PathBuf>,
    /// Single files without links in the paths of their folders, and as they were named.
    pub files: HashMap<PathBuf, PathBuf>,
    folders: Mutex<HashMap<PathBuf, Ignored>>,
}

impl View {
    /// The folders that the walk visits, by their paths below the collection's. One is here before its watch is placed,
    /// because its first notification may be quicker than whoever places it.
    pub fn folders(&self) -> MutexGuard<'_, HashMap<PathBuf, Ignored>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a notification means.
    pub fn sort(&self, event: &Event, pending: &Pending) {
        if event.need_rescan() {
            return pending.anew();
        }
        let is_shape = match event.kind {
            // A file that was written through a map of memory tells nothing but that it was closed.
            EventKind::Access(AccessKind::Close(AccessMode::Write)) | EventKind::Modify(ModifyKind::Data(_)) => false,
            // Reading, also our own.
            EventKind::Access(_) => return,
            _ => true,
        };
        for path in &event.paths {
            self.sort_path(path, is_shape, pending);
        }
    }

    /// `is_shape` is true if the entry itself came, went, or changed its permissions, and not just the bytes of a file.
    fn sort_path(&self, path: &Path, is_shape: bool, pending: &Pending) {
        if is_shape && self.entries.contains(path) {
            return pending.anew();
        }
        if let Some(named) = self.files.get(path) {
            return pending.path(named.clone());
        }
        let Some((root, below)) = self.below(path) else {
            return;
        };
        let Some(parent) = below.parent() else {
            return;
        };
        let (ignored, is_known) = {
            let folders = self.folders();
            let Some(ignored) = folders.get(parent) else {
                return;
            };
            (ignored.clone(), folders.contains_key(below))
        };
        if below.file_name().is_some_and(is_ignore_file) {
            return pending.anew();
        }
        let is_folder = is_known || (is_shape && std::fs::symlink_metadata(path).is_ok_and(|entry| entry.is_dir()));
        if is_known && is_shape {
            pending.anew();
        } else if root.choice.leaves_out(below, is_folder, ignored.as_deref()).is_some() {
        } else if is_folder && is_shape {
            pending.added(below.to_owned());
        } else {
            pending.path(below.to_owned());
        }
    }

    fn below<'a>(&self, path: &'a Path) -> Option<(&Root, &'a Path)> {
        let root = self.root.as_ref()?;
        Some((root, path.strip_prefix(&root.real).ok()?))
    }
}
