//! The models on this computer, by reference and as a list.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{LocalModel, ModelFolderEntry, ModelPlace, ModelShelf};
use protocol::{FolderSource, ImageDetail, ModelSource};

use crate::cache::{Cache, Repository, RepositoryId, Revision};
use crate::error::Error;
use crate::local::adapters::{added, is_adapter, with_base};
use crate::local::home::{self, BUILT_IN};
use crate::local::inspect::{bytes, name_of, Inspections};
use crate::local::last_used::LastUsed;
use crate::local::scan::{folder_kind, model_of, snapshots, FolderKind, FoundModel};

/// Limit of the threads that inspect models for the first time.
const READERS: usize = 4;

/// The models on this computer. Clones share the inspections.
#[derive(Debug, Clone, Default)]
pub struct ModelFolder {
    built_in: Option<PathBuf>,
    cache: Option<Cache>,
    /// The folder of Ponder's own data; without one nothing is stored.
    data: Option<PathBuf>,
    inspections: Arc<Inspections>,
    /// Folders that the user added. The host stores them as a setting.
    own: Arc<Mutex<Vec<PathBuf>>>,
    last_used: Arc<LastUsed>,
}

impl ModelFolder {
    /// The folders of this computer.
    pub fn open() -> Self {
        let mut folder = Self::at(home::built_in_model(), home::hub_cache());
        if home::links_are_off() {
            folder.cache = folder.cache.map(Cache::without_links);
        }
        match home::data_dir() {
            Ok(data) => folder.with_data_dir(data),
            Err(_) => folder,
        }
    }

    /// Other folders, for tests. Nothing is stored unless [`Self::with_data_dir`] says where.
    pub fn at(built_in: Option<PathBuf>, hub_cache: Option<PathBuf>) -> Self {
        Self {
            built_in,
            cache: hub_cache.map(Cache::at),
            ..Self::default()
        }
    }

    /// The same, with imported models, inspections and times of use in this data folder.
    #[must_use]
    pub fn with_data_dir(mut self, data: PathBuf) -> Self {
        self.inspections = Arc::new(Inspections::stored_in(data.join("inspected.json")));
        self.last_used = Arc::new(LastUsed::stored_in(data.join("last_used.json")));
        self.data = Some(data);
        self
    }

    /// The cache that is written to.
    ///
    /// # Errors
    /// [`Error::NoHome`] if this computer names no place for it.
    pub fn cache(&self) -> Result<&Cache, Error> {
        self.cache.as_ref().ok_or(Error::NoHome)
    }

    /// All models, the built-in one first, the others by name. Folders of the cache without a config.json, such as
    /// datasets, are left out. Models that cannot be used have the reason.
    pub fn list(&self) -> Vec<LocalModel> {
        let found = self.found();
        let models = self.inspect(&found);
        let paths: Vec<PathBuf> = found.into_iter().map(|found| found.source.path).collect();
        if let Err(error) = self.inspections.keep(&paths) {
            tracing::warn!("the next start will read all models again: {error}");
        }
        let used = self.last_used.times();
        let mut by_reference: HashMap<String, usize> = HashMap::new();
        let mut listed: Vec<LocalModel> = Vec::new();
        for mut model in models {
            model.last_used_at = used.get(&model.reference).copied();
            match by_reference.get(&model.reference) {
                // Of the same model in two caches, the usable one counts.
                Some(&other) if listed[other].problem.is_some() && model.problem.is_none() => listed[other] = model,
                Some(_) => {}
                None => {
                    by_reference.insert(model.reference.clone(), listed.len());
                    listed.push(model);
                }
            }
        }
        let key = |model: &LocalModel| (!model.built_in, model.name.to_lowercase(), model.reference.clone());
        let keys: HashMap<String, _> = listed
            .iter()
            .map(|model| (model.reference.clone(), key(model)))
            .collect();
        // An adapter follows the model that it belongs to.
        listed.sort_by_cached_key(|model| {
            let of = model.adapter_of.as_ref().and_then(|base| keys.get(base)).cloned();
            (of.unwrap_or_else(|| key(model)), model.adapter_of.is_some(), key(model))
        });
        listed
    }

    /// The model of this reference: `pebble`, a hub id, a hub id with `@` and a branch, tag or commit, or a folder. An
    /// adapter is found with the model that it belongs to; `MODEL:ADAPTER` names both.
    ///
    /// # Errors
    /// [`Error::NotFound`], or [`Error::Incomplete`] if files are missing or cut short.
    pub fn find(&self, reference: &str) -> Result<FolderSource, Error> {
        let model = self.find_words(reference)?;
        match self.inspections.fault(&model.path) {
            Some(fault) => Err(Error::Incomplete {
                reference: reference.into(),
                fault: format!("{} {}", fault.path, fault.reason),
                path: model.path,
            }),
            None => Ok(model),
        }
    }

    /// [`ModelFolder::find`] for callers that only need a model's tokenizer and template; its weights may be missing.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn find_words(&self, reference: &str) -> Result<FolderSource, Error> {
        let missing = match self.locate(reference) {
            Ok(found) if is_adapter(&found.source.path) => {
                let all = self.found();
                let sources: Vec<&FolderSource> = all.iter().map(|found| &found.source).collect();
                return with_base(&found.source, &sources);
            }
            Ok(found) => return Ok(found.source),
            Err(missing) => missing,
        };
        // `MODEL:ADAPTER`, whatever model the adapter names.
        let Some((base, adapter)) = reference.rsplit_once(':') else {
            return Err(missing);
        };
        let (Ok(base), Ok(adapter)) = (self.locate(base), self.locate(adapter)) else {
            return Err(missing);
        };
        match (is_adapter(&base.source.path), is_adapter(&adapter.source.path)) {
            (false, true) => {
                let reference = format!("{}:{}", base.source.reference, adapter.source.reference);
                Ok(added(&base.source, adapter.source.path, reference))
            }
            _ => Err(missing),
        }
    }

    /// True if a whole model of this reference is here.
    pub(crate) fn has(&self, reference: &str) -> bool {
        self.find(reference).is_ok()
    }

    /// Records that a model answers now, for the list.
    pub fn used(&self, reference: &str) {
        self.last_used.record(reference);
    }

    /// Runs work that blocks on files, off the runtime's threads.
    ///
    /// # Errors
    /// Those of the work; [`Error::Broken`] if it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = self.clone();
        tokio::task::spawn_blocking(move || work(&folder))
            .await
            .map_err(|_| Error::Broken)?
    }

    /// The folders that are searched for models: the cache, the folder of imported models, and those that the user
    /// added.
    pub fn folders(&self) -> Vec<ModelFolderEntry> {
        let cache = self.cache.iter().map(|cache| {
            let problem = cache.repositories().err();
            self.entry(cache.root(), false, &self.in_cache(cache), problem)
        });
        let imported = self.imports().map(|folder| {
            let (found, _) = self.in_folder(&folder, ModelPlace::Imported);
            self.entry(&folder, false, &found, None)
        });
        let own = self.own_folders().into_iter().map(|folder| {
            let (found, problem) = self.in_folder(&folder, ModelPlace::OwnFolder);
            let none = found.is_empty().then(|| Error::NoModelFolder(folder.clone()));
            self.entry(&folder, true, &found, problem.or(none))
        });
        cache.chain(imported).chain(own).collect()
    }

    fn entry(&self, path: &Path, own: bool, found: &[FoundModel], problem: Option<Error>) -> ModelFolderEntry {
        ModelFolderEntry {
            path: path.display().to_string(),
            own,
            models: u32::try_from(found.len()).unwrap_or(u32::MAX),
            bytes: found.iter().map(|model| bytes(&model.source.path)).sum(),
            problem: problem.map(Into::into),
        }
    }

    /// The folders that the user added. The host stores them among its settings.
    pub fn own_folders(&self) -> Vec<PathBuf> {
        self.own().clone()
    }

    /// Replaces the folders that the user added.
    pub fn set_own_folders(&self, folders: Vec<PathBuf>) {
        *self.own() = folders;
    }

    /// Adds a folder of the user's: a model, a folder of models, or another cache. Adding it twice changes nothing.
    ///
    /// # Errors
    /// [`Error::Read`] if it is no folder that can be read, [`Error::NoModelFolder`] if it holds no model, as `/` and
    /// `/etc` hold none.
    pub fn add_folder(&self, path: &Path) -> Result<PathBuf, Error> {
        let unreadable = |source| Error::read(path, source);
        // The meaning of a relative path depends on the folder in which the app was started.
        let whole = path.is_absolute() && !path.components().any(|part| part == std::path::Component::ParentDir);
        let folder = path.canonicalize().map_err(unreadable)?;
        // Every folder of the disk would count as a model that happens to hold a file with that name.
        if folder.parent().is_none() {
            return Err(Error::NoModelFolder(folder));
        }
        match folder_kind(&folder).map_err(unreadable)? {
            FolderKind::Models(models) if models.is_empty() => return Err(Error::NoModelFolder(folder)),
            _ if !whole => return Err(Error::NoModelFolder(path.to_owned())),
            FolderKind::Models(_) | FolderKind::Cache(_) => {}
        }
        let mut own = self.own();
        if !own.contains(&folder) {
            own.push(folder.clone());
        }
        Ok(folder)
    }

    /// Removes a folder from the list and returns true if it was there. Nothing in the folder is touched.
    pub fn remove_folder(&self, path: &Path) -> bool {
        // A folder that no longer exists has no canonical path and must still be removable.
        let folder = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut own = self.own();
        let before = own.len();
        own.retain(|known| *known != folder && known != path);
        own.len() < before
    }

    fn own(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        // The list is valid after every step, so a panic elsewhere does not invalidate it.
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder of imported models; `None` if none was imported.
    pub(crate) fn imports(&self) -> Option<PathBuf> {
        self.import_folder().ok().filter(|folder| folder.is_dir())
    }

    /// The folder for imported models, which need not exist.
    ///
    /// # Errors
    /// [`Error::NoHome`] if this computer names no place for the app's data.
    pub(crate) fn import_folder(&self) -> Result<PathBuf, Error> {
        self.data.as_ref().map(|data| data.join("models")).ok_or(Error::NoHome)
    }

    /// The repository of this id, in the main cache or in one that the user added.
    pub(crate) fn repository(&self, id: &RepositoryId) -> Result<Repository, Error> {
        let main = self.cache()?.repository(id);
        if main.folder().is_dir() {
            return Ok(main);
        }
        let own = self
            .own_folders()
            .into_iter()
            .filter_map(|folder| match folder_kind(&folder) {
                Ok(FolderKind::Cache(cache)) => Some(cache.repository(id)),
                _ => None,
            });
        let own = own.into_iter().find(|repository| repository.folder().is_dir());
        Ok(own.unwrap_or(main))
    }

    /// A model by its reference, whole or not.
    pub(crate) fn locate(&self, reference: &str) -> Result<FoundModel, Error> {
        let not_found = || Error::NotFound(reference.into());
        if reference == BUILT_IN {
            return self.built_in().ok_or_else(not_found);
        }
        let path = Path::new(reference);
        // A hub id is `owner/name`; a path of a folder is a folder.
        if path.is_dir() {
            let path = path.canonicalize().map_err(|_| not_found())?;
            let imported = self.imports().and_then(|folder| folder.canonicalize().ok());
            let place = match path.parent() {
                Some(parent) if imported.as_deref() == Some(parent) => ModelPlace::Imported,
                _ => ModelPlace::OwnFolder,
            };
            return Ok(folder_model(path, place));
        }
        let (id, revision) = match reference.split_once('@') {
            Some((id, revision)) => (id, Some(Revision::new(revision).map_err(|_| not_found())?)),
            None => (reference, None),
        };
        let id = RepositoryId::new(id).map_err(|_| not_found())?;
        let repository = self.repository(&id).map_err(|_| not_found())?;
        let mut found = model_of(&repository, &|path| self.inspections.fault(path).is_none()).ok_or_else(not_found)?;
        if let Some(revision) = revision {
            let wanted = snapshots(&repository).into_iter().find(|snapshot| {
                let commit = snapshot.commit.as_str();
                snapshot.refs.iter().any(|name| name == revision.as_str())
                    || revision.as_str().len() >= 7 && commit.starts_with(revision.as_str())
            });
            let wanted = wanted.ok_or_else(not_found)?;
            found.source = FolderSource {
                reference: reference.into(),
                path: wanted.path,
                revision: Some(wanted.commit.to_string()),
                adapter: None,
            };
        }
        Ok(found)
    }

    fn built_in(&self) -> Option<FoundModel> {
        let path = self.built_in.clone()?;
        Some(FoundModel {
            source: FolderSource {
                reference: BUILT_IN.into(),
                path,
                revision: None,
                adapter: None,
            },
            place: ModelPlace::BuiltIn,
            revisions: Vec::new(),
        })
    }

    fn found(&self) -> Vec<FoundModel> {
        let mut found: Vec<FoundModel> = self.built_in().into_iter().collect();
        found.extend(self.cache.iter().flat_map(|cache| self.in_cache(cache)));
        let imported = self.imports().into_iter().map(|folder| (folder, ModelPlace::Imported));
        let own = self
            .own_folders()
            .into_iter()
            .map(|folder| (folder, ModelPlace::OwnFolder));
        found.extend(
            imported
                .chain(own)
                .flat_map(|(folder, place)| self.in_folder(&folder, place).0),
        );
        found
    }

    fn in_cache(&self, cache: &Cache) -> Vec<FoundModel> {
        let repositories = cache.repositories().unwrap_or_else(|error| {
            tracing::warn!("{error}");
            Vec::new()
        });
        let whole = |path: &Path| self.inspections.fault(path).is_none();
        let models = repositories
            .iter()
            .filter_map(|repository| model_of(repository, &whole));
        models.collect()
    }

    /// The models in a folder, and the reason if it cannot be read.
    fn in_folder(&self, folder: &Path, place: ModelPlace) -> (Vec<FoundModel>, Option<Error>) {
        match folder_kind(folder) {
            Ok(FolderKind::Cache(cache)) => (self.in_cache(&cache), None),
            Ok(FolderKind::Models(models)) => {
                (models.into_iter().map(|path| folder_model(path, place)).collect(), None)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                (Vec::new(), Some(Error::FolderGone(folder.to_owned())))
            }
            Err(error) => (Vec::new(), Some(Error::read(folder, error))),
        }
    }

    /// The list's entry for an adapter: that of its model, with a name and files of its own.
    fn adapter(&self, adapter: &FolderSource, all: &[FoundModel]) -> LocalModel {
        let sources: Vec<&FolderSource> = all.iter().map(|found| &found.source).collect();
        let base = with_base(adapter, &sources);
        let own = FolderSource {
            adapter: None,
            ..base.as_ref().unwrap_or(adapter).clone()
        };
        let of = all.iter().find(|found| base.is_ok() && found.source.path == own.path);
        let model = self.inspections.model(of.map_or(&own, |found| &found.source));
        LocalModel {
            reference: adapter.reference.clone(),
            name: name_of(&adapter.reference),
            path: adapter.path.display().to_string(),
            bytes: bytes(&adapter.path),
            revision: adapter.revision.clone(),
            adapter_of: of.map(|found| found.source.reference.clone()),
            problem: base.err().map(Into::into).or(model.problem),
            incomplete: false,
            quantizable: false,
            ..model
        }
    }

    /// Inspects the models on a few threads at once.
    fn inspect(&self, found: &[FoundModel]) -> Vec<LocalModel> {
        let all = found;
        let next = AtomicUsize::new(0);
        let models: Mutex<Vec<(usize, LocalModel)>> = Mutex::default();
        let read = || loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(found) = found.get(number) else { break };
            let inspected = match is_adapter(&found.source.path) {
                true => self.adapter(&found.source, all),
                false => self.inspections.model(&found.source),
            };
            let model = LocalModel {
                built_in: found.place == ModelPlace::BuiltIn,
                place: found.place,
                revisions: found.revisions.clone(),
                ..inspected
            };
            let mut models = models.lock().unwrap_or_else(PoisonError::into_inner);
            models.push((number, model));
        };
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(READERS));
        std::thread::scope(|scope| {
            for _ in 1..threads.min(found.len()) {
                scope.spawn(read);
            }
            read();
        });
        let mut models = models.into_inner().unwrap_or_else(PoisonError::into_inner);
        models.sort_by_key(|(number, _)| *number);
        models.into_iter().map(|(_, model)| model).collect()
    }
}

impl ModelShelf for ModelFolder {
    fn resolve(&self, reference: &str) -> protocol::Result<ModelSource> {
        Ok(self.find(reference)?.into())
    }

    fn used(&self, reference: &str) {
        ModelFolder::used(self, reference);
    }

    fn list(&self) -> Vec<LocalModel> {
        ModelFolder::list(self)
    }

    fn image_tokens(&self, model: &ModelSource, sizes: &[(u32, u32)], detail: ImageDetail) -> Option<Vec<u32>> {
        let processor = checkpoint::vision_support(&model.folder()?.path).ok()??;
        let plans = sizes
            .iter()
            .map(|(width, height)| processor.plan(*width, *height, detail));
        plans.map(|plan| Some(plan.ok()?.tokens() as u32)).collect()
    }
}

/// A link is called what it leads to, so that one model has one reference.
fn folder_model(path: PathBuf, place: ModelPlace) -> FoundModel {
    let path = path.canonicalize().unwrap_or(path);
    FoundModel {
        source: FolderSource {
            reference: path.to_string_lossy().into_owned(),
            path,
            revision: None,
            adapter: None,
        },
        place,
        revisions: Vec::new(),
    }
}
