//! The standard Hugging Face cache as it is on disk, for reading and for writing.
//!
//! ```text
//! <cache>/.locks/models--owner--name/<etag>.lock
//! <cache>/models--owner--name/blobs/<etag>                   the content, named by its hash
//!                            /refs/main                      the commit that a branch or tag pointed at
//!                            /snapshots/<commit>/<path>      a relative link to a blob
//! ```
//!
//! Everything is written through [`Repository`]: every name is checked before it becomes part of a path, and no folder on
//! the way may be a link, so nothing is written outside the model's own folder.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use files::{write_shared, Durability, DRAFT_PREFIX};

use super::{Commit, Etag, FilePath, Lock, RepositoryId, Revision};
use crate::Error;

/// Files up to this size are copied if there are no links, so that two equal ones both find their blob; larger ones are moved.
const COPIED: u64 = 1 << 20;

/// A folder laid out as the hub's clients lay out their cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
    links: bool,
}

impl Cache {
    /// The cache in this folder, which need not be there yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            links: true,
        }
    }

    /// The same without symbolic links, as on a file system that has none, or if `HF_HUB_DISABLE_SYMLINKS` asks for it.
    #[must_use]
    pub fn without_links(mut self) -> Self {
        self.links = false;
        self
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The place of a repository in it.
    pub fn repository(&self, id: &RepositoryId) -> Repository {
        Repository {
            cache: self.clone(),
            id: id.clone(),
        }
    }

    /// The model repositories that have a folder here, by name.
    ///
    /// # Errors
    /// [`Error::Read`] if the folder is there and cannot be read.
    pub fn repositories(&self) -> Result<Vec<Repository>, Error> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => {
                return Err(Error::Read {
                    path: self.root.clone(),
                    source,
                })
            }
        };
        let mut found: Vec<Repository> = entries
            .flatten()
            .filter_map(|entry| RepositoryId::of_folder(entry.file_name().to_str()?))
            .map(|id| self.repository(&id))
            .filter(|repository| repository.folder().is_dir())
            .collect();
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }
}

/// The place of one model repository in a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    cache: Cache,
    id: RepositoryId,
}

impl Repository {
    /// Whose place it is.
    pub fn id(&self) -> &RepositoryId {
        &self.id
    }

    /// The cache it is in.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Its folder, `models--owner--name`.
    pub fn folder(&self) -> PathBuf {
        self.cache.root.join(self.id.folder())
    }

    /// The content with this hash, whether it is there or not.
    pub fn blob(&self, etag: &Etag) -> PathBuf {
        self.folder().join("blobs").join(etag.as_str())
    }

    /// Where content is gathered until its hash is known to be right. huggingface_hub takes neither this nor what is called after it
    /// for a file of its own.
    pub fn partial(&self, etag: &Etag) -> PathBuf {
        self.folder().join("blobs").join(format!("{etag}.ponder"))
    }

    /// The lock that everybody holds who writes this blob.
    pub fn lock_path(&self, etag: &Etag) -> PathBuf {
        self.locks().join(format!("{etag}.lock"))
    }

    /// The folder of its locks.
    pub fn locks(&self) -> PathBuf {
        self.cache.root.join(".locks").join(self.id.folder())
    }

    /// Takes the lock of a blob if nobody holds it; `None` if somebody does.
    ///
    /// # Errors
    /// [`Error::Write`] if the cache cannot be written, [`Error::Trap`] if a link leads elsewhere.
    pub fn try_lock(&self, etag: &Etag) -> Result<Option<Lock>, Error> {
        make_folder(&self.cache.root)?;
        folder_below(&self.cache.root, Path::new(".locks").join(self.id.folder()).as_path())?;
        Lock::try_take(&self.lock_path(etag))
    }

    /// Takes the lock of a download of the whole model if nobody holds it; `None` if somebody does. It is Ponder's own:
    /// huggingface_hub locks single blobs only.
    ///
    /// # Errors
    /// As [`Repository::try_lock`].
    pub fn try_lock_whole(&self) -> Result<Option<Lock>, Error> {
        make_folder(&self.cache.root)?;
        folder_below(&self.cache.root, Path::new(".locks").join(self.id.folder()).as_path())?;
        Lock::try_take(&self.locks().join("ponder.lock"))
    }

    /// A folder that no program searches for models, for what is about to be removed.
    ///
    /// # Errors
    /// [`Error::Write`] if the cache cannot be written, [`Error::Trap`] if it is a link.
    pub(crate) fn aside(&self) -> Result<PathBuf, Error> {
        folder_below(&self.cache.root, Path::new(".locks"))?;
        Ok(self.cache.root.join(".locks"))
    }

    /// The folder of a commit's files.
    pub fn snapshot(&self, commit: &Commit) -> PathBuf {
        let cache = hf_hub::Cache::new(self.cache.root.clone());
        cache.model(self.id.to_string()).pointer_path(commit.as_str())
    }

    /// Makes the folders that are written to, before a download begins.
    ///
    /// # Errors
    /// [`Error::Write`] if the cache cannot be written, [`Error::Trap`] if one of the folders is a link.
    pub fn prepare(&self) -> Result<(), Error> {
        make_folder(&self.cache.root)?;
        for name in ["blobs", "refs", "snapshots"] {
            folder_below(&self.cache.root, &Path::new(&self.id.folder()).join(name))?;
        }
        Ok(())
    }

    /// Gives a verified blob its name in a snapshot. What had the name before is replaced in one step.
    ///
    /// # Errors
    /// [`Error::Missing`] if the blob is not there, [`Error::Trap`] if a folder is a link, [`Error::Write`].
    pub fn publish(&self, commit: &Commit, path: &FilePath, etag: &Etag) -> Result<(), Error> {
        self.prepare()?;
        let name = path.under(&self.snapshot(commit));
        let blob = self.blob(etag);
        let link = link_to(path, etag);
        if fs::read_link(&name).is_ok_and(|target| target == link) && blob.is_file() {
            return Ok(());
        }
        if !blob.is_file() {
            return Err(Error::Missing { path: blob });
        }
        let relative = Path::new(&self.id.folder()).join("snapshots").join(commit.as_str());
        let relative = path.under(&relative);
        if let Some(parent) = relative.parent() {
            folder_below(&self.cache.root, parent)?;
        }
        if fs::symlink_metadata(&name).is_ok_and(|meta| meta.is_dir()) {
            return Err(Error::Trap { path: name });
        }
        let draft = self.draft();
        if self.cache.links {
            match symlink(&link, &draft) {
                Ok(()) => return put(&draft, &name),
                Err(error) if no_links(&error) => {}
                Err(source) => return Err(Error::Write { path: name, source }),
            }
        }
        let size = fs::metadata(&blob).map_err(|source| read_error(&blob, source))?.len();
        if size > COPIED {
            return put(&blob, &name);
        }
        fs::copy(&blob, &draft).map_err(|source| Error::Write {
            path: name.clone(),
            source,
        })?;
        put(&draft, &name)
    }

    /// Notes which commit a revision points at. A revision that is a commit needs no note.
    ///
    /// # Errors
    /// [`Error::Write`], [`Error::Trap`] if a folder is a link.
    pub fn set_ref(&self, revision: &Revision, commit: &Commit) -> Result<(), Error> {
        if revision.commit().is_some() {
            return Ok(());
        }
        self.prepare()?;
        let path = self.ref_path(revision);
        let relative = Path::new(&self.id.folder()).join("refs").join(revision.as_str());
        if let Some(parent) = relative.parent() {
            folder_below(&self.cache.root, parent)?;
        }
        // In `refs`, a draft would be taken for a ref.
        write_shared(&path, &self.folder(), commit.as_str().as_bytes(), Durability::PowerLoss)
            .map_err(|source| Error::Write { path, source })
    }

    /// The commit that a revision pointed at when it was last fetched, or the one it is.
    pub fn resolve(&self, revision: &Revision) -> Option<Commit> {
        revision
            .commit()
            .or_else(|| Commit::new(fs::read_to_string(self.ref_path(revision)).ok()?.trim()).ok())
    }

    /// Every ref and the commit it names.
    pub fn refs(&self) -> Vec<(Revision, Commit)> {
        let mut found = Vec::new();
        walk(&self.folder().join("refs"), 8, &mut |relative, _| {
            if let Ok(revision) = Revision::new(relative) {
                found.extend(self.resolve(&revision).map(|commit| (revision, commit)));
            }
        });
        found.sort();
        found
    }

    /// The commits that have a snapshot, by name.
    pub fn commits(&self) -> Vec<Commit> {
        let mut found: Vec<Commit> = fs::read_dir(self.folder().join("snapshots"))
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .filter_map(|entry| Commit::new(entry.file_name().to_str()?).ok())
            .collect();
        found.sort();
        found
    }

    /// The files of a snapshot, links to nothing included, by path.
    pub fn files(&self, commit: &Commit) -> Vec<SnapshotFile> {
        let snapshot = self.snapshot(commit);
        let mut found = Vec::new();
        walk(&snapshot, 33, &mut |relative, full| {
            if let Ok(path) = FilePath::new(relative) {
                found.push(self.file(path, full));
            }
        });
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    fn file(&self, path: FilePath, full: &Path) -> SnapshotFile {
        let target = fs::read_link(full).ok();
        let etag = target
            .as_ref()
            .filter(|target| {
                target
                    .parent()
                    .and_then(Path::file_name)
                    .is_some_and(|folder| folder == "blobs")
            })
            .and_then(|target| Etag::new(target.file_name()?.to_str()?).ok())
            // A link that looks like one to a blob and leads elsewhere is none.
            .filter(|etag| target == Some(link_to(&path, etag)) || same_place(full, &self.blob(etag)));
        SnapshotFile {
            path,
            link: target.is_some(),
            etag,
            bytes: fs::metadata(full)
                .ok()
                .filter(|meta| meta.is_file())
                .map(|meta| meta.len()),
        }
    }

    fn ref_path(&self, revision: &Revision) -> PathBuf {
        self.folder().join("refs").join(revision.as_str())
    }

    /// A name in the model's folder that no reader of the cache looks at.
    fn draft(&self) -> PathBuf {
        self.folder()
            .join(format!("{DRAFT_PREFIX}{}", uuid::Uuid::now_v7().simple()))
    }
}

/// A file of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Its path in the repository.
    pub path: FilePath,
    /// Whether it is a link; else the content is in the snapshot itself.
    pub link: bool,
    /// The blob it is a link to; `None` for content of its own and for links to elsewhere.
    pub etag: Option<Etag>,
    /// Its size; `None` if the link leads to nothing.
    pub bytes: Option<u64>,
}

/// The target of a snapshot's link: from its folder up to the model's, and down to the blob.
fn link_to(path: &FilePath, etag: &Etag) -> PathBuf {
    PathBuf::from("../".repeat(path.depth() + 2))
        .join("blobs")
        .join(etag.as_str())
}

fn same_place(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Calls `seen` with the path relative to `folder` and the full path of every file and link below it. Links to folders are not entered.
pub(crate) fn walk(folder: &Path, deepest: usize, seen: &mut dyn FnMut(&str, &Path)) {
    fn inner(folder: &Path, prefix: &str, left: usize, seen: &mut dyn FnMut(&str, &Path)) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                continue;
            };
            let relative = format!("{prefix}{name}");
            if !kind.is_dir() {
                seen(&relative, &entry.path());
            } else if left > 0 {
                inner(&entry.path(), &format!("{relative}/"), left - 1, seen);
            }
        }
    }
    inner(folder, "", deepest, seen);
}

fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}

/// Makes `relative` below `root`, each part of it a real folder: a link would lead what is written to another place.
fn folder_below(root: &Path, relative: &Path) -> Result<(), Error> {
    let mut path = root.to_owned();
    for part in relative {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(Error::Trap { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::create_dir(&path) {
                Ok(()) => {}
                // Another process made it just then.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
                Err(source) => return Err(Error::Write { path, source }),
            },
            Err(source) => return Err(Error::Write { path, source }),
        }
    }
    Ok(())
}

/// Refuses what stands at `path` if it is no file: a link would lead what is written to another place.
pub(crate) fn refuse_link(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) {
        true => Err(Error::Trap { path: path.to_owned() }),
        false => Ok(()),
    }
}

/// Opens a file for reading and writing, and makes it if it is not there. What it holds stays; a link is refused.
pub(crate) fn open_file(path: &Path) -> Result<File, Error> {
    refuse_link(path)?;
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    opened.map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}

/// Gives a file its name in one step; what cannot be named is removed.
fn put(draft: &Path, name: &Path) -> Result<(), Error> {
    fs::rename(draft, name).map_err(|source| {
        if draft
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(DRAFT_PREFIX))
        {
            let _ = fs::remove_file(draft);
        }
        Error::Write {
            path: name.to_owned(),
            source,
        }
    })
}

fn read_error(path: &Path, source: io::Error) -> Error {
    Error::Read {
        path: path.to_owned(),
        source,
    }
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn symlink(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether a file system has no symbolic links: exFAT answers "not permitted", others "not supported".
fn no_links(error: &io::Error) -> bool {
    // EPERM is 1 on every Unix; a folder that may not be written is EACCES, which is another matter.
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(1)
}
