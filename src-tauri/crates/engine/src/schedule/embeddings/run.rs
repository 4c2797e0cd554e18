//! A job that is under way on the worker's thread, a piece at a time.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use mlx::memory::clear_after_chunk;
use mlx::tensor::eval;
use protocol::{Embeddings, Priority};

use crate::backend::prefill_chunk;
use crate::error::{Error, Result};
use crate::loaded::LoadedModel;
use crate::models::embedding_head::Pooled;
use crate::models::{EmbeddingHead, Input, Pass};
use crate::schedule::embeddings::{EmbeddingJob, EncodedText, PreparedTexts};
use crate::sequence::SequenceState;

/// Texts that become vectors.
pub struct EmbeddingRun {
    loaded: Rc<LoadedModel>,
    job: EmbeddingJob,
    priority: Priority,
    dimensions: Option<u32>,
    /// Those that nothing was read of yet.
    texts: VecDeque<EncodedText>,
    under_way: Option<UnderWay>,
    vectors: Vec<Vec<f32>>,
    tokens: usize,
    last_piece: Instant,
}

/// The text or texts that are being read.
enum UnderWay {
    /// Whole texts, layer by layer.
    Pass(Pass),
    /// One long text, chunk by chunk.
    Chunks {
        ids: Vec<u32>,
        state: SequenceState,
        pooled: Pooled,
    },
}

impl EmbeddingRun {
    /// A job that has just been admitted, with texts that were [checked](Self::check).
    pub fn new(loaded: Rc<LoadedModel>, texts: PreparedTexts, job: EmbeddingJob) -> Self {
        Self {
            loaded,
            job,
            priority: texts.priority,
            dimensions: texts.dimensions,
            tokens: texts.texts.iter().map(|text| text.ids.len()).sum(),
            vectors: Vec::with_capacity(texts.texts.len()),
            texts: texts.texts.into(),
            under_way: None,
            last_piece: Instant::now(),
        }
    }

    /// Refuses what the model cannot embed.
    ///
    /// # Errors
    /// If it makes no embeddings, or an id is no token of it.
    pub fn check(loaded: &LoadedModel, texts: &PreparedTexts) -> Result<()> {
        if loaded.weights.head.is_none() {
            return Err(Error::NotForEmbeddings);
        }
        // A row that the embedding does not have would be read from whatever follows it in memory.
        let vocabulary = loaded.model().vocabulary();
        for (index, text) in texts.texts.iter().enumerate() {
            if let Some(id) = text.ids.iter().find(|id| **id >= vocabulary) {
                return Err(Error::UnknownToken {
                    index,
                    id: *id,
                    vocabulary,
                });
            }
        }
        Ok(())
    }

    /// Its class.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// When something was last read for it.
    pub fn last_piece(&self) -> Instant {
        self.last_piece
    }

    /// Lets other prompts be read first.
    pub fn pass_over(&mut self) {
        self.last_piece = Instant::now();
    }

    /// True if its caller is gone.
    pub fn cancelled(&self) -> bool {
        self.job.cancelled()
    }

    /// Ends it with an error.
    pub fn fail(self, error: Error) {
        self.job.end(Err(error));
    }

    /// Tells the vectors, of which none is missing any more.
    pub fn finish(self) {
        self.job.end(Ok(Embeddings {
            vectors: self.vectors,
            prompt_tokens: u32::try_from(self.tokens).unwrap_or(u32::MAX),
        }));
    }

    /// True if every text has its vector.
    pub fn is_done(&self) -> bool {
        self.texts.is_empty() && self.under_way.is_none()
    }

    /// Reads about as much as `most` tokens, waits for it, and returns what it cost, in tokens of a full pass.
    ///
    /// # Errors
    /// If there is no memory for it, or MLX fails.
    pub fn advance(&mut self, most: usize) -> Result<usize> {
        let loaded = self.loaded.clone();
        let (model, Some(head)) = (loaded.model(), &loaded.weights.head) else {
            return Err(Error::NotForEmbeddings);
        };
        let under_way = match self.under_way.take() {
            Some(under_way) => under_way,
            None => match self.begin(most)? {
                Some(under_way) => under_way,
                None => return Ok(0),
            },
        };
        let read = match under_way {
            UnderWay::Pass(mut pass) => {
                let (rows, layers) = (pass.rows(), model.layers());
                let before = pass.layer;
                let count = match model.is_bidirectional() {
                    true => (layers * most / rows.max(1)).max(1),
                    false => layers,
                };
                model.advance_pass(&mut pass, count)?;
                let went = pass.layer - before;
                if pass.layer < layers {
                    eval([&pass.states])?;
                    self.under_way = Some(UnderWay::Pass(pass));
                } else {
                    let states = model.last_hidden_states(&pass.states)?;
                    let pooled = head.pool(&states, &pass.lengths)?;
                    self.keep(head, &pooled)?;
                }
                (rows * went).div_ceil(layers.max(1))
            }
            UnderWay::Chunks {
                ids,
                mut state,
                mut pooled,
            } => {
                let from = state.offset();
                let to = (from + most.min(prefill_chunk()).max(1)).min(ids.len());
                let chunk = &ids[from..to];
                let states = model.forward(&Input::text(&model.ids(chunk)?), &mut [state.caches()])?;
                head.pool_chunk(&mut pooled, &model.last_hidden_states(&states)?)?;
                if to < ids.len() {
                    state.advance_by(chunk.len());
                    eval(pooled.tensors())?;
                    self.under_way = Some(UnderWay::Chunks { ids, state, pooled });
                } else {
                    let pooled = head.pooled(&pooled)?;
                    self.keep(head, &pooled)?;
                }
                to - from
            }
        };
        self.last_piece = Instant::now();
        if self.under_way.is_none() {
            clear_after_chunk()?;
        }
        Ok(read)
    }

    fn keep(&mut self, head: &EmbeddingHead, pooled: &mlx::tensor::Tensor) -> Result<()> {
        let vectors = head.vectors(pooled, self.dimensions)?;
        let embedded = &self.loaded.embedded_texts;
        embedded.set(embedded.get() + vectors.len());
        self.vectors.extend(vectors);
        Ok(())
    }

    /// Begins to read what comes next: as many texts as go into one pass, or one that has to be read in chunks.
    fn begin(&mut self, most: usize) -> Result<Option<UnderWay>> {
        let model = self.loaded.model();
        let Some(first) = self.texts.front().map(|text| text.ids.len()) else {
            return Ok(None);
        };
        let bidirectional = model.is_bidirectional();
        // A pass that stops between layers need not be short.
        let room = prefill_chunk().min(if bidirectional { usize::MAX } else { most });
        if !bidirectional && (first > room || !model.packs()) {
            self.check_memory(first)?;
            let ids = self.texts.pop_front().unwrap_or_default().ids;
            return Ok(Some(UnderWay::Chunks {
                ids,
                state: SequenceState::new(model, None),
                pooled: Pooled::default(),
            }));
        }
        let mut rows = 0;
        let mut count = 0;
        for text in &self.texts {
            let tokens = text.ids.len();
            if count > 0 && (rows + tokens > room || !model.packs()) {
                break;
            }
            (rows, count) = (rows + tokens, count + 1);
        }
        self.check_memory(rows)?;
        let (mut ids, mut types, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        for text in self.texts.drain(..count) {
            lengths.push(text.ids.len());
            ids.extend(text.ids);
            types.extend(text.types);
        }
        let pass = self.loaded.model().begin_pass(&ids, &types, &lengths)?;
        Ok(Some(UnderWay::Pass(pass)))
    }

    /// Refuses to read `tokens` tokens at once, or one after another, if the memory for them is clearly not there.
    fn check_memory(&self, tokens: usize) -> Result<()> {
        self.loaded.check_memory(self.job.shared(), 0..tokens, None)
    }
}
