//! Models found on disk: in the cache by repository and commit, and in folders of the user's.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use api::{LocalRevision, ModelPlace};
use protocol::FolderSource;

use crate::cache::{Cache, Commit, Repository};
use crate::local::adapters::is_adapter;

/// A model that was found.
#[derive(Debug, Clone)]
pub(crate) struct FoundModel {
    pub source: FolderSource,
    pub place: ModelPlace,
    pub revisions: Vec<LocalRevision>,
}

/// A commit of a repository that holds a model.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub commit: Commit,
    pub path: PathBuf,
    pub refs: Vec<String>,
    changed: SystemTime,
}

/// The commits of a repository that contain a model: the one that `main` names first, then the newest.
pub(crate) fn snapshots(repository: &Repository) -> Vec<Snapshot> {
    let refs = repository.refs();
    let mut found: Vec<Snapshot> = repository
        .commits()
        .into_iter()
        .map(|commit| {
            let path = repository.snapshot(&commit);
            let named = refs.iter().filter(|(_, named)| *named == commit);
            let changed = fs::metadata(&path).and_then(|meta| meta.modified());
            Snapshot {
                refs: named.map(|(revision, _)| revision.to_string()).collect(),
                changed: changed.unwrap_or(SystemTime::UNIX_EPOCH),
                commit,
                path,
            }
        })
        // Datasets and models of other kinds have no config.json.
        .filter(|snapshot| {
            fs::symlink_metadata(snapshot.path.join("config.json")).is_ok() || is_adapter(&snapshot.path)
        })
        .collect();
    found.sort_by_key(|snapshot| (!snapshot.is_main(), std::cmp::Reverse(snapshot.changed)));
    found
}

impl Snapshot {
    fn is_main(&self) -> bool {
        self.refs.iter().any(|name| name == "main")
    }
}

/// The model of a repository: the commit that `main` names if that is complete, else the newest complete one, else
/// `main`'s with its faults. Other programs move `main` before the new commit is complete, and the old one still works.
pub(crate) fn model_of(repository: &Repository, whole: &dyn Fn(&Path) -> bool) -> Option<FoundModel> {
    let mut snapshots = snapshots(repository);
    let used = snapshots.iter().position(|snapshot| whole(&snapshot.path)).unwrap_or(0);
    if used >= snapshots.len() {
        return None;
    }
    let used = snapshots.remove(used);
    let source = FolderSource {
        reference: repository.id().to_string(),
        path: used.path.clone(),
        revision: Some(used.commit.to_string()),
        adapter: None,
    };
    let revisions = std::iter::once((used, true))
        .chain(snapshots.into_iter().map(|snapshot| (snapshot, false)))
        .map(|(snapshot, used)| LocalRevision {
            bytes: repository
                .files(&snapshot.commit)
                .iter()
                .filter_map(|file| file.bytes)
                .sum(),
            commit: snapshot.commit.to_string(),
            refs: snapshot.refs,
            used,
        })
        .collect();
    Some(FoundModel {
        source,
        place: ModelPlace::Cache,
        revisions,
    })
}

/// The kind of a folder of the user's.
#[derive(Debug, Clone)]
pub(crate) enum FolderKind {
    /// The models in it, or the folder itself.
    Models(Vec<PathBuf>),
    /// A whole cache.
    Cache(Cache),
}

/// Limit of the folders that are searched, so that a whole disk that was added by mistake does not delay the list.
const MOST_FOLDERS: usize = 5_000;

/// Finds the kind of a folder: a model, a folder of models, a folder of owners' folders of models, or a cache.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn folder_kind(folder: &Path) -> std::io::Result<FolderKind> {
    let children = children(folder)?;
    if is_model(folder) {
        return Ok(FolderKind::Models(vec![folder.to_owned()]));
    }
    let is_cache = |child: &PathBuf| {
        let name = child.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("models--") && child.join("snapshots").is_dir()
    };
    if children.iter().any(is_cache) {
        return Ok(FolderKind::Cache(Cache::at(folder)));
    }
    let mut left = MOST_FOLDERS;
    let mut models = Vec::new();
    for child in children {
        if is_model(&child) {
            models.push(child);
        } else {
            let grandchildren = self::children(&child).unwrap_or_default();
            left = left.saturating_sub(1 + grandchildren.len());
            models.extend(grandchildren.into_iter().filter(|folder| is_model(folder)));
        }
        if left == 0 {
            break;
        }
    }
    Ok(FolderKind::Models(models))
}

/// True for the folder of a model, complete or not, or of an adapter.
pub(crate) fn is_model(folder: &Path) -> bool {
    folder.join("config.json").is_file() || is_adapter(folder)
}

/// The visible folders in a folder, by name.
fn children(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)?
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    Ok(found)
}
