//! Finding models by name and listing all of them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use protocol::{LocalModel, ModelShelf, ModelSource};

use crate::inspect::{inspect, missing_file};
use crate::{home, Error};

/// The reference of the model that comes with the app.
pub const BUILT_IN: &str = "pebble";

/// What was read of a model, and when its folder was last changed then.
type Inspected = HashMap<PathBuf, (SystemTime, LocalModel)>;

/// The models on this computer. Clones share what they have read.
#[derive(Debug, Clone, Default)]
pub struct ModelFolder {
    built_in: Option<PathBuf>,
    hub_cache: Option<PathBuf>,
    inspected: Arc<Mutex<Inspected>>,
}

impl ModelFolder {
    /// The folders this computer uses.
    pub fn open() -> Self {
        Self {
            built_in: home::built_in_model(),
            hub_cache: home::hub_cache(),
            inspected: Arc::default(),
        }
    }

    /// Folders of one's own choice, for tests.
    pub fn at(built_in: Option<PathBuf>, hub_cache: Option<PathBuf>) -> Self {
        Self {
            built_in,
            hub_cache,
            inspected: Arc::default(),
        }
    }

    /// All models, the built-in one first, the others by name. Folders of the cache that hold something else (datasets,
    /// models without a config.json) are left out; models that cannot be used say why.
    pub fn list(&self) -> Vec<LocalModel> {
        let built_in = self
            .built_in
            .iter()
            .map(|path| self.inspect(&source(BUILT_IN, path.clone(), None), true));
        let mut others: Vec<_> = self.cached().into_iter().map(|model| self.inspect(&model, false)).collect();
        others.sort_by(|a, b| {
            a.name
                .to_lowercase()
                .cmp(&b.name.to_lowercase())
                .then_with(|| a.reference.cmp(&b.reference))
        });
        built_in.chain(others).collect()
    }

    /// The model of this reference: `pebble`, a hub id, or a folder.
    ///
    /// # Errors
    /// [`Error::NotFound`], or [`Error::Incomplete`] where files are missing.
    pub fn find(&self, reference: &str) -> Result<ModelSource, Error> {
        let model = self.locate(reference).ok_or_else(|| Error::NotFound {
            reference: reference.into(),
        })?;
        match missing_file(&model.path) {
            Some(missing) => Err(Error::Incomplete {
                reference: reference.into(),
                missing,
                path: model.path,
            }),
            None => Ok(model),
        }
    }

    /// Reading a tokenizer takes up to a second, so a folder that has not changed is not read twice.
    fn inspect(&self, model: &ModelSource, built_in: bool) -> LocalModel {
        let changed = fs::metadata(&model.path)
            .and_then(|meta| meta.modified())
            .unwrap_or(SystemTime::UNIX_EPOCH);
        let known = self
            .inspected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&model.path)
            .cloned();
        if let Some((_, known)) = known.filter(|(when, known)| *when == changed && known.problem.is_none()) {
            return known;
        }
        let read = inspect(model, built_in);
        self.inspected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(model.path.clone(), (changed, read.clone()));
        read
    }

    fn locate(&self, reference: &str) -> Option<ModelSource> {
        if reference == BUILT_IN {
            return self.built_in.clone().map(|path| source(BUILT_IN, path, None));
        }
        let path = Path::new(reference);
        // A hub id is `owner/name`; anything that is a folder here is a folder.
        if path.is_dir() {
            return path
                .canonicalize()
                .ok()
                .map(|path| source(&path.to_string_lossy(), path.clone(), None));
        }
        self.cached().into_iter().find(|model| model.reference == reference)
    }

    /// Every snapshot of the cache that `refs/main` names, or the only one there is.
    fn cached(&self) -> Vec<ModelSource> {
        let Some(entries) = self.hub_cache.as_ref().and_then(|cache| fs::read_dir(cache).ok()) else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let reference = name.strip_prefix("models--")?.replace("--", "/");
                let (revision, path) = newest_snapshot(&entry.path())?;
                path.join("config.json").exists().then(|| source(&reference, path, Some(revision)))
            })
            .collect()
    }
}

impl ModelShelf for ModelFolder {
    fn resolve(&self, reference: &str) -> protocol::Result<ModelSource> {
        Ok(self.find(reference)?)
    }
}

fn source(reference: &str, path: PathBuf, revision: Option<String>) -> ModelSource {
    ModelSource {
        reference: reference.into(),
        path,
        revision,
    }
}

fn newest_snapshot(repository: &Path) -> Option<(String, PathBuf)> {
    let snapshots = repository.join("snapshots");
    if let Ok(commit) = fs::read_to_string(repository.join("refs/main")) {
        let path = snapshots.join(commit.trim());
        if path.is_dir() {
            return Some((commit.trim().to_owned(), path));
        }
    }
    let mut found: Vec<_> = fs::read_dir(snapshots)
        .ok()?
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .collect();
    found.sort_by_key(|entry| entry.metadata().and_then(|meta| meta.modified()).ok());
    let newest = found.pop()?;
    Some((newest.file_name().into_string().ok()?, newest.path()))
}
