//! From a folder to a model that can answer.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use checkpoint::memory::Workload;
use checkpoint::{weight_files, VisionConfig};
use constraint::Vocabulary;
use mlx::device::{device, Device};
use mlx::memory;
use prompt::ChatProcessor;
use protocol::{KvBits, ModelInfo, ThinkingControl};
use sha2::{Digest, Sha256};

use crate::backend::backend;
use crate::error::{catch_panic, Error, Result};
use crate::kernels::kernels;
use crate::loaded::model_files::{vision_support, ModelFiles};
use crate::loaded::warm_up::WarmUp;
use crate::loaded::{ImageEmbeddingCache, PrefixCache};
use crate::models::vision::{ImageEmbeddings, LayerHook, VisionTower};
use crate::models::{EmbeddingHead, Model};
use crate::products::product_check;
use crate::sequence::recorded::RecordedSteps;
use crate::sequence::{PromptImage, PromptImages, Stepping};
use crate::state::EngineState;
use crate::weights::{AdapterPlaces, AttachedAdapter, LoadProgress, LoadStep, Weights};

/// The vocabulary of a model, created when an answer first has to follow a grammar.
pub type LazyVocabulary = Arc<OnceLock<constraint::Result<Vocabulary>>>;

/// The weights of a model, which it shares with its adapters.
pub struct ModelWeights {
    /// Those that read and write text.
    model: Model,
    /// The vision encoder, if it has one.
    pub tower: Option<VisionTower>,
    /// The head that turns its states into vectors, if it is an embedding model.
    pub head: Option<EmbeddingHead>,
    places: Rc<AdapterPlaces>,
}

/// A model with an adapter or without one, its small files, and the information that windows show about it.
pub struct LoadedModel {
    /// Its small files.
    pub files: Arc<ModelFiles>,
    /// The weights.
    pub weights: Rc<ModelWeights>,
    adapter: Option<AttachedAdapter>,
    /// How many images the vision encoder has encoded.
    pub encoded_images: Cell<usize>,
    /// How many decode steps were taken between the layers of the vision encoder.
    pub steps_between_layers: Cell<usize>,
    /// How many texts it has embedded.
    pub embedded_texts: Cell<usize>,
    /// The embeddings of the images that it has encoded.
    pub features: RefCell<ImageEmbeddingCache>,
    /// Its decode steps, where they are recorded.
    pub recorded_steps: RecordedSteps,
    /// The rest of its warm-up, which waits until there is nothing else to do.
    warm_up: RefCell<Option<WarmUp>>,
    /// Copies of what it has read.
    pub prefix_cache: RefCell<PrefixCache>,
    /// Its tokens, for answers that follow a schema.
    pub vocabulary: LazyVocabulary,
    /// For the windows.
    pub info: ModelInfo,
}

impl LoadedModel {
    /// The model with its adapter: no other adds to what is described from now on.
    pub fn model(&self) -> &Model {
        match &self.adapter {
            Some(adapter) => adapter.activate(),
            None => self.weights.places.deactivate(),
        }
        &self.weights.model
    }

    /// The model and its recorded steps.
    pub fn stepping(&self) -> Stepping<'_> {
        Stepping {
            model: self.model(),
            recorded: &self.recorded_steps,
        }
    }

    /// True if its warm-up is not over.
    pub fn is_cold(&self) -> bool {
        self.warm_up.borrow().is_some()
    }

    /// Takes the next step of its warm-up. One that fails ends it: an answer will say what is wrong.
    pub fn warm_up(&self) {
        let Some(mut warm_up) = self.warm_up.take() else { return };
        let advanced = catch_panic(|| match warm_up.advance(self.model())? {
            true => Ok(true),
            false => Ok(memory::clear_cache().map(|()| false)?),
        });
        match advanced {
            Ok(true) => *self.warm_up.borrow_mut() = Some(warm_up),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "the model was not warmed up"),
        }
    }

    /// The model of these files beside one that shares its weights.
    ///
    /// # Errors
    /// If the adapter does not fit.
    pub fn beside(other: &Self, files: Arc<ModelFiles>, prefix_cache: Option<u64>) -> Result<Self> {
        let start = Instant::now();
        let weights = other.weights.clone();
        let adapter = attach(&weights.places, &files)?;
        let resident = other.info.resident_bytes.saturating_sub(other.adapter_bytes());
        let info = ModelInfo {
            reference: files.source.reference.clone(),
            resident_bytes: resident + adapter.as_ref().map_or(0, |adapter| adapter.bytes),
            load_ms: start.elapsed().as_secs_f64() * 1000.0,
            ..other.info.clone()
        };
        Self::of(files, weights, adapter, info, prefix_cache)
    }

    fn of(
        files: Arc<ModelFiles>,
        weights: Rc<ModelWeights>,
        adapter: Option<AttachedAdapter>,
        info: ModelInfo,
        prefix_cache: Option<u64>,
    ) -> Result<Self> {
        Ok(Self {
            weights,
            adapter,
            encoded_images: Cell::new(0),
            steps_between_layers: Cell::new(0),
            embedded_texts: Cell::new(0),
            features: RefCell::default(),
            recorded_steps: RecordedSteps::default(),
            warm_up: RefCell::default(),
            prefix_cache: RefCell::new(PrefixCache::new(prefix_cache)?),
            vocabulary: LazyVocabulary::default(),
            info,
            files,
        })
    }

    /// Loads the weights of a model. `prefix_cache` limits the bytes of its prefix cache, if that was set.
    pub fn load(files: Arc<ModelFiles>, prefix_cache: Option<u64>, progress: &mut LoadProgress<'_>) -> Result<Self> {
        let start = Instant::now();
        let ModelFiles { source, config, .. } = &*files;
        let dir = &source.path;
        let before = memory::figures()?.active;
        // Drops the kinds that a load left behind when it was given up.
        product_check::drain_failed_kinds();
        let mut weights = Weights::open(dir, config.vision.is_some(), progress)?;
        let model = Model::load(config, &mut weights)?;
        let places = Rc::new(weights.take_adapter_places());
        let tower = config.vision.as_ref().map(|vision| {
            weights.begin_tower();
            VisionTower::load(vision, model.hidden_size(), &mut weights)
        });
        let tower = tower.transpose()?;
        let parameters = weights.parameters();
        let embedding = files.embedding().cloned();
        let head = embedding
            .map(|config| EmbeddingHead::load(config, dir, &mut weights))
            .transpose()?;
        weights.finish()?;
        let head = head
            .map(|(mut head, apart)| head.load_apart(&apart, dir).map(|()| head))
            .transpose()?;
        // Before kernels run: a wrong adapter is told at once.
        let adapter = attach(&places, &files)?;
        let wrong_products = product_check::drain_failed_kinds();
        let read = start.elapsed();
        let recorded_steps = RecordedSteps::default();
        let mut warm_up_left = None;
        if device() != Device::Cpu && head.is_none() && model.head().is_none() {
            let resident = memory::figures()?.active.saturating_sub(before);
            let step = match kernels().are_missing() {
                true => LoadStep::Kernels,
                false => LoadStep::Weights {
                    done: resident,
                    total: resident,
                },
            };
            let warmed_up = warm_up(&model, dir, || progress(step)).map(|left| warm_up_left = left);
            let warm = start.elapsed();
            match warmed_up.and_then(|()| recorded_steps.prepare(&model, || progress(step))) {
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                // The first answer will wait for what is left, or say what is wrong.
                Err(error) => tracing::warn!(%error, "the model was not warmed up"),
                Ok(()) => {}
            }
            tracing::debug!(?read, ?warm, ready = ?start.elapsed(), "a model was loaded, its kernels run, its steps recorded");
            memory::clear_cache()?;
            // Reading the files and the tokenizer leaves holes in the heap.
            memory::trim_heap();
        }
        // Measured rather than summed: a tied output layer shares the bytes of the embedding.
        let resident_bytes = memory::figures()?.active.saturating_sub(before);
        let chat = files.chat().ok();
        let info = ModelInfo {
            reference: source.reference.clone(),
            revision: match &source.revision {
                Some(revision) => revision.clone(),
                None => fingerprint(dir)?,
            },
            family: config.model_type.clone(),
            quantization: config.quantization_label(),
            wrong_products,
            parameters,
            resident_bytes,
            context: config.context,
            thinking: chat.map_or(ThinkingControl::Never, ChatProcessor::thinking_control),
            template_hash: chat.map(|chat| chat.template_hash().to_owned()).unwrap_or_default(),
            device: device().name().into(),
            processor: None,
            load_ms: start.elapsed().as_secs_f64() * 1000.0,
            supports_vision: tower.is_some() && chat.is_some_and(ChatProcessor::takes_images) && vision_support(dir).0,
        };
        let weights = Rc::new(ModelWeights {
            model,
            tower,
            head,
            places,
        });
        let loaded = Self::of(files, weights, adapter, info, prefix_cache)?;
        Ok(Self {
            recorded_steps,
            warm_up: RefCell::new(warm_up_left),
            ..loaded
        })
    }

    /// The bytes of its adapter.
    pub fn adapter_bytes(&self) -> u64 {
        self.adapter.as_ref().map_or(0, |adapter| adapter.bytes)
    }

    /// The bytes that are free when it is gone: its weights, unless another model has the same ones, its adapter and the
    /// copies of what it has read and seen.
    pub fn bytes(&self) -> u64 {
        let own = match Rc::strong_count(&self.weights) {
            1 => self.info.resident_bytes,
            _ => self.adapter_bytes(),
        };
        own + self.prefix_cache.borrow().bytes() + self.features.borrow().bytes()
    }

    /// Images of a prompt of so many tokens for this model.
    ///
    /// # Errors
    /// If it does not see, or they do not fit their places.
    pub fn images(&self, images: Vec<PromptImage>, prompt: usize) -> Result<PromptImages> {
        let vision = self.files.config.vision.as_ref().ok_or(Error::NoVision)?;
        PromptImages::new(images, self.model(), vision, prompt)
    }

    /// The same, if there are any or the model reads all prompts at once.
    ///
    /// # Errors
    /// As [`images`](Self::images).
    pub fn prompt_images(&self, images: Vec<PromptImage>, prompt: usize) -> Result<Option<Rc<PromptImages>>> {
        let needed = !images.is_empty() || self.reads_whole_prompts();
        let placed = needed.then(|| self.images(images, prompt));
        Ok(placed.transpose()?.map(Rc::new))
    }

    /// True if all tokens of a prompt see each other.
    pub fn reads_whole_prompts(&self) -> bool {
        let vision = self.files.config.vision.as_ref();
        vision.is_some_and(VisionConfig::reads_whole_prompts)
    }

    /// Refuses to read these tokens, at once or one after another, if the memory for them is clearly not there.
    ///
    /// # Errors
    /// With the figures of the host's guard.
    pub fn check_memory(&self, shared: &EngineState, tokens: Range<usize>, kv_bits: Option<KvBits>) -> Result<()> {
        let Some(guard) = shared.memory_guard() else {
            return Ok(());
        };
        let workload = Workload {
            context: tokens.end as u32,
            kv_bits,
            backend: backend(),
            prefix_cached: false,
        };
        let more = self.files.config.additional_memory(tokens.start as u32, &workload);
        let checked = guard.before_chunk(more, device().name(), memory::figures()?.active);
        checked.map_err(Error::MemoryShort)
    }

    /// Encodes an image of a prompt, or takes its embeddings from the cache; `hook` is called between two layers of the
    /// vision encoder. Returns whether it is encoded: its views may still be in the making.
    ///
    /// # Errors
    /// If the model does not see, the image cannot be prepared, MLX fails, or `hook` does.
    pub fn encode_image(&self, images: &PromptImages, index: usize, hook: &mut LayerHook<'_>) -> Result<bool> {
        let (tower, image) = (self.weights.tower.as_ref().ok_or(Error::NoVision)?, images.image(index));
        if let Some(known) = self.features.borrow_mut().get(&image.hash) {
            images.set_embeddings(index, known);
            return Ok(true);
        }
        let Some(views) = images.views(index)? else {
            return Ok(false);
        };
        self.encoded_images.set(self.encoded_images.get() + 1);
        let encoded = tower.encode(&views, &image.plan, hook);
        // Buffers of an image are of no use for the text that is read next.
        memory::clear_cache()?;
        let features: Rc<ImageEmbeddings> = Rc::new(encoded?);
        self.features.borrow_mut().insert(image.hash, features.clone());
        images.set_embeddings(index, features);
        Ok(true)
    }
}

/// The adapter that the files name, beside the products of a model.
fn attach(places: &Rc<AdapterPlaces>, files: &ModelFiles) -> Result<Option<AttachedAdapter>> {
    let adapter = files.source.adapter.as_deref();
    adapter.map(|dir| places.attach(dir)).transpose()
}

/// Warms a model up, or leaves that for later where the kernels of such a model have been compiled before: it takes as
/// long as reading the weights of a small one. `report` is called between any two steps.
fn warm_up(model: &Model, dir: &Path, mut report: impl FnMut() -> Result<()>) -> Result<Option<WarmUp>> {
    let mut warm_up = WarmUp::new();
    let config = std::fs::read(dir.join("config.json")).unwrap_or_default();
    let name = format!("warm-up of config {:.16x}", Sha256::digest(config));
    if device() == Device::Cuda && product_check::was_right(&name) {
        return Ok(Some(warm_up));
    }
    while warm_up.advance(model)? {
        report()?;
    }
    product_check::remember_right(&name);
    Ok(None)
}

/// The revision of a folder that no hub gave a commit: a hash of the config and of each weight file's size, first and
/// last mebibyte. Whole files would cost a minute for a model of 20 GB.
fn fingerprint(dir: &Path) -> Result<String> {
    const PART: u64 = 1 << 20;
    let mut hash = Sha256::new();
    for name in std::iter::once("config.json".to_owned()).chain(weight_files(dir)?) {
        let path = dir.join(name);
        let mut read = || -> std::io::Result<()> {
            let mut file = File::open(&path)?;
            let size = file.metadata()?.len();
            hash.update(size.to_le_bytes());
            let mut bytes = Vec::new();
            Read::by_ref(&mut file).take(PART).read_to_end(&mut bytes)?;
            if size > PART {
                file.seek(SeekFrom::Start(size.saturating_sub(PART).max(PART)))?;
                file.read_to_end(&mut bytes)?;
            }
            hash.update(&bytes);
            Ok(())
        };
        read().map_err(|error| Error::Unreadable {
            file: path.display().to_string(),
            reason: error.to_string(),
        })?;
    }
    Ok(format!("{:.40x}", hash.finalize()))
}
