//! Placing watches: on the ways to a collection and on every folder that the walk visits.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex, PoisonError};

use notify::{Config, ErrorKind, EventHandler, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::mounts::Mounts;
use super::pending::Pending;
use super::view::{Ignored, Root, View};
use super::way::Ways;
use crate::folder::{FileFilter, IgnoreFiles};
use crate::{Error, Result, Rules, Source};

/// True if each folder takes a watch. FSEvents watches a folder with all below it, and its parents only with all below
/// them, which would be every change of the computer.
const PER_FOLDER: bool = !cfg!(target_os = "macos");

/// The watches of a collection.
pub(super) struct Placed {
    source: Source,
    rules: Rules,
    most: usize,
    pending: Arc<Pending>,
    now: Mutex<Option<Watches>>,
    count: AtomicUsize,
    is_closed: AtomicBool,
}

/// Watches that were placed together. They end together, too: one on a folder that was moved keeps its old path, and a
/// second one on the same folder is the same to the system.
struct Watches {
    notify: RecommendedWatcher,
    view: Arc<View>,
    /// Ends with the thread of `notify`, after the system has its watches back.
    ended: mpsc::Receiver<Infallible>,
}

struct Handler {
    view: Arc<View>,
    pending: Arc<Pending>,
    _ended: mpsc::Sender<Infallible>,
}

impl EventHandler for Handler {
    fn handle_event(&mut self, event: notify::Result<notify::Event>) {
        match event {
            Ok(event) => self.view.sort(&event, &self.pending),
            Err(error) => {
                tracing::debug!(%error, "notifications of a folder may be lost");
                self.pending.anew();
            }
        }
    }
}

impl Placed {
    pub fn new(source: Source, rules: Rules, most: usize) -> Self {
        Self {
            source,
            rules,
            most,
            pending: Arc::default(),
            now: Mutex::new(None),
            count: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        }
    }

    pub fn pending(&self) -> &Pending {
        &self.pending
    }

    /// Watches the mounts near the collection.
    pub fn watch_mounts(&self) -> Option<Mounts> {
        Mounts::watch(&self.source, &self.pending)
    }

    /// The watches that are placed.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    #[cfg(all(test, target_os = "linux"))]
    pub fn view(&self) -> std::sync::Weak<View> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().map(|now| Arc::downgrade(&now.view)).unwrap_or_default()
    }

    /// Lets a placing end early.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Places the watches that are missing. If that fails, none are left.
    pub fn settle(&self) -> Result<()> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let work = self.pending.work();
        let settled = match &mut *now {
            Some(watches) if !work.anew => {
                let parent = |folder: &Path| watches.view.folders().get(folder.parent()?).cloned();
                let added = work.added.into_iter();
                let added = added.filter_map(|folder| parent(&folder).map(|outer| (folder, outer)));
                let added = added.collect();
                self.add_folders(watches, added)
            }
            _ => {
                let old = now.take();
                self.anew(old).map(|watches| *now = Some(watches))
            }
        };
        if settled.is_err() {
            end(now.take());
            self.count.store(0, Ordering::Relaxed);
        }
        settled
    }

    fn anew(&self, old: Option<Watches>) -> Result<Watches> {
        // First, because both together may be more than the system lets a user have.
        end(old);
        self.count.store(0, Ordering::Relaxed);
        let (view, ways, ends) = self.look()?;
        let view = Arc::new(view);
        let (sender, ended) = mpsc::channel();
        let handler = Handler {
            view: Arc::clone(&view),
            pending: Arc::clone(&self.pending),
            _ended: sender,
        };
        let config = Config::default().with_follow_symlinks(false);
        let notify = RecommendedWatcher::new(handler, config).map_err(told)?;
        let mut watches = Watches { notify, view, ended };
        match self.fill(&mut watches, &ways, &ends) {
            Ok(()) => Ok(watches),
            Err(error) => {
                end(Some(watches));
                Err(error)
            }
        }
    }

    fn fill(&self, watches: &mut Watches, ways: &Ways, ends: &[PathBuf]) -> Result<()> {
        self.add_ways(watches, ways, ends)?;
        // Moved before the watches were there.
        if self.look()?.1 != *ways {
            self.pending.anew();
        }
        self.add_folders(watches, vec![(PathBuf::new(), None)])
    }

    /// The parts that count as they are now, the ways to them and the folders where these end.
    fn look(&self) -> Result<(View, Ways, Vec<PathBuf>)> {
        let mut view = View::default();
        let mut ways = Ways::default();
        let mut ends = Vec::new();
        match &self.source {
            Source::Folder(folder) => {
                let real = ways.add(folder);
                let choice = FileFilter::new(real.as_ref().unwrap_or(folder), &self.rules)?;
                view.root = real.map(|real| Root { real, choice });
                ends.extend(view.root.iter().map(|root| root.real.clone()));
            }
            Source::Files(files) => {
                for file in files {
                    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
                        continue;
                    };
                    if let Some(real) = ways.add(folder) {
                        view.files.insert(real.join(name), file.clone());
                        ends.push(real);
                    }
                }
                ends.sort();
                ends.dedup();
            }
        }
        view.entries.clone_from(&ways.entries);
        Ok((view, ways, ends))
    }

    /// Watches the ways and, but for a folder's own, their ends.
    fn add_ways(&self, watches: &mut Watches, ways: &Ways, ends: &[PathBuf]) -> Result<()> {
        let is_folder = watches.view.root.is_some();
        let mut folders: Vec<(&Path, RecursiveMode)> = Vec::new();
        let flat = |path| (path, RecursiveMode::NonRecursive);
        if PER_FOLDER {
            folders.extend(ways.folders.iter().map(|path| flat(path.as_path())));
            let ends = ends.iter().filter(|end| !is_folder && !ways.folders.contains(*end));
            folders.extend(ends.map(|path| flat(path.as_path())));
        } else if is_folder {
            folders.extend(ends.iter().map(|end| (end.as_path(), RecursiveMode::Recursive)));
        } else {
            // The nearest folder that is there, for a collection that is not.
            let nearest = ways.folders.iter().max_by_key(|path| path.components().count());
            let nearest = nearest.filter(|_| ends.is_empty());
            folders.extend(ends.iter().chain(nearest).map(|path| flat(path.as_path())));
        }
        let mut batch = watches.notify.paths_mut();
        for (path, mode) in folders {
            self.count_one()?;
            if !is_placed(batch.add(path, mode))? {
                self.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
        batch.commit().map_err(told)
    }

    /// Watches folders and those below them that count. Each is listed after its watch is placed: what comes later is
    /// told.
    fn add_folders(&self, watches: &mut Watches, mut waiting: Vec<(PathBuf, Ignored)>) -> Result<()> {
        let Watches { notify, view, .. } = watches;
        let Some(Root { real, choice }) = &view.root else {
            return Ok(());
        };
        while let Some((below, outer)) = waiting.pop() {
            if self.is_closed.load(Ordering::Relaxed) {
                break;
            }
            if view.folders().contains_key(&below) {
                continue;
            }
            view.folders().insert(below.clone(), outer.clone());
            let is_root = below.as_os_str().is_empty();
            let path = if is_root { real.clone() } else { real.join(&below) };
            if !std::fs::symlink_metadata(&path).is_ok_and(|entry| entry.is_dir()) {
                continue;
            }
            if PER_FOLDER {
                self.count_one()?;
                if !is_placed(notify.watch(&path, RecursiveMode::NonRecursive))? {
                    self.count.fetch_sub(1, Ordering::Relaxed);
                }
            }
            let ignored = IgnoreFiles::of(real, &below, outer.as_ref());
            view.folders().insert(below.clone(), ignored.clone());
            for folder in subfolders(&path, &below) {
                if choice.leaves_out(&folder, true, ignored.as_deref()).is_none() {
                    waiting.push((folder, ignored.clone()));
                }
            }
        }
        Ok(())
    }

    fn count_one(&self) -> Result<()> {
        if PER_FOLDER && self.count.fetch_add(1, Ordering::Relaxed) >= self.most {
            return Err(Error::TooManyFolders { most: self.most });
        }
        Ok(())
    }
}

/// The folders in a folder, none of them links. One that cannot be listed has none; the walk tells it.
fn subfolders(path: &Path, below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| below.join(entry.file_name())).collect()
}

/// Waits until the system has the watches back.
fn end(watches: Option<Watches>) {
    let Some(Watches { notify, ended, .. }) = watches else {
        return;
    };
    drop(notify);
    // Nothing is ever sent: it returns when the sender is gone.
    let _ = ended.recv();
}

/// False if a folder is gone or may not be read: its parent's watch tells when that changes.
fn is_placed(outcome: notify::Result<()>) -> Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) => match error.kind {
            ErrorKind::MaxFilesWatch => Err(told(error)),
            _ => {
                tracing::debug!(%error, "a folder is not watched");
                Ok(false)
            }
        },
    }
}

/// The sentence for an error of `notify`.
fn told(error: notify::Error) -> Error {
    match &error.kind {
        ErrorKind::MaxFilesWatch => Error::WatchLimit {
            setting: "fs.inotify.max_user_watches",
        },
        #[cfg(unix)]
        ErrorKind::Io(source) if source.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
            Error::WatchLimit {
                setting: "fs.inotify.max_user_instances",
            }
        }
        _ => Error::Watch(error.to_string()),
    }
}

#[cfg(test)]
pub(super) fn sentence(error: notify::Error) -> String {
    told(error).to_string()
}
