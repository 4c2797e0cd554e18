//! The inspection of a model folder without loading it. The results are stored, because reading a tokenizer takes up to
//! a second.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use api::{LocalModel, ModelPlace};
use checkpoint::conversion::Conversion;
use checkpoint::embedding::MODULES;
use checkpoint::{check_folder, vision_support, EmbeddingConfig, ModelConfig};
use prompt::{ChatProcessor, RenderLimits, TextEncoder};
use protocol::{ErrorCode, FolderSource, ModelKind, Sampling, ThinkingControl, ThoughtMarkers};
use serde::{Deserialize, Serialize};

use crate::cache::file_size;
use crate::error::Error;
use crate::local::hf_tree;
use crate::local::home::BUILT_IN;
use crate::local::integrity::{files, first_fault, oversize, Fault};
use crate::local::json_file;

/// The inspections of model folders, each kept until one of its files changes.
#[derive(Debug, Default)]
pub(crate) struct Inspections {
    /// The file that keeps them between two starts.
    file: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    read: bool,
    changed: bool,
    folders: HashMap<PathBuf, Inspection>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Inspection {
    /// Hash of the names, sizes and times of the files.
    print: u64,
    fault: Option<Fault>,
    model: Option<LocalModel>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct InspectionFile {
    /// The program that inspected: another one may know more families.
    program: u64,
    folders: BTreeMap<PathBuf, Inspection>,
}

impl Inspections {
    pub fn stored_in(file: PathBuf) -> Self {
        Self {
            file: Some(file),
            known: Mutex::default(),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut known.read, true) {
            if let Some(file) = &self.file {
                let stored: InspectionFile = json_file::read(file);
                if stored.program == program() {
                    known.folders = stored.folders.into_iter().collect();
                }
            }
        }
        known
    }

    /// The first fault that keeps the model in this folder from being loaded.
    pub fn fault(&self, folder: &Path) -> Option<Fault> {
        let print = print(folder);
        if let Some(known) = self.known().folders.get(folder).filter(|known| known.print == print) {
            return known.fault.clone();
        }
        let fault = first_fault(folder).or_else(|| hf_tree::first_missing(folder));
        let mut known = self.known();
        known.changed = true;
        let inspection = Inspection {
            print,
            fault: fault.clone(),
            model: None,
        };
        known.folders.insert(folder.to_owned(), inspection);
        fault
    }

    /// The list's entry for a model, except for the kind of folder it is in and the time of its last use.
    pub fn model(&self, source: &FolderSource) -> LocalModel {
        let fault = self.fault(&source.path);
        let is_same = |known: &LocalModel| known.reference == source.reference && known.revision == source.revision;
        let known = self
            .known()
            .folders
            .get(&source.path)
            .and_then(|known| known.model.clone());
        if let Some(known) = known.filter(is_same) {
            return known;
        }
        let model = inspect(source, fault.as_ref());
        let mut known = self.known();
        known.changed = true;
        if let Some(inspection) = known.folders.get_mut(&source.path) {
            inspection.model = Some(model.clone());
        }
        model
    }

    /// Stores the inspections of these folders for the next start, and forgets the others.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn keep(&self, folders: &[PathBuf]) -> Result<(), Error> {
        let mut known = self.known();
        let Some(file) = self.file.as_ref().filter(|_| std::mem::take(&mut known.changed)) else {
            return Ok(());
        };
        let folders = folders
            .iter()
            .filter_map(|folder| Some((folder.clone(), known.folders.get(folder)?.clone())))
            .collect();
        drop(known);
        let program = program();
        json_file::write(file, &InspectionFile { program, folders })
    }
}

/// A hash that differs between two builds of this program.
fn program() -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    let meta = std::env::current_exe().and_then(fs::metadata);
    if let Ok(meta) = meta {
        (meta.len(), modified(&meta)).hash(&mut hasher);
    }
    hasher.finish()
}

fn modified(meta: &fs::Metadata) -> u128 {
    let modified = meta.modified().ok();
    let since = modified.and_then(|when| when.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_nanos())
}

/// A hash that changes whenever a file of the folder is replaced, cut, added or removed. Links are followed, because
/// the blobs count.
fn print(folder: &Path) -> u64 {
    let mut seen: Vec<(String, Option<(u64, u128)>)> = files(folder)
        .map(|name| {
            let meta = fs::metadata(folder.join(&name)).ok();
            (name, meta.map(|meta| (meta.len(), modified(&meta))))
        })
        .collect();
    let list = hf_tree::place(folder).and_then(|place| fs::metadata(place).ok());
    seen.extend(list.map(|meta| ("trees".to_owned(), Some((meta.len(), modified(&meta))))));
    seen.sort();
    let mut hasher = DefaultHasher::new();
    seen.hash(&mut hasher);
    hasher.finish()
}

/// Bytes of all files. Links are followed, because the cache's snapshots are links to its blobs.
pub(crate) fn bytes(folder: &Path) -> u64 {
    files(folder).filter_map(|name| file_size(&folder.join(name))).sum()
}

fn inspect(model: &FolderSource, fault: Option<&Fault>) -> LocalModel {
    let readable =
        |name: &str| fs::metadata(model.path.join(name)).is_ok_and(|meta| oversize(name, meta.len()).is_none());
    let read_config = || ModelConfig::read(&model.path).ok();
    let config = readable("config.json").then(read_config).flatten();
    let kind = config.as_ref().map(|config| config.kind);
    let kind = match kind {
        Some(ModelKind::Chat) | None if model.path.join(MODULES).exists() => ModelKind::Embedding,
        kind => kind.unwrap_or_default(),
    };
    let generates = kind == ModelKind::Chat;
    let missing = fault.map(Fault::error);
    let talk = match missing {
        // The tokenizer of a folder with a fault may be the fault, so it is not read.
        Some(_) => Ok(None),
        None if kind == ModelKind::Draft => Ok(None),
        None if !generates => read_tokenizer(&model.path).map(|()| None),
        None => read_talk(&model.path).map(Some),
    };
    let unfit = || {
        let fit = check_folder(&model.path).and_then(|config| match config.kind {
            ModelKind::Chat | ModelKind::Draft => Ok(()),
            ModelKind::Embedding | ModelKind::Reranker => EmbeddingConfig::read(&model.path, &config).map(|_| ()),
        });
        fit.err().map(protocol::Error::from)
    };
    let incomplete = missing.is_some();
    let problem = match &config {
        // An unknown family is the better reason: complete files would not help.
        None if readable("config.json") => unfit().or(missing),
        _ => missing.or_else(unfit),
    };
    let problem = problem.or_else(|| talk.as_ref().err().cloned());
    let talk = talk.ok().flatten().filter(|_| problem.is_none()).unwrap_or_default();
    let (supports_vision, vision_problem) = match problem.is_none() && generates {
        true => match vision_support(&model.path) {
            Ok(processor) => (processor.is_some(), None),
            Err(error @ checkpoint::Error::Vision(_)) => (false, Some(protocol::Error::from(error))),
            Err(_) => (false, None),
        },
        false => (false, None),
    };
    let quantizable =
        |config: &ModelConfig| config.quantization.is_none() && Conversion::is_possible(&config.model_type);
    LocalModel {
        reference: model.reference.clone(),
        name: name_of(&model.reference),
        kind,
        quantizable: problem.is_none() && generates && config.as_ref().is_some_and(quantizable),
        built_in: false,
        path: model.path.display().to_string(),
        revision: model.revision.clone(),
        family: config.as_ref().map(|config| config.model_type.clone()),
        quantization: config.as_ref().map(bits),
        bytes: bytes(&model.path),
        context: config.as_ref().map(|config| config.context),
        thinking: talk.thinking,
        thought: talk.thought,
        sampling: talk.sampling,
        sampling_by_makers: talk.sampling_by_makers,
        supports_vision,
        vision_problem,
        problem,
        incomplete,
        place: ModelPlace::Cache,
        last_used_at: None,
        revisions: Vec::new(),
        adapter_of: None,
    }
}

/// The abilities of a chat model: thinking, its markers, and the defaults of sampling.
#[derive(Default)]
struct Talk {
    thinking: Option<ThinkingControl>,
    thought: Option<ThoughtMarkers>,
    sampling: Sampling,
    sampling_by_makers: bool,
}

/// Reads the tokenizer and the template.
fn read_talk(path: &Path) -> protocol::Result<Talk> {
    read_guarded(path, |path| {
        ChatProcessor::open(path).map(|processor| Talk {
            thinking: Some(processor.thinking_control()),
            thought: processor.thought_markers(),
            sampling: processor
                .generation_defaults()
                .or_chat_defaults()
                .or(&Sampling::neutral()),
            sampling_by_makers: processor.generation_defaults().temperature.is_some(),
        })
    })
}

/// Checks the tokenizer of an embedding model.
fn read_tokenizer(path: &Path) -> protocol::Result<()> {
    read_guarded(path, |path| TextEncoder::open(path, false).map(drop))
}

/// Reads a tokenizer. A file that makes its library panic is a broken model, not the end of the list.
fn read_guarded<T>(path: &Path, read: fn(&Path) -> prompt::Result<T>) -> protocol::Result<T> {
    let path = path.to_owned();
    let within_limits = move || RenderLimits::look().within(|| read(&path));
    catch_unwind(move || within_limits().map_err(protocol::Error::from)).unwrap_or_else(|_| {
        let message = "tokenizer.json cannot be read; fetch the model again";
        Err(protocol::Error::new(ErrorCode::ModelBroken, message).with("file", "tokenizer.json"))
    })
}

/// The quantization without its group size, which only matters to those who convert models.
pub(crate) fn bits(config: &ModelConfig) -> String {
    let label = config.quantization_label();
    label.split(',').next().unwrap_or(&label).to_owned()
}

/// A short display name: the last part of the id, with blanks for hyphens.
pub(crate) fn name_of(reference: &str) -> String {
    if reference == BUILT_IN {
        return "Pebble".into();
    }
    let last = reference.trim_end_matches('/').rsplit('/').next();
    last.unwrap_or(reference).replace(['-', '_'], " ")
}
