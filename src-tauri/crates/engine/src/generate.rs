//! One answer: prefill in chunks, then a decode loop with one step always in flight.

use std::time::Instant;

use prompt::{ChannelParser, Piece, RenderRequest};
use protocol::{
    Channel, Done, EngineEvent, KvBits, Notice, Request, Sampling, Stage, Stop, Thinking, ThinkingControl, Timing, ToolCall, Usage,
};

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::layers::Parameters;
use crate::load::LoadedModel;
use crate::memory;
use crate::models::Model;
use crate::sample::{Choice, Sampler};
use crate::tensor::{async_eval, eval, Tensor};
use crate::worker::Report;

/// Prompt tokens that are read at once, between two looks at the cancel flag.
pub const PREFILL_CHUNK: usize = 512;

/// Tokens after which buffers that were kept for reuse are given back.
const CLEAR_EVERY: usize = 256;

/// A sequence that is being read and continued: its own caches, offset, random key and penalties.
pub struct Sequence<'a> {
    model: &'a Model,
    caches: Vec<Cache>,
    sampler: Sampler,
}

impl<'a> Sequence<'a> {
    /// A sequence that has read nothing; keys and values of full attention are kept in `kv_bits`.
    pub fn new(model: &'a Model, sampler: Sampler, kv_bits: Option<KvBits>) -> Self {
        Self {
            model,
            caches: model.caches().into_iter().map(|cache| cache.packed(kv_bits)).collect(),
            sampler,
        }
    }

    /// Reads tokens for the sake of the caches alone. Nothing that the caches do not need is computed: not the output
    /// layer, nor layers that use the keys of others.
    pub fn read(&mut self, ids: &[u32]) -> Result<()> {
        self.model.forward(&ids_tensor(ids), &mut self.caches)?;
        eval(self.caches.iter().flat_map(Parameters::tensors))?;
        memory::clear_cache()
    }

    /// Begins to compute the token `[1]` that follows the token `input` `[1]`, which may itself still be computed.
    pub fn step(&mut self, input: &Tensor) -> Result<Tensor> {
        let token = self.describe(input)?;
        async_eval([&token])?;
        Ok(token)
    }

    /// The token of [`Sequence::step`], not begun.
    pub fn describe(&mut self, input: &Tensor) -> Result<Tensor> {
        let states = self.model.forward(input, &mut self.caches)?;
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
}

impl Times {
    /// As the windows show them.
    pub fn timing(&self, prompt_tokens: usize, load_ms: f64) -> Timing {
        let rate = |count: usize, seconds: f64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        Timing {
            load_ms,
            first_token_ms: self.first * 1000.0,
            prefill_tokens_per_second: rate(prompt_tokens, self.first),
            decode_tokens_per_second: rate(self.tokens.saturating_sub(1), self.last - self.first),
        }
    }
}

/// Why a run of tokens ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The limit was reached.
    Limit,
    /// `accept` refused a token.
    Refused,
    /// `cancelled` said so.
    Cancelled,
}

/// Reads `prompt` and makes at most `limit` tokens; `accept` gets each one and says whether to go on. `progress` hears the
/// prompt tokens read. While `accept` looks at one token the next is already being computed.
pub fn run(
    mut sequence: Sequence<'_>,
    prompt: &[u32],
    limit: usize,
    cancelled: &dyn Fn() -> bool,
    progress: &dyn Fn(usize),
    accept: &mut dyn FnMut(u32) -> bool,
) -> Result<(End, Times)> {
    let (start, mut times) = (Instant::now(), Times::default());
    let (last, earlier) = prompt
        .split_last()
        .ok_or_else(|| Error::BadRequest("there is nothing to answer: the prompt is empty".into()))?;
    let mut done = 0;
    for chunk in earlier.chunks(PREFILL_CHUNK) {
        if cancelled() {
            return Ok((End::Cancelled, times));
        }
        sequence.read(chunk)?;
        done += chunk.len();
        progress(done);
    }
    let mut pending = sequence.step(&ids_tensor(&[*last]))?;
    for index in 1..=limit {
        let next = if index < limit { Some(sequence.step(&pending)?) } else { None };
        let token = pending.item_u32()?;
        times.last = start.elapsed().as_secs_f64();
        times.tokens = index;
        if index == 1 {
            times.first = times.last;
            progress(prompt.len());
        }
        if !accept(token) {
            return Ok((End::Refused, times));
        }
        if cancelled() {
            return Ok((End::Cancelled, times));
        }
        if index % CLEAR_EVERY == 0 {
            memory::clear_cache()?;
        }
        match next {
            Some(next) => pending = next,
            None => break,
        }
    }
    Ok((End::Limit, times))
}

/// Refuses what no model can do, before one is loaded for it.
pub fn check(request: &Request) -> Result<()> {
    // The model's vocabulary is not known yet.
    Choice::new(&request.sampling, &Sampling::default(), u32::MAX)?;
    if request.max_tokens == Some(0) {
        return Err(Error::BadRequest(
            "an answer of at most 0 tokens was asked for; ask for 1 or more".into(),
        ));
    }
    Ok(())
}

/// Makes the answer to a request and reports it piece by piece.
pub fn answer(loaded: &LoadedModel, request: &Request, load_ms: f64, report: &Report) -> Result<Done> {
    let LoadedModel { model, dialect, info, .. } = loaded;
    let defaults = dialect.generation_defaults();
    let choice = Choice::new(&request.sampling, defaults, model.vocabulary())?;
    let prompt = dialect.prompt(&RenderRequest {
        messages: &request.messages,
        tools: &request.tools,
        thinking: request.thinking,
        add_generation_prompt: true,
    })?;
    let prompt_tokens = prompt.ids.len();
    let room = (info.context as usize).saturating_sub(prompt_tokens);
    if room == 0 {
        return Err(Error::ContextFull {
            prompt: prompt_tokens,
            context: info.context,
        });
    }
    report.send(EngineEvent::Started {
        prompt_tokens: prompt_tokens as u32,
        model_revision: info.revision.clone(),
        template_hash: info.template_hash.clone(),
    });

    let sampler = Sampler::new(choice, &prompt.ids, &dialect.eos_and_newline_ids(), model.vocabulary())?;
    let mut speech = Speech::new(
        dialect.parser(&prompt, thinks(request.thinking, info.thinking), &request.stop),
        report,
    );
    let limit = request.max_tokens.map_or(room, |most| room.min(most as usize));
    let progress = |done: usize| {
        report.send(EngineEvent::Progress {
            stage: Stage::Prefill,
            done: done as u64,
            total: prompt_tokens as u64,
        })
    };
    let mut accept = |id: u32| !dialect.stops().contains(id) && speech.push(id);
    let (end, times) = run(
        Sequence::new(model, sampler, request.kv_bits),
        &prompt.ids,
        limit,
        &|| report.cancelled(),
        &progress,
        &mut accept,
    )?;
    let timing = times.timing(prompt_tokens, load_ms);
    Ok(speech.end(end, prompt_tokens as u32, timing))
}

/// Whether a model is expected to think, given the switch and what its template can do.
fn thinks(asked: Option<Thinking>, control: ThinkingControl) -> bool {
    match (control, asked) {
        (ThinkingControl::Switch { .. }, Some(asked)) => asked != Thinking::Off,
        (ThinkingControl::Switch { default_on }, None) => default_on,
        // Where nothing can be switched off, a thought that comes all the same is shown as one.
        (ThinkingControl::Levels | ThinkingControl::Always | ThinkingControl::Never, _) => true,
    }
}

/// Turns token ids into events.
struct Speech<'a> {
    parser: ChannelParser,
    report: &'a Report,
    /// Ids that no event has carried yet.
    unsent: Vec<u32>,
    tokens: u32,
    calls: u32,
}

impl<'a> Speech<'a> {
    fn new(parser: ChannelParser, report: &'a Report) -> Self {
        Self {
            parser,
            report,
            unsent: Vec::new(),
            tokens: 0,
            calls: 0,
        }
    }

    /// Takes the next token; the result is whether more are wanted.
    fn push(&mut self, id: u32) -> bool {
        self.tokens += 1;
        self.unsent.push(id);
        let pieces = self.parser.push(id);
        self.say(pieces);
        !self.parser.stopped_by_text()
    }

    fn say(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            let event = match piece {
                Piece::Text(text) => EngineEvent::Delta {
                    channel: Channel::Text,
                    text,
                    tokens: std::mem::take(&mut self.unsent),
                },
                Piece::Thinking(text) => EngineEvent::Delta {
                    channel: Channel::Thinking,
                    text,
                    tokens: std::mem::take(&mut self.unsent),
                },
                Piece::ToolCall { name, arguments } => {
                    let call = ToolCall {
                        id: format!("call_{}", self.calls),
                        name,
                        arguments,
                    };
                    self.calls += 1;
                    EngineEvent::ToolCall {
                        call,
                        tokens: std::mem::take(&mut self.unsent),
                    }
                }
                Piece::Notice { code, message } => EngineEvent::Notice(Notice { code, message }),
            };
            self.report.send(event);
        }
    }

    fn end(mut self, end: End, prompt_tokens: u32, timing: Timing) -> Done {
        let rest = self.parser.finish();
        self.say(rest);
        let stop = match end {
            End::Cancelled => Stop::Cancelled,
            End::Limit => Stop::Length,
            End::Refused if self.calls > 0 => Stop::ToolCalls,
            End::Refused => Stop::Stop,
        };
        let usage = Usage {
            prompt_tokens,
            cached_tokens: 0,
            prefilled_tokens: prompt_tokens,
            completion_tokens: self.tokens,
            thinking_tokens: self.parser.thinking_tokens(),
        };
        Done {
            stop,
            usage,
            timing,
            tokens: self.unsent,
        }
    }
}
