//! Deleting the files of a model. Nothing outside of the model's own folder is touched, whatever links lie in it.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use api::{ModelPlace, Removal};
use protocol::Reason;

use super::trash_folder::{free_left_behind, TrashFolder};
use crate::cache::{entries, file_size, walk, Commit, Etag, Lock, Repository, RepositoryId};
use crate::error::Error;
use crate::local::model_folder::ModelFolder;
use crate::upkeep::verify::repository_of;

/// The files that a removal deletes.
pub enum Target {
    /// A whole repository.
    All(Repository),
    /// One commit and the blobs that only it uses.
    One(Repository, Commit),
    /// A folder that Ponder created.
    Folder(PathBuf),
    /// A model in a folder of the user's, who asked to delete it: its files, and nothing else there.
    OwnFiles(PathBuf),
    /// A folder of the user's, which only leaves the list.
    Entry(PathBuf),
}

impl ModelFolder {
    /// The bytes that removing a model would free. `owner/name` means all commits of it, `owner/name@commit` one of
    /// them. The caller adds whether it is loaded, being fetched or used by chats.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn removal(&self, reference: &str) -> Result<Removal, Error> {
        let mut removal = Removal {
            reference: reference.into(),
            ..Removal::default()
        };
        match self.target(reference, false) {
            Err(error @ Error::NotFound(_)) => return Err(error),
            Err(error) => removal.refused = Some(error.into()),
            Ok(target) => {
                (removal.bytes_freed, removal.shared_bytes) = target.weight();
                removal.refused = target.locks().err().map(Into::into);
            }
        }
        Ok(removal)
    }

    /// Removes the model. A folder of the user's only leaves the list, unless `own_files_too` asks for more. Chats keep
    /// their messages and the model's name.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Kept`] for models that cannot be removed; [`Error::InUse`] if another program is
    /// fetching it; [`Error::Trap`] if a link stands in the way; [`Error::Write`], after which the rest is listed as
    /// incomplete.
    pub fn remove(&self, reference: &str, own_files_too: bool) -> Result<Removal, Error> {
        let target = self.target(reference, own_files_too)?;
        let (bytes_freed, shared_bytes) = target.weight();
        let locks = target.locks()?;
        match &target {
            Target::All(repository) => {
                discard(&repository.folder(), &repository.trash()?)?;
                locks.into_iter().for_each(Lock::remove);
                // It stays if another program holds a lock in it.
                let _ = fs::remove_dir(repository.locks());
            }
            Target::One(repository, commit) => remove_commit(repository, commit)?,
            Target::Folder(folder) => {
                // Names that begin with a dot are skipped by the list.
                let beside = folder.parent().ok_or_else(|| Error::Trap(folder.clone()))?;
                discard(folder, beside)?;
            }
            Target::OwnFiles(folder) => {
                for path in own_files(folder) {
                    fs::remove_file(&path).map_err(|source| Error::write(&path, source))?;
                }
                if self.own_folders().contains(folder) {
                    self.remove_folder(folder);
                }
                // A folder with other files stays.
                let _ = fs::remove_dir(folder);
            }
            Target::Entry(folder) => drop(self.remove_folder(folder)),
        }
        Ok(Removal {
            reference: reference.into(),
            bytes_freed,
            shared_bytes,
            ..Removal::default()
        })
    }

    pub(crate) fn target(&self, reference: &str, own_files_too: bool) -> Result<Target, Error> {
        let kept = |why: Reason, reason: &'static str| Error::Kept {
            reference: reference.into(),
            reason,
            why,
        };
        let found = match self.locate(reference) {
            Ok(found) => found,
            // A download that ended early left blobs and no model.
            Err(error) => return self.remains(reference).map(Target::All).ok_or(error),
        };
        match found.place {
            ModelPlace::BuiltIn => Err(kept(Reason::ModelBuiltIn, "it comes with the app")),
            ModelPlace::Imported => Ok(Target::Folder(found.source.path)),
            ModelPlace::Cache => {
                let no_cache = || kept(Reason::NotRemovable, "its folder is no cache");
                let (repository, commit) = repository_of(&found).ok_or_else(no_cache)?;
                real(&repository)?;
                Ok(if reference.contains('@') && repository.commits().len() > 1 {
                    Target::One(repository, commit)
                } else {
                    Target::All(repository)
                })
            }
            ModelPlace::OwnFolder => {
                let folder = found.source.path;
                let own = self.own_folders();
                let listed = own.iter().any(|own| folder.starts_with(own));
                if own_files_too && listed {
                    Ok(Target::OwnFiles(folder))
                } else if own.contains(&folder) {
                    Ok(Target::Entry(folder))
                } else {
                    let reason = "it is in a folder of yours; delete it there, or take the folder off the list";
                    Err(kept(Reason::ModelInOwnFolder, reason))
                }
            }
        }
    }

    /// The repository's folder without a model in it.
    fn remains(&self, reference: &str) -> Option<Repository> {
        let id = RepositoryId::new(reference).ok()?;
        let repository = self.repository(&id).ok()?;
        (repository.folder().is_dir() && real(&repository).is_ok()).then_some(repository)
    }
}

/// Refuses repositories whose folders are links to other places.
fn real(repository: &Repository) -> Result<(), Error> {
    let folder = repository.folder();
    let inner = ["blobs", "refs", "snapshots"].map(|name| folder.join(name));
    for path in inner.into_iter().chain([folder.clone()]) {
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && path != folder => {}
            _ => return Err(Error::Trap(path)),
        }
    }
    Ok(())
}

impl Target {
    /// Bytes that removing it frees, and shared bytes that stay.
    fn weight(&self) -> (u64, u64) {
        match self {
            Self::All(repository) => weigh(&repository.folder()),
            Self::Folder(folder) => weigh(folder),
            Self::Entry(_) => (0, 0),
            Self::OwnFiles(folder) => (own_files(folder).iter().filter_map(|path| file_size(path)).sum(), 0),
            Self::One(repository, commit) => {
                let (only, shared) = blobs_of(repository, commit);
                let size = |etag: &Etag| file_size(&repository.blob(etag));
                let blobs = |etags: &BTreeSet<Etag>| etags.iter().filter_map(size).sum::<u64>();
                let (own, _) = weigh(&repository.snapshot(commit));
                (own + blobs(&only), blobs(&shared))
            }
        }
    }

    /// Takes the locks of all files to delete.
    pub fn locks(&self) -> Result<Vec<Lock>, Error> {
        let (repository, etags) = match self {
            Self::All(repository) => (repository, None),
            Self::One(repository, commit) => (repository, Some(blobs_of(repository, commit).0)),
            Self::Folder(_) | Self::OwnFiles(_) | Self::Entry(_) => return Ok(Vec::new()),
        };
        let in_use = || Error::InUse(repository.id().to_string());
        let mut locks = Vec::new();
        for entry in entries(&repository.locks()) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(etag) = name.strip_suffix(".lock") else {
                continue;
            };
            let is_wanted = |etags: &BTreeSet<Etag>| etags.iter().any(|wanted| wanted.as_str() == etag);
            if etags.as_ref().is_none_or(is_wanted) {
                locks.push(Lock::try_take(&entry.path())?.ok_or_else(in_use)?);
            }
        }
        Ok(locks)
    }
}

/// The blobs that only this commit uses, and those that others use as well.
fn blobs_of(repository: &Repository, commit: &Commit) -> (BTreeSet<Etag>, BTreeSet<Etag>) {
    let of = |commit: &Commit| repository.files(commit).into_iter().filter_map(|file| file.etag);
    let commits = repository.commits();
    let others = commits.iter().filter(|other| *other != commit).flat_map(of);
    let others: BTreeSet<Etag> = others.collect();
    of(commit).partition(|etag| !others.contains(etag))
}

/// The files of a model directly in a folder.
fn own_files(folder: &Path) -> Vec<PathBuf> {
    const ENDINGS: [&str; 6] = ["safetensors", "json", "jinja", "txt", "model", "md"];
    let is_known = |ending: &OsStr| ENDINGS.iter().any(|known| ending == *known);
    entries(folder)
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(is_known))
        .collect()
}

fn remove_commit(repository: &Repository, commit: &Commit) -> Result<(), Error> {
    let (only, _) = blobs_of(repository, commit);
    // The names are deleted first, so that a crash leaves blobs without names and never names without blobs.
    for (revision, _) in repository.refs().into_iter().filter(|(_, named)| named == commit) {
        let refs = repository.folder().join("refs");
        let path = refs.join(revision.as_str());
        fs::remove_file(&path).map_err(|source| Error::write(&path, source))?;
        // Folders of nested names are removed with their last name.
        for parent in path.ancestors().skip(1).take_while(|parent| *parent != refs) {
            if fs::remove_dir(parent).is_err() {
                break;
            }
        }
    }
    discard(&repository.snapshot(commit), &repository.folder())?;
    for etag in only {
        let path = repository.blob(&etag);
        // A blob may itself be a link into a shared store; removing it removes the link alone.
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::write(&path, source)),
        }
    }
    let absent = repository.folder().join(".no_exist").join(commit.as_str());
    if fs::symlink_metadata(&absent).is_ok_and(|meta| meta.is_dir()) {
        let _ = fs::remove_dir_all(absent);
    }
    Ok(())
}

/// Deletes a folder: it is renamed into `beside`, out of every list, in one step, then deleted.
fn discard(folder: &Path, beside: &Path) -> Result<(), Error> {
    TrashFolder::move_in(folder, beside)?.free(folder)?;
    free_left_behind(beside);
    Ok(())
}

/// Bytes that deleting a folder frees, and bytes that stay because they have another name or lie in a shared store.
fn weigh(folder: &Path) -> (u64, u64) {
    let inside = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut files: HashMap<(u64, u64), (u64, u64, u64)> = HashMap::new();
    let mut stays: HashMap<PathBuf, u64> = HashMap::new();
    walk(folder, 64, &mut |_, path| {
        let Ok(meta) = fs::symlink_metadata(path) else { return };
        if meta.is_file() {
            let (file, names, bytes) = identity(&meta);
            files.entry(file).or_insert((bytes, names, 0)).2 += 1;
        } else if let Ok(target) = path.canonicalize() {
            let bytes = file_size(&target).filter(|_| !target.starts_with(&inside));
            stays.extend(bytes.map(|bytes| (target, bytes)));
        }
    });
    let (mut freed, mut shared) = (0, stays.values().sum());
    for (bytes, names, seen) in files.into_values() {
        *(if seen >= names { &mut freed } else { &mut shared }) += bytes;
    }
    (freed, shared)
}

/// The identity of a file, the number of its names, and the bytes it takes.
fn identity(meta: &fs::Metadata) -> ((u64, u64), u64, u64) {
    // A partial file has its final length, and takes only the blocks that were written.
    let unfinished = meta.blocks() > 0 && meta.blocks() * 512 < meta.len();
    let bytes = if unfinished { meta.blocks() * 512 } else { meta.len() };
    ((meta.dev(), meta.ino()), meta.nlink(), bytes)
}
