//! Reading and continuing a sequence of tokens: prefill in chunks, then a decode loop with one step always in flight.

use std::time::Instant;

use checkpoint::memory::Backend;
use protocol::{KvBits, Timing};

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::memory;
use crate::models::Model;
use crate::parameters::Parameters;
use crate::sampler::Sampler;
use crate::tensor::{async_eval, device, eval, Device, Tensor};

/// Prompt tokens that are read at once, between two looks at the cancel flag.
pub fn prefill_chunk() -> usize {
    backend().prefill_chunk() as usize
}

/// The device that computes on this thread, as far as memory depends on it.
pub fn backend() -> Backend {
    match device() {
        Device::Cpu => Backend::Cpu,
        Device::Metal => Backend::Metal,
        Device::Cuda => Backend::Cuda,
    }
}

/// Tokens after which buffers that were kept for reuse are given back.
const CLEAR_EVERY: usize = 256;

/// What the model keeps of a sequence: the caches of its layers and how far they have read.
pub struct SequenceState {
    caches: Vec<Cache>,
    /// Tokens that went through the model, counted where it is called.
    forwarded: usize,
    /// Positions that the caches had read before.
    cached: usize,
}

impl SequenceState {
    /// Nothing read; keys and values of full attention will be kept in `kv_bits`.
    pub fn new(model: &Model, kv_bits: Option<KvBits>) -> Self {
        Self::from_caches(model.caches().into_iter().map(|cache| cache.quantized(kv_bits)).collect(), 0)
    }

    /// Caches that have read so many tokens.
    pub fn from_caches(caches: Vec<Cache>, positions: usize) -> Self {
        Self {
            caches,
            forwarded: 0,
            cached: positions,
        }
    }

    /// How many tokens the caches have read.
    pub fn offset(&self) -> usize {
        self.cached + self.forwarded
    }

    /// How many of them went through the model here.
    pub fn forwarded(&self) -> usize {
        self.forwarded
    }

    /// The caches.
    pub fn caches(&mut self) -> &mut [Cache] {
        &mut self.caches
    }

    /// How many layers keep every position as it was computed.
    pub fn unquantized_layers(&self) -> usize {
        let unquantized = |cache: &&Cache| matches!(cache, Cache::Plain(_) | Cache::Mla(_));
        self.caches.iter().filter(unquantized).count()
    }

    /// The states `[length, width]` of the next tokens.
    fn forward(&mut self, model: &Model, ids: &Tensor) -> Result<Tensor> {
        self.forwarded += ids.size();
        model.forward(ids, &mut self.caches)
    }

    /// Reads tokens for the sake of the caches alone. Nothing that the caches do not need is computed: not the output
    /// layer, nor layers that use the keys of others.
    pub fn prefill(&mut self, model: &Model, ids: &[u32]) -> Result<()> {
        self.forward(model, &ids_tensor(ids))?;
        eval(self.caches.iter().flat_map(Parameters::tensors))?;
        match device() {
            // Giving buffers back and fetching them again costs a server card as much as reading the tokens.
            Device::Cuda => Ok(()),
            Device::Cpu | Device::Metal => memory::clear_cache(),
        }
    }
}

/// A sequence that is being read and continued: its own caches, offset, random key and penalties.
pub struct Sequence<'a> {
    model: &'a Model,
    state: SequenceState,
    sampler: Sampler,
}

impl<'a> Sequence<'a> {
    /// A sequence that continues from this state.
    pub fn new(model: &'a Model, state: SequenceState, sampler: Sampler) -> Self {
        Self { model, state, sampler }
    }

    /// What has been read of it.
    pub fn state(&mut self) -> &mut SequenceState {
        &mut self.state
    }

    /// Reads tokens for the sake of the caches alone.
    pub fn prefill(&mut self, ids: &[u32]) -> Result<()> {
        self.state.prefill(self.model, ids)
    }

    /// Reads tokens that were not sampled and begins to compute the one `[1]` that follows.
    fn append(&mut self, ids: &[u32]) -> Result<Tensor> {
        let (last, earlier) = ids.split_last().ok_or_else(empty_prompt)?;
        if !earlier.is_empty() {
            self.prefill(earlier)?;
            self.sampler.observe(earlier)?;
        }
        self.step(&ids_tensor(&[*last]))
    }

    /// Begins to compute the token `[1]` that follows the token `input` `[1]`, which may itself still be computed.
    pub fn step(&mut self, input: &Tensor) -> Result<Tensor> {
        let token = self.build_step(input)?;
        async_eval([&token])?;
        Ok(token)
    }

    /// The graph of [`Sequence::step`], not evaluated.
    pub fn build_step(&mut self, input: &Tensor) -> Result<Tensor> {
        let states = self.state.forward(self.model, input)?;
        self.sampler.sample(input, self.model.logits(&states)?)
    }
}

/// Token ids as the model takes them.
pub fn ids_tensor(ids: &[u32]) -> Tensor {
    let ids: Vec<i32> = ids.iter().map(|id| *id as i32).collect();
    Tensor::from_i32(&ids, &[ids.len() as i32])
}

/// Times of a sequence's first and last token, in seconds since its prefill began.
#[derive(Debug, Clone, Copy, Default)]
pub struct GenerationTimes {
    first: f64,
    last: f64,
    tokens: usize,
    prefilled: usize,
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

    /// Prompt tokens that went through the model.
    pub fn prefilled(&self) -> usize {
        self.prefilled
    }
}

/// Why the decode loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopEnd {
    /// The limit was reached.
    Limit,
    /// The observer wants no more tokens.
    Stopped,
    /// The observer is cancelled.
    Cancelled,
}

/// Observes a generation and decides about it.
pub trait GenerationObserver {
    /// Whether the generation has to end; asked between chunks and between tokens.
    fn cancelled(&self) -> bool;

    /// Whether there is memory to read the positions `from..to`; asked before each chunk.
    ///
    /// # Errors
    /// If this computer's memory clearly does not hold them.
    fn check_memory(&self, _from: usize, _to: usize) -> Result<()> {
        Ok(())
    }

    /// So many tokens of the prompt have been read, those the sequence had read before included.
    fn on_prefill(&self, read: usize);

    /// The prompt has been read up to one of the plan's boundaries.
    fn on_boundary(&mut self, state: &mut SequenceState) -> Result<()>;

    /// Takes a token and says whether to go on. Meanwhile the next is already being computed.
    fn on_token(&mut self, id: u32) -> bool;

    /// Tokens that replace what the model would sample here, at most `room`; asked before the first token and after each. They
    /// take the place of what is being computed, and the model continues as if it had sampled them.
    fn forced_tokens(&mut self, room: usize) -> Vec<u32>;
}

/// What is read and how much is generated.
pub struct GenerationPlan<'a> {
    /// The whole prompt and the answer prefix, of which the sequence has read less than all.
    pub prompt: &'a [u32],
    /// Where reading pauses, in rising order.
    pub boundaries: &'a [usize],
    /// At most so many tokens are generated.
    pub limit: usize,
}

/// Reads what is left of the prompt and generates tokens.
pub fn generate(
    sequence: &mut Sequence<'_>,
    plan: &GenerationPlan<'_>,
    observer: &mut dyn GenerationObserver,
) -> Result<(LoopEnd, GenerationTimes)> {
    let (start, mut times) = (Instant::now(), GenerationTimes::default());
    let (last, earlier) = plan.prompt.split_last().ok_or_else(empty_prompt)?;
    while sequence.state.offset() < earlier.len() {
        if observer.cancelled() {
            times.prefilled = sequence.state.forwarded();
            return Ok((LoopEnd::Cancelled, times));
        }
        let from = sequence.state.offset();
        let pause = plan.boundaries.iter().copied().find(|boundary| *boundary > from);
        let to = (from + prefill_chunk()).min(earlier.len()).min(pause.unwrap_or(usize::MAX));
        observer.check_memory(from, to)?;
        sequence.prefill(&earlier[from..to])?;
        observer.on_prefill(to);
        if pause == Some(to) {
            observer.on_boundary(&mut sequence.state)?;
        }
    }
    times.prefilled = sequence.state.forwarded() + 1;
    let mut forced = observer.forced_tokens(plan.limit);
    let mut written = forced.len();
    let mut pending = (written < plan.limit)
        .then(|| sequence.append(&[&[*last], forced.as_slice()].concat()))
        .transpose()?;
    while let Some(token) = pending {
        written += 1;
        let next = if written < plan.limit { Some(sequence.step(&token)?) } else { None };
        let token = token.item_u32()?;
        times.last = start.elapsed().as_secs_f64();
        times.tokens += 1;
        if times.tokens == 1 {
            times.first = times.last;
            observer.on_prefill(plan.prompt.len());
        }
        if !observer.on_token(token) {
            return Ok((LoopEnd::Stopped, times));
        }
        if observer.cancelled() {
            return Ok((LoopEnd::Cancelled, times));
        }
        if times.tokens % CLEAR_EVERY == 0 {
            memory::clear_cache()?;
        }
        forced = observer.forced_tokens(plan.limit - written);
        pending = if forced.is_empty() {
            next
        } else {
            written += forced.len();
            (written < plan.limit).then(|| sequence.append(&forced)).transpose()?
        };
    }
    Ok((LoopEnd::Limit, times))
}

fn empty_prompt() -> Error {
    Error::BadRequest("there is nothing to answer: the prompt is empty".into())
}
