//! The small files of a model's folder, which are read before its weights.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use checkpoint::{check_folder, EmbeddingConfig, ModelConfig};
use prompt::{ChatProcessor, RenderLimits};
use protocol::{FolderSource, ModelKind};

use crate::error::{Error, Result};

/// The small files of a model, read before its weights: enough to render a conversation and count its tokens, or to
/// know what vectors it makes.
pub struct ModelFiles {
    /// The folder.
    pub source: FolderSource,
    /// Its shapes.
    pub config: ModelConfig,
    purpose: Purpose,
}

/// The contents of the small files besides the shapes, by the purpose of the model.
enum Purpose {
    /// Tokenizer and chat template.
    Chat(Box<ChatProcessor>),
    /// How states become a vector.
    Embedding(EmbeddingConfig),
    /// Nothing: a head takes tokens and words from the model that it drafts for.
    Draft,
}

impl ModelFiles {
    /// Reads the small files of a model's folder.
    pub fn open(source: &FolderSource) -> Result<Self> {
        let config = check_folder(&source.path)?;
        // Others may use it, so that it is read to the end if the request that wanted it first is cancelled.
        let chat = || RenderLimits::request().within(|| ChatProcessor::open(&source.path));
        Ok(Self {
            purpose: match config.kind {
                ModelKind::Chat => Purpose::Chat(Box::new(chat()?)),
                ModelKind::Embedding | ModelKind::Reranker => {
                    Purpose::Embedding(EmbeddingConfig::read(&source.path, &config)?)
                }
                ModelKind::Draft => Purpose::Draft,
            },
            config,
            source: source.clone(),
        })
    }

    /// Tokenizer and chat template.
    ///
    /// # Errors
    /// [`Error::NotForChat`] if the model makes embeddings, [`Error::DraftsAlone`] if it is a head.
    pub fn chat(&self) -> Result<&ChatProcessor> {
        match &self.purpose {
            Purpose::Chat(processor) => Ok(processor),
            Purpose::Embedding(_) => Err(Error::NotForChat),
            Purpose::Draft => Err(Error::DraftsAlone),
        }
    }

    /// How the states of a text become a vector; `None` if the model chats.
    pub fn embedding(&self) -> Option<&EmbeddingConfig> {
        match &self.purpose {
            Purpose::Chat(_) | Purpose::Draft => None,
            Purpose::Embedding(config) => Some(config),
        }
    }

    /// True if these are the files of this model.
    pub fn is_of(&self, source: &FolderSource) -> bool {
        self.has_weights_of(source) && self.source.adapter == source.adapter
    }

    /// True if these are the files of this model, whatever adapter either has.
    pub fn has_weights_of(&self, source: &FolderSource) -> bool {
        self.source.path == source.path && self.source.revision == source.revision
    }
}

/// The small files that somebody uses, such as a loaded model or a request that waits: each is read once. Clones share
/// them.
#[derive(Clone, Default)]
pub struct OpenFiles(Arc<Mutex<Vec<Weak<ModelFiles>>>>);

impl OpenFiles {
    /// Those of a model, read now if nobody uses them.
    ///
    /// # Errors
    /// If they cannot be read, or the model will not run.
    pub fn open(&self, source: &FolderSource) -> Result<Arc<ModelFiles>> {
        let used = |files: &Weak<ModelFiles>| files.upgrade().filter(|files| files.is_of(source));
        if let Some(files) = self.known().iter().find_map(used) {
            return Ok(files);
        }
        // Reading takes a good part of a second, and nobody who wants others waits for it.
        let files = Arc::new(ModelFiles::open(source)?);
        let mut known = self.known();
        known.retain(|files| files.strong_count() > 0);
        known.push(Arc::downgrade(&files));
        Ok(files)
    }

    fn known(&self) -> MutexGuard<'_, Vec<Weak<ModelFiles>>> {
        // Nothing that can panic runs under this lock, so a poisoned value is still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if the model in a folder supports images, and the reason if it does not although it has a vision encoder.
/// Loading reports everything else that is wrong with its files.
pub fn vision_support(folder: &Path) -> (bool, Option<protocol::Error>) {
    match checkpoint::vision_support(folder) {
        Ok(processor) => (processor.is_some(), None),
        Err(error @ checkpoint::Error::Vision(_)) => (false, Some(error.into())),
        Err(_) => (false, None),
    }
}
