//! The layout of the standard Hugging Face cache, for reading and for writing.
//!
//! ```text
//! <cache>/.locks/models--owner--name/<etag>.lock
//! <cache>/models--owner--name/blobs/<etag>                   the content, named by its hash
//!                            /refs/main                      the commit that a branch or tag pointed at
//!                            /snapshots/<commit>/<path>      a relative link to a blob
//! ```
//!
//! Everything is written through [`Repository`]: each name is checked before it becomes part of a path, and no folder
//! on the way may be a link, so nothing is written outside the model's own folder.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use files::{write_shared, Durability, DRAFT_PREFIX};

use super::{Commit, Etag, FilePath, Lock, RepositoryId, Revision};
use crate::error::Error;

/// Limit of files that are copied where links are missing, in bytes, so that two equal ones both find their blob;
/// larger ones are moved.
const COPIED: u64 = 1 << 20;

/// A folder in the layout of the hub's clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
    links: bool,
}

impl Cache {
    /// The cache in this folder, which need not exist yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            links: true,
        }
    }

    /// The same cache without symbolic links, for a file system that has none, or if `HF_HUB_DISABLE_SYMLINKS` asks for
    /// it.
    #[must_use]
    pub fn without_links(mut self) -> Self {
        self.links = false;
        self
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The place of a repository in the cache.
    pub fn repository(&self, id: &RepositoryId) -> Repository {
        Repository {
            cache: self.clone(),
            id: id.clone(),
        }
    }

    /// The model repositories that have a folder here, by name.
    ///
    /// # Errors
    /// [`Error::Read`] if the folder exists and cannot be read.
    pub fn repositories(&self) -> Result<Vec<Repository>, Error> {
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|source| Error::read(&self.root, source))?,
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
    /// The repository's id.
    pub fn id(&self) -> &RepositoryId {
        &self.id
    }

    /// The cache that contains it.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Its folder, `models--owner--name`.
    pub fn folder(&self) -> PathBuf {
        self.cache.root.join(self.id.folder())
    }

    /// The path of the content with this hash, which need not exist.
    pub fn blob(&self, etag: &Etag) -> PathBuf {
        self.folder().join("blobs").join(etag.as_str())
    }

    /// The path of content whose hash is not verified yet. huggingface_hub takes neither this name nor names that begin
    /// with it for a file of its own.
    pub fn partial(&self, etag: &Etag) -> PathBuf {
        self.folder().join("blobs").join(format!("{etag}.ponder"))
    }

    /// The path of the lock that every writer of this blob holds.
    pub fn lock_path(&self, etag: &Etag) -> PathBuf {
        self.locks().join(format!("{etag}.lock"))
    }

    /// The folder of its locks.
    pub fn locks(&self) -> PathBuf {
        self.cache.root.join(".locks").join(self.id.folder())
    }

    /// Takes the lock of a blob; `None` if another holds it.
    ///
    /// # Errors
    /// [`Error::Write`] if the cache cannot be written, [`Error::Trap`] if a link leads elsewhere.
    pub fn try_lock(&self, etag: &Etag) -> Result<Option<Lock>, Error> {
        self.try_lock_file(&self.lock_path(etag))
    }

    /// Takes the lock of a download of the whole model; `None` if another holds it. The lock is Ponder's own:
    /// huggingface_hub locks single blobs.
    ///
    /// # Errors
    /// As [`Repository::try_lock`].
    pub fn try_lock_whole(&self) -> Result<Option<Lock>, Error> {
        self.try_lock_file(&self.locks().join("ponder.lock"))
    }

    fn try_lock_file(&self, path: &Path) -> Result<Option<Lock>, Error> {
        make_folder(&self.cache.root)?;
        folder_below(&self.cache.root, &Path::new(".locks").join(self.id.folder()))?;
        Lock::try_take(path)
    }

    /// The folder for models that are about to be deleted. No program searches it for models.
    ///
    /// # Errors
    /// [`Error::Write`] if the cache cannot be written, [`Error::Trap`] if it is a link.
    pub(crate) fn trash(&self) -> Result<PathBuf, Error> {
        folder_below(&self.cache.root, Path::new(".locks"))?;
        Ok(self.cache.root.join(".locks"))
    }

    /// The folder of a commit's files.
    pub fn snapshot(&self, commit: &Commit) -> PathBuf {
        let cache = hf_hub::Cache::new(self.cache.root.clone());
        cache.model(self.id.to_string()).pointer_path(commit.as_str())
    }

    /// Creates the folders of a download.
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

    /// Gives a verified blob its name in a snapshot. An older file of that name is replaced in one step.
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
            return Err(Error::Missing(blob));
        }
        let relative = Path::new(&self.id.folder()).join("snapshots").join(commit.as_str());
        let relative = path.under(&relative);
        if let Some(parent) = relative.parent() {
            folder_below(&self.cache.root, parent)?;
        }
        if fs::symlink_metadata(&name).is_ok_and(|meta| meta.is_dir()) {
            return Err(Error::Trap(name));
        }
        let draft = self.draft();
        if self.cache.links {
            match symlink(&link, &draft) {
                Ok(()) => return put(&draft, &name),
                Err(error) if no_links(&error) => {}
                Err(source) => return Err(Error::write(&name, source)),
            }
        }
        let size = fs::metadata(&blob).map_err(|source| Error::read(&blob, source))?.len();
        if size > COPIED {
            return put(&blob, &name);
        }
        fs::copy(&blob, &draft).map_err(|source| Error::write(&name, source))?;
        put(&draft, &name)
    }

    /// Stores the commit of a revision. A revision that is a commit needs no entry.
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
            .map_err(|source| Error::write(&path, source))
    }

    /// The commit of a revision when it was last fetched. A commit is its own.
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
        let mut found: Vec<Commit> = entries(&self.folder().join("snapshots"))
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
            .filter(|target| target.parent().is_some_and(|folder| folder.ends_with("blobs")))
            .and_then(|target| Etag::new(target.file_name()?.to_str()?).ok())
            // A link that only looks like one to a blob, and leads elsewhere, does not count.
            .filter(|etag| target == Some(link_to(&path, etag)) || same_place(full, &self.blob(etag)));
        SnapshotFile {
            path,
            link: target.is_some(),
            etag,
            bytes: file_size(full),
        }
    }

    fn ref_path(&self, revision: &Revision) -> PathBuf {
        self.folder().join("refs").join(revision.as_str())
    }

    /// A name in the model's folder that readers of the cache skip.
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
    /// True for a link; else the content is in the snapshot itself.
    pub link: bool,
    /// The blob behind the link; `None` for content of its own and for links to other places.
    pub etag: Option<Etag>,
    /// Its size in bytes; `None` for a broken link.
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

/// The size of a file in bytes, links followed; `None` for anything else.
pub(crate) fn file_size(path: &Path) -> Option<u64> {
    fs::metadata(path)
        .ok()
        .filter(fs::Metadata::is_file)
        .map(|meta| meta.len())
}

/// The entries of a folder; none if it cannot be read.
pub(crate) fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Calls `seen` with the relative and the full path of every file and link below a folder. Links to folders are not
/// entered.
pub(crate) fn walk(folder: &Path, deepest: usize, seen: &mut dyn FnMut(&str, &Path)) {
    fn inner(folder: &Path, prefix: &str, left: usize, seen: &mut dyn FnMut(&str, &Path)) {
        for entry in entries(folder) {
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
    fs::create_dir_all(path).map_err(|source| Error::write(path, source))
}

/// Creates `relative` below `root`. Each part must be a real folder: a link would lead the writer to another place.
fn folder_below(root: &Path, relative: &Path) -> Result<(), Error> {
    let mut path = root.to_owned();
    for part in relative {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(Error::Trap(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::create_dir(&path) {
                Ok(()) => {}
                // Another process created it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
                Err(source) => return Err(Error::write(&path, source)),
            },
            Err(source) => return Err(Error::write(&path, source)),
        }
    }
    Ok(())
}

/// Renames a file; a draft that cannot be renamed is removed.
fn put(draft: &Path, name: &Path) -> Result<(), Error> {
    fs::rename(draft, name).map_err(|source| {
        let name_of_draft = draft.file_name().unwrap_or_default().to_string_lossy();
        if name_of_draft.starts_with(DRAFT_PREFIX) {
            let _ = fs::remove_file(draft);
        }
        Error::write(name, source)
    })
}

/// True if the error means that the file system has no symbolic links: exFAT answers "not permitted", others "not
/// supported".
fn no_links(error: &io::Error) -> bool {
    // EPERM is 1 on every Unix; a folder without write permission gives EACCES instead.
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(1)
}
