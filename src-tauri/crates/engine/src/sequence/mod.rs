//! A sequence of tokens as the model reads and continues it.

mod images;
pub mod logprobs;
mod positions;
pub mod prefix;
mod prompt_image;
pub mod prompt_lookup;
pub mod recorded;
pub mod sampler;
mod tokens;
mod verify;

use std::rc::Rc;

use mlx::parameters::Parameters;
use mlx::tensor::{eval, Tensor};
use protocol::{KvBits, Timing};

use crate::cache::Cache;
use crate::error::Result;
use crate::kernels::kernels;
use crate::layers::join_sequences;
use crate::models::{Input, Model};
use crate::products::packed_product::clear_dequantized_cache;
use crate::sequence::logprobs::Logprobs;
use crate::sequence::recorded::RecordedSteps;
use crate::sequence::sampler::{Mask, Sampler};
use crate::sequence::tokens::RecordedTokens;
pub use images::{Chunk, PromptImages};
pub use prompt_image::{ImageViews, PendingViews, PromptImage};
pub use tokens::Tokens;
pub use verify::verify;

/// The model's memory of a sequence: the caches of its layers and how far they have read.
pub struct SequenceState {
    /// Before the caches, because fields are dropped in order.
    writers: CacheWriters,
    caches: Vec<Cache>,
    /// Tokens that the caches have read, counted where the model is called.
    offset: usize,
    /// The images among its tokens.
    images: Option<Rc<PromptImages>>,
}

/// Recorded steps that may still write a sequence's caches.
struct CacheWriters;

impl CacheWriters {
    fn wait(&self) {
        kernels().wait_for_recorded();
    }
}

impl Drop for CacheWriters {
    fn drop(&mut self) {
        self.wait();
    }
}

impl SequenceState {
    /// Nothing has been read; keys and values of full attention will be quantized to `kv_bits`.
    pub fn new(model: &Model, kv_bits: Option<KvBits>) -> Self {
        Self::from_caches(
            model
                .caches()
                .into_iter()
                .map(|cache| cache.quantized(kv_bits))
                .collect(),
            0,
        )
    }

    /// Caches that have read `positions` tokens.
    pub fn from_caches(caches: Vec<Cache>, positions: usize) -> Self {
        Self {
            writers: CacheWriters,
            caches,
            offset: positions,
            images: None,
        }
    }

    /// The same sequence with these images among its tokens.
    pub fn with_images(self, images: Option<Rc<PromptImages>>) -> Self {
        Self { images, ..self }
    }

    /// The images and positions of the next `length` tokens.
    ///
    /// # Errors
    /// If an image among them is not encoded yet.
    pub fn chunk(&self, length: usize) -> Result<Chunk> {
        Chunk::of(self.images.as_deref(), self.offset, self.offset + length)
    }

    /// By how much the position of the next token differs from the number of tokens read.
    fn delta(&self) -> i32 {
        self.images.as_ref().map_or(0, |images| images.delta(self.offset))
    }

    /// The number of tokens that the caches have read.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Counts `tokens` tokens that were read with its caches.
    pub fn advance_by(&mut self, tokens: usize) {
        self.offset += tokens;
    }

    /// The caches.
    pub fn caches(&mut self) -> &mut [Cache] {
        self.writers.wait();
        &mut self.caches
    }

    /// How many layers keep every position as it was computed.
    pub fn unquantized_layers(&self) -> usize {
        let unquantized = |cache: &&Cache| matches!(cache, Cache::Plain(_) | Cache::Mla(_));
        self.caches.iter().filter(unquantized).count()
    }

    /// [`SequenceState::prefill`] by recorded steps, if the tokens are few and there are such.
    pub fn read(&mut self, stepping: Stepping<'_>, ids: &[u32]) -> Result<()> {
        match stepping.recorded.read(stepping.model, self, ids)? {
            true => Ok(()),
            false => self.prefill(stepping.model, ids),
        }
    }

    /// Reads tokens for the sake of the caches alone. Nothing that the caches do not need is computed: not the output
    /// layer, nor layers that use the keys of others.
    pub fn prefill(&mut self, model: &Model, ids: &[u32]) -> Result<()> {
        let input = model.ids(ids)?;
        let chunk = self.chunk(ids.len())?;
        self.offset += ids.len();
        model.forward(&chunk.input(&input), &mut [&mut self.caches])?;
        let read: Vec<&Tensor> = self.caches.iter().flat_map(Parameters::tensors).collect();
        kernels().join(&read)?;
        eval(read)?;
        clear_dequantized_cache();
        Ok(())
    }
}

/// A sequence that is being read and continued: its own caches, offset, random key and penalties.
pub struct Sequence {
    /// The state that has been read.
    pub state: SequenceState,
    sampler: Sampler,
    /// How many of the likeliest tokens are reported with each that is chosen.
    top_logprobs: Option<u8>,
}

impl Sequence {
    /// A sequence that continues from this state.
    pub fn new(state: SequenceState, sampler: Sampler) -> Self {
        Self {
            state,
            sampler,
            top_logprobs: None,
        }
    }

    /// Reports log probabilities of each token that is chosen and of the `top_logprobs` likeliest, or none.
    pub fn with_logprobs(self, top_logprobs: Option<u8>) -> Self {
        Self { top_logprobs, ..self }
    }

    /// Limits what is chosen next.
    pub fn limit(&mut self, mask: Option<Mask>) {
        self.sampler.limit(mask);
    }

    /// The token `[1]` that follows `input` `[1]`, whose logits are `[1, vocabulary]`, and its log probabilities if
    /// they are asked for.
    pub fn choose(&mut self, input: &Tensor, logits: Tensor) -> Result<(Tensor, Option<Logprobs>)> {
        let Some(top) = self.top_logprobs else {
            return Ok((self.sampler.sample(input, logits)?, None));
        };
        let logits = self.sampler.process(input, logits)?;
        let token = self.sampler.choose(logits.clone())?;
        let logprobs = Logprobs::new(&logits, &token, top)?;
        Ok((token, Some(logprobs)))
    }

    /// Its sampler, which has seen all that was read.
    pub fn into_sampler(self) -> Sampler {
        self.sampler
    }

    /// Takes note of tokens that were read and not chosen by the sampler.
    pub fn observe(&mut self, tokens: &[u32]) -> Result<()> {
        Ok(self.sampler.observe(tokens)?)
    }
}

/// The result of a decode step.
pub struct DecodedStep {
    /// The tokens.
    pub tokens: Tokens,
    /// The log probabilities that each sequence asked for; may be empty if none did.
    pub logprobs: Vec<Option<Logprobs>>,
}

impl DecodedStep {
    /// Everything in it that is to be computed.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let logprobs = self.logprobs.iter().flatten().flat_map(Logprobs::tensors);
        self.tokens.computed().into_iter().chain(logprobs)
    }
}

/// A model and the steps of it that were recorded.
#[derive(Clone, Copy)]
pub struct Stepping<'a> {
    /// The model.
    pub model: &'a Model,
    /// Its recorded steps.
    pub recorded: &'a RecordedSteps,
}

/// One decode step: the tokens that follow the tokens `input`, one of each sequence, which may themselves still be
/// computed. It is begun if it is recorded; else nothing is evaluated.
pub fn decode_step(stepping: Stepping<'_>, input: &Tokens, sequences: &mut [&mut Sequence]) -> Result<DecodedStep> {
    let likeliest = |sequence: &&mut Sequence| sequence.top_logprobs.is_none() && sequence.sampler.takes_likeliest();
    let all_likeliest = sequences.iter().all(likeliest);
    let recorded = begin_recorded(stepping, input, sequences)?;
    let recorded_logits = recorded.is_some();
    let logits = match recorded {
        Some(tokens) if all_likeliest => {
            return Ok(DecodedStep {
                tokens: Tokens::Recorded(tokens),
                logprobs: Vec::new(),
            })
        }
        Some(_) => stepping.recorded.logits(sequences.len())?,
        None => plain_logits(stepping.model, input, sequences)?,
    };
    if all_likeliest {
        return Ok(DecodedStep {
            tokens: Tokens::Computed(logits.argmax(-1, false)?),
            logprobs: Vec::new(),
        });
    }
    let rows = sequences.iter_mut().map(|sequence| Some(&mut **sequence));
    let decoded = choose_rows(&input.tensor()?, &logits, rows)?;
    if recorded_logits {
        // The next step overwrites the logits.
        eval(decoded.tensors())?;
    }
    Ok(decoded)
}

/// The logits `[sequences, vocabulary]` of what follows the tokens `input`. Waits for them if the step is recorded: the
/// next one overwrites them. Else nothing is evaluated.
pub fn decode_logits(stepping: Stepping<'_>, input: &Tokens, sequences: &mut [&mut Sequence]) -> Result<Tensor> {
    match begin_recorded(stepping, input, sequences)? {
        Some(_) => stepping.recorded.logits(sequences.len()),
        None => plain_logits(stepping.model, input, sequences),
    }
}

fn begin_recorded(
    stepping: Stepping<'_>,
    input: &Tokens,
    sequences: &mut [&mut Sequence],
) -> Result<Option<RecordedTokens>> {
    let mut states: Vec<&mut SequenceState> = sequences.iter_mut().map(|sequence| &mut sequence.state).collect();
    stepping.recorded.begin(stepping.model, input, &mut states)
}

fn plain_logits(model: &Model, input: &Tokens, sequences: &mut [&mut Sequence]) -> Result<Tensor> {
    let mut states: Vec<&mut SequenceState> = sequences.iter_mut().map(|sequence| &mut sequence.state).collect();
    next_logits(model, &input.tensor()?, &mut states)
}

/// The same of sequences without samplers.
pub fn next_logits(model: &Model, input: &Tensor, states: &mut [&mut SequenceState]) -> Result<Tensor> {
    let mut deltas: Vec<i32> = states.iter().map(|state| state.delta()).collect();
    if deltas.iter().all(|delta| *delta == 0) {
        deltas.clear();
    }
    let mut caches: Vec<&mut [Cache]> = Vec::with_capacity(states.len());
    for state in states {
        state.offset += 1;
        caches.push(&mut state.caches);
    }
    let input = Input {
        deltas: &deltas,
        ..Input::text(input)
    };
    model.logits(&model.forward(&input, &mut caches)?)
}

/// The choice of each row by its sequence; of a row whose sequence is gone, any token.
pub fn choose_rows<'a>(
    input: &Tensor,
    logits: &Tensor,
    sequences: impl ExactSizeIterator<Item = Option<&'a mut Sequence>>,
) -> Result<DecodedStep> {
    let alone = sequences.len() == 1;
    let (mut tokens, mut logprobs) = (Vec::with_capacity(sequences.len()), Vec::new());
    for (sequence, row) in sequences.zip(0..) {
        let row_of = |x: &Tensor| if alone { Ok(x.clone()) } else { x.slice(0, row, row + 1) };
        let (input, logits) = (row_of(input)?, row_of(logits)?);
        let (token, reported) = match sequence {
            Some(sequence) => sequence.choose(&input, logits)?,
            None => (logits.argmax(-1, false)?, None),
        };
        tokens.push(token);
        logprobs.push(reported);
    }
    let tokens = Tokens::Computed(join_sequences(tokens)?);
    Ok(DecodedStep { tokens, logprobs })
}

/// Times of a sequence's first and last token, in seconds since its prefill began.
#[derive(Debug, Clone, Copy, Default)]
pub struct GenerationTimes {
    first: f64,
    last: f64,
    tokens: usize,
    /// Prompt tokens that went through the model.
    pub prefilled: usize,
}

impl GenerationTimes {
    /// As the windows show them.
    pub fn timing(&self, load_ms: f64) -> Timing {
        let rate = |count: usize, seconds: f64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        Timing {
            load_ms,
            first_token_ms: self.first * 1000.0,
            prefill_tokens_per_second: rate(self.prefilled, self.first),
            decode_tokens_per_second: rate(self.tokens.saturating_sub(1), self.last - self.first),
        }
    }

    /// How many tokens there were.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Takes note of a token, `seconds` after prefill began; returns true if it is the first.
    pub fn record(&mut self, seconds: f64) -> bool {
        self.last = seconds;
        self.tokens += 1;
        if self.tokens == 1 {
            self.first = seconds;
        }
        self.tokens == 1
    }
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopEnd {
    /// The limit was reached.
    Limit,
    /// No more tokens are wanted.
    Stopped,
    /// The job was cancelled.
    Cancelled,
}
