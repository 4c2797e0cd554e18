//! Reading and continuing a sequence of tokens: prefill in chunks, then a decode loop with one step always in flight.

use std::time::Instant;

use prompt::config::memory::Backend;
use protocol::{KvBits, Timing};

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::layers::Parameters;
use crate::memory;
use crate::models::Model;
use crate::sample::Sampler;
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

/// What has been read of a sequence.
pub struct Reading {
    caches: Vec<Cache>,
    /// Tokens that went through the model, counted where it is called.
    forwarded: usize,
    resumed: usize,
}

impl Reading {
    /// Nothing read; keys and values of full attention will be kept in `kv_bits`.
    pub fn new(model: &Model, kv_bits: Option<KvBits>) -> Self {
        Self::resumed(model.caches().into_iter().map(|cache| cache.packed(kv_bits)).collect(), 0)
    }

    /// Caches that have read so many tokens.
    pub fn resumed(caches: Vec<Cache>, positions: usize) -> Self {
        Self {
            caches,
            forwarded: 0,
            resumed: positions,
        }
    }

    /// How many tokens the caches have read.
    pub fn offset(&self) -> usize {
        self.resumed + self.forwarded
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
    pub fn plain_layers(&self) -> usize {
        let plain = |cache: &&Cache| matches!(cache, Cache::Plain(_) | Cache::Latent(_));
        self.caches.iter().filter(plain).count()
    }

    /// The states `[length, width]` of the next tokens.
    fn forward(&mut self, model: &Model, ids: &Tensor) -> Result<Tensor> {
        self.forwarded += ids.size();
        model.forward(ids, &mut self.caches)
    }

    /// Reads tokens for the sake of the caches alone. Nothing that the caches do not need is computed: not the output
    /// layer, nor layers that use the keys of others.
    pub fn read(&mut self, model: &Model, ids: &[u32]) -> Result<()> {
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
    reading: Reading,
    sampler: Sampler,
}

impl<'a> Sequence<'a> {
    /// A sequence that goes on after what has been read.
    pub fn new(model: &'a Model, reading: Reading, sampler: Sampler) -> Self {
        Self { model, reading, sampler }
    }

    /// What has been read of it.
    pub fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }

    /// Reads tokens for the sake of the caches alone.
    pub fn read(&mut self, ids: &[u32]) -> Result<()> {
        self.reading.read(self.model, ids)
    }

    /// Reads tokens that were not chosen here and begins to compute the one `[1]` that follows.
    fn go_on(&mut self, ids: &[u32]) -> Result<Tensor> {
        let (last, earlier) = ids.split_last().ok_or_else(nothing_to_answer)?;
        if !earlier.is_empty() {
            self.read(earlier)?;
            self.sampler.remember(earlier)?;
        }
        self.step(&ids_tensor(&[*last]))
    }

    /// Begins to compute the token `[1]` that follows the token `input` `[1]`, which may itself still be computed.
    pub fn step(&mut self, input: &Tensor) -> Result<Tensor> {
        let token = self.describe(input)?;
        async_eval([&token])?;
        Ok(token)
    }

    /// The token of [`Sequence::step`], not begun.
    pub fn describe(&mut self, input: &Tensor) -> Result<Tensor> {
        let states = self.reading.forward(self.model, input)?;
        self.sampler.choose(input, self.model.logits(&states)?)
    }
}

/// Token ids as the model takes them.
pub fn ids_tensor(ids: &[u32]) -> Tensor {
    let ids: Vec<i32> = ids.iter().map(|id| *id as i32).collect();
    Tensor::from_i32(&ids, &[ids.len() as i32])
}

/// Times of a sequence's first and last token, in seconds since its prefill began.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    first: f64,
    last: f64,
    tokens: usize,
    prefilled: usize,
}

impl Times {
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

/// Why a run of tokens ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The limit was reached.
    Limit,
    /// The listener refused a token.
    Refused,
    /// The listener is cancelled.
    Cancelled,
}

/// Who hears of a run and decides about it.
pub trait Listener {
    /// Whether the run shall end; asked between chunks and between tokens.
    fn cancelled(&self) -> bool;

    /// Whether the positions from one to another may be read; asked before each chunk.
    ///
    /// # Errors
    /// Where this computer's memory clearly does not hold them.
    fn room(&self, _from: usize, _to: usize) -> Result<()> {
        Ok(())
    }

    /// So many tokens of the prompt have been read, those the sequence had read before included.
    fn progress(&self, read: usize);

    /// The prompt has been read up to one of the plan's boundaries.
    fn boundary(&mut self, reading: &mut Reading) -> Result<()>;

    /// Takes a token and says whether to go on. Meanwhile the next is already being computed.
    fn token(&mut self, id: u32) -> bool;

    /// What is said for the model at this place, at most `room` tokens; asked before the first token and behind each. It takes
    /// the place of what is being computed, and the model goes on as if it had said it.
    fn said_for_it(&mut self, room: usize) -> Vec<u32>;
}

/// What a run reads and makes.
pub struct Plan<'a> {
    /// The whole prompt and what an answer was begun with, of which the sequence has read less than all.
    pub prompt: &'a [u32],
    /// Where reading pauses, in rising order.
    pub boundaries: &'a [usize],
    /// At most so many tokens are made.
    pub limit: usize,
}

/// Reads what is left of the prompt and makes tokens.
pub fn run(sequence: &mut Sequence<'_>, plan: &Plan<'_>, listener: &mut dyn Listener) -> Result<(End, Times)> {
    let (start, mut times) = (Instant::now(), Times::default());
    let (last, earlier) = plan.prompt.split_last().ok_or_else(nothing_to_answer)?;
    while sequence.reading.offset() < earlier.len() {
        if listener.cancelled() {
            times.prefilled = sequence.reading.forwarded();
            return Ok((End::Cancelled, times));
        }
        let from = sequence.reading.offset();
        let pause = plan.boundaries.iter().copied().find(|boundary| *boundary > from);
        let to = (from + prefill_chunk()).min(earlier.len()).min(pause.unwrap_or(usize::MAX));
        listener.room(from, to)?;
        sequence.read(&earlier[from..to])?;
        listener.progress(to);
        if pause == Some(to) {
            listener.boundary(&mut sequence.reading)?;
        }
    }
    times.prefilled = sequence.reading.forwarded() + 1;
    let mut said = listener.said_for_it(plan.limit);
    let mut written = said.len();
    let mut pending = (written < plan.limit)
        .then(|| sequence.go_on(&[&[*last], said.as_slice()].concat()))
        .transpose()?;
    while let Some(token) = pending {
        written += 1;
        let next = if written < plan.limit { Some(sequence.step(&token)?) } else { None };
        let token = token.item_u32()?;
        times.last = start.elapsed().as_secs_f64();
        times.tokens += 1;
        if times.tokens == 1 {
            times.first = times.last;
            listener.progress(plan.prompt.len());
        }
        if !listener.token(token) {
            return Ok((End::Refused, times));
        }
        if listener.cancelled() {
            return Ok((End::Cancelled, times));
        }
        if times.tokens % CLEAR_EVERY == 0 {
            memory::clear_cache()?;
        }
        said = listener.said_for_it(plan.limit - written);
        pending = if said.is_empty() {
            next
        } else {
            written += said.len();
            (written < plan.limit).then(|| sequence.go_on(&said)).transpose()?
        };
    }
    Ok((End::Limit, times))
}

fn nothing_to_answer() -> Error {
    Error::BadRequest("there is nothing to answer: the prompt is empty".into())
}
