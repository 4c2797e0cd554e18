//! Embeddings: texts become token ids on the pool's threads, vectors on the worker's.

mod run;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use checkpoint::{check_folder, EmbeddingConfig};
use prompt::TextEncoder;
use protocol::{CancelFlag, EmbeddingInput, EmbeddingRequest, Embeddings, FolderSource, ModelKind, Priority};
use tokio::sync::oneshot;

use crate::error::{catch_panic, Error, Result};
use crate::pool::Pool;
use crate::state::EngineState;
pub use run::EmbeddingRun;

/// The most tokens of all inputs of a request, as in OpenAI's API.
const MAX_TOKENS: usize = 300_000;

pub use prompt::EncodedText;

/// Inputs as token ids, checked against what the model reads.
#[derive(Debug)]
pub struct PreparedTexts {
    /// The model.
    pub model: FolderSource,
    /// The ids of each input.
    pub texts: Vec<EncodedText>,
    /// Numbers of a vector, if fewer than the model makes are wanted.
    pub dimensions: Option<u32>,
    /// The class in which it is served.
    pub priority: Priority,
    /// The time for which the model stays loaded after its last use, if that is to change.
    pub keep_alive: Option<Duration>,
}

/// A job as the worker's thread sees it. If it is dropped, its caller learns that the engine is gone.
pub struct EmbeddingJob {
    reply: oneshot::Sender<Result<Embeddings>>,
    cancel: CancelFlag,
    shared: Arc<EngineState>,
}

impl EmbeddingJob {
    /// A job, and where its result comes.
    pub fn new(cancel: CancelFlag, shared: Arc<EngineState>) -> (Self, oneshot::Receiver<Result<Embeddings>>) {
        let (reply, answer) = oneshot::channel();
        (Self { reply, cancel, shared }, answer)
    }

    /// True if the caller is gone or the engine is being dropped. Queries for the memory are answered then.
    pub fn cancelled(&self) -> bool {
        self.shared.answer_memory_queries();
        self.cancel.is_cancelled() || self.shared.closing()
    }

    /// The state that other threads see.
    pub fn shared(&self) -> &EngineState {
        &self.shared
    }

    /// Tells the result.
    pub fn end(self, result: Result<Embeddings>) {
        // The receiver may be gone.
        let _ = self.reply.send(result);
    }
}

/// Tokenizes inputs, and remembers the tokenizer that it used last. Clones share it.
#[derive(Clone)]
pub struct InputReader {
    known: Arc<Mutex<Option<Known>>>,
    pool: Pool,
}

/// A model with its tokenizer and the shape of its vectors.
type Known = (FolderSource, Arc<InputFiles>);

struct InputFiles {
    kind: ModelKind,
    config: EmbeddingConfig,
    encoder: TextEncoder,
}

impl InputReader {
    /// Nothing is known yet.
    pub fn new(pool: Pool) -> Self {
        Self {
            known: Arc::default(),
            pool,
        }
    }

    /// Tokenizes the inputs of a request in the pool and hands them to `then`. What is wrong with them is told without
    /// waiting for it.
    pub fn read(
        &self,
        request: EmbeddingRequest,
        job: EmbeddingJob,
        then: impl FnOnce(PreparedTexts, EmbeddingJob) + Send + 'static,
    ) {
        let (reader, priority) = (self.clone(), request.priority);
        let read = move || match catch_panic(|| reader.prepare(request, &job)) {
            Ok(texts) => then(texts, job),
            Err(error) => job.end(Err(error)),
        };
        self.pool.run(priority, read);
    }

    fn prepare(&self, request: EmbeddingRequest, job: &EmbeddingJob) -> Result<PreparedTexts> {
        let EmbeddingRequest {
            model,
            inputs,
            dimensions,
            priority,
            keep_alive,
        } = request;
        let model = model
            .folder()
            .cloned()
            .ok_or_else(|| Error::NotAFolder(model.reference()))?;
        let files = self.files(&model)?;
        let InputFiles { kind, config, encoder } = &*files;
        if let Some(wanted) = dimensions.filter(|wanted| !config.dimensions.allow(*wanted, config.width)) {
            return Err(Error::Dimensions {
                wanted,
                width: config.width,
            });
        }
        let mut total = 0;
        let read = |(index, input): (usize, EmbeddingInput)| {
            if job.cancelled() {
                return Err(Error::Cancelled);
            }
            let is_pair = matches!(input, EmbeddingInput::Pair { .. });
            if is_pair != (*kind == ModelKind::Reranker) {
                return Err(match is_pair {
                    true => Error::NotForRanking,
                    false => Error::NotForEmbeddings,
                });
            }
            let (empty, encoded) = match input {
                EmbeddingInput::Text(text) => (text.is_empty(), encoder.encode(&text)?.into()),
                EmbeddingInput::Tokens(ids) => (ids.is_empty(), ids.into()),
                EmbeddingInput::Pair { question, text } => (text.is_empty(), encoder.encode_pair(&question, &text)?),
            };
            let tokens = encoded.ids.len();
            if empty || tokens == 0 {
                return Err(Error::EmptyInput { index });
            }
            if tokens > config.max_tokens as usize {
                return Err(Error::InputTooLong {
                    index,
                    tokens,
                    most: config.max_tokens,
                });
            }
            total += tokens;
            if total > MAX_TOKENS {
                return Err(Error::TooManyTokens { most: MAX_TOKENS });
            }
            Ok(encoded)
        };
        let texts = inputs.into_iter().enumerate().map(read).collect::<Result<_>>()?;
        Ok(PreparedTexts {
            model,
            texts,
            dimensions,
            priority,
            keep_alive,
        })
    }

    fn files(&self, source: &FolderSource) -> Result<Arc<InputFiles>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, files)) = known.as_ref().filter(|(of, _)| of == source) {
            return Ok(files.clone());
        }
        let config = check_folder(&source.path)?;
        let kind = config.kind;
        if matches!(kind, ModelKind::Chat | ModelKind::Draft) {
            return Err(Error::NotForEmbeddings);
        }
        let config = EmbeddingConfig::read(&source.path, &config)?;
        let files = Arc::new(InputFiles {
            kind,
            encoder: TextEncoder::open(&source.path, config.lower_case)?,
            config,
        });
        *known = Some((source.clone(), files.clone()));
        Ok(files)
    }
}
