//! The way to a folder through its parents and links, each of which may be moved.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// More links than these are a circle, as for Linux.
const MOST_LINKS: usize = 40;

/// The ways to the folders of a collection.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ways {
    /// The folders on the ways, without links in their paths. Their ends are not among them.
    pub folders: BTreeSet<PathBuf>,
    /// The entries of these folders that the ways lead through, with those that are missing.
    pub entries: HashSet<PathBuf>,
}

impl Ways {
    /// Adds the way to a folder; returns its path without links if it is there.
    pub fn add(&mut self, folder: &Path) -> Option<PathBuf> {
        let folder = std::path::absolute(folder).ok()?;
        let mut here = PathBuf::new();
        let mut names = VecDeque::new();
        let mut links = 0;
        unfold(&folder, &mut here, &mut names);
        while let Some(name) = names.pop_front() {
            if name == ".." {
                here.pop();
                continue;
            }
            let next = here.join(&name);
            self.folders.insert(here.clone());
            self.entries.insert(next.clone());
            let kind = std::fs::symlink_metadata(&next).ok()?;
            if kind.is_symlink() && links < MOST_LINKS {
                links += 1;
                unfold(&std::fs::read_link(&next).ok()?, &mut here, &mut names);
            } else if kind.is_dir() {
                here = next;
            } else {
                return None;
            }
        }
        Some(here)
    }
}

/// Puts the names of a path before those that follow; one from the root begins there.
fn unfold(path: &Path, here: &mut PathBuf, names: &mut VecDeque<OsString>) {
    let mut own = Vec::new();
    for part in path.components() {
        match part {
            Component::Prefix(_) | Component::RootDir => here.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::Normal(_) => own.push(part.as_os_str().to_owned()),
        }
    }
    for name in own.into_iter().rev() {
        names.push_front(name);
    }
}
