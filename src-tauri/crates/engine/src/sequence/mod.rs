//! A sequence of tokens as the model reads and continues it.

pub mod drafts;
mod images;
pub mod logprobs;
mod positions;
pub mod prefix;
mod prompt_image;
mod read_states;
pub mod recorded;
pub mod sampler;
mod state;
mod tokens;
mod verify;

use mlx::recording::RowSampler;
use mlx::tensor::{eval, Tensor};
use protocol::Timing;

use crate::error::Result;
use crate::layers::join_sequences;
use crate::models::Model;
use crate::sequence::logprobs::Logprobs;
use crate::sequence::recorded::{RecordedOutput, RecordedSteps};
use crate::sequence::sampler::{Mask, Sampler};
pub use images::PromptImages;
pub use prompt_image::{ImageViews, PendingViews, PromptImage};
pub use state::{next_logits, SequenceState};
pub use tokens::Tokens;
pub use verify::verify;

impl SequenceState {
    /// [`SequenceState::prefill`] by recorded steps, if the tokens are few and there are such.
    pub fn read(&mut self, stepping: Stepping<'_>, ids: &[u32]) -> Result<()> {
        match stepping.recorded.read(stepping.model, self, ids)? {
            true => Ok(()),
            false => self.prefill(stepping.model, ids),
        }
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

    /// Passes over a draw that another way of decoding makes and drops.
    pub fn skip_draw(&mut self) {
        self.sampler.skip_draws(1);
    }

    /// The sampler of a recorded step that chooses its next token; `None` if that takes more than logits.
    fn row_sampler(&self) -> Option<RowSampler> {
        match self.top_logprobs {
            Some(_) => None,
            None => self.sampler.of_row(),
        }
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
    let samplers: Option<Vec<RowSampler>> = sequences.iter().map(|sequence| sequence.row_sampler()).collect();
    let (logits, recorded_logits) = match begin_recorded(stepping, input, sequences, samplers.as_deref())? {
        Some(RecordedOutput::Tokens(tokens)) => {
            // Their draws were made.
            sequences.iter_mut().for_each(|sequence| sequence.skip_draw());
            return Ok(DecodedStep {
                tokens: Tokens::Recorded(tokens),
                logprobs: Vec::new(),
            });
        }
        Some(RecordedOutput::Logits) => (stepping.recorded.logits(sequences.len())?, true),
        None => (plain_logits(stepping.model, input, sequences)?, false),
    };
    let likeliest = |sampler: &RowSampler| *sampler == RowSampler::LIKELIEST;
    if samplers.is_some_and(|samplers| samplers.iter().all(likeliest)) {
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
    match begin_recorded(stepping, input, sequences, None)? {
        Some(_) => stepping.recorded.logits(sequences.len()),
        None => plain_logits(stepping.model, input, sequences),
    }
}

fn begin_recorded(
    stepping: Stepping<'_>,
    input: &Tokens,
    sequences: &mut [&mut Sequence],
    samplers: Option<&[RowSampler]>,
) -> Result<Option<RecordedOutput>> {
    let mut states: Vec<&mut SequenceState> = sequences.iter_mut().map(|sequence| &mut sequence.state).collect();
    stepping.recorded.begin(stepping.model, input, &mut states, samplers)
}

fn plain_logits(model: &Model, input: &Tokens, sequences: &mut [&mut Sequence]) -> Result<Tensor> {
    let mut states: Vec<&mut SequenceState> = sequences.iter_mut().map(|sequence| &mut sequence.state).collect();
    next_logits(model, &input.tensor()?, &mut states)
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
