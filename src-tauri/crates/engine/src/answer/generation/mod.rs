//! One answer in the making: what is known of its tokens, what the model has read of them, and what becomes of each new
//! one.

mod begin;
mod constrained;
mod draft_model;
mod image_encoding;
mod preemption;
mod prefill;
mod prompt;
mod state;

pub use draft_model::DraftModel;
pub use image_encoding::ImageEncoding;
pub use prefill::Chunk;

use std::rc::Rc;
use std::time::Instant;

use checkpoint::memory::Workload;
use protocol::{Done, EndedBy, EngineEvent, Notice, NoticeCode, Priority, Request, Stage};

use crate::answer::generation::prompt::PromptReading;
use crate::answer::generation::state::State;
use crate::answer::job::JobContext;
use crate::answer::output_stream::OutputStream;
use crate::answer::repetition_detector::{Repetition, RepetitionDetector};
use crate::backend::backend;
use crate::error::Result;
use crate::loaded::LoadedModel;
use crate::sequence::drafts::{Drafts, NextDraft, Tuner};
use crate::sequence::logprobs::Logprobs;
use crate::sequence::prefix::Prefix;
use crate::sequence::sampler::SamplerConfig;
use crate::sequence::{GenerationTimes, LoopEnd, Sequence};

/// How much of an answer is planned for when it is admitted, in tokens: few answers are longer.
const PLANNED_TOKENS: u32 = 1024;

/// The planned memory of a request's sequence, after `tokens` tokens of prompt and answer prefix.
pub fn planned_workload(request: &Request, tokens: usize, context: u32) -> Workload {
    let answer = request
        .max_tokens
        .map_or(PLANNED_TOKENS, |most| most.min(PLANNED_TOKENS));
    Workload {
        context: (tokens as u32).saturating_add(answer).min(request.context_of(context)),
        kv_bits: request.kv_bits,
        backend: backend(),
        prefix_cached: false,
    }
}

/// An answer that was admitted. It reads its prompt in chunks, then takes part in decode steps, one token each; in
/// between it can be left out of any step.
///
/// The tokens of the answer join `tokens` when they are known. How far the model has read them follows from the
/// sequence's offset: if it lacks the last one, a step may be made; if it lacks more, as after forced tokens, they are
/// read first; if it lacks none, the step that reads the last one is in flight.
pub struct Generation {
    loaded: Rc<LoadedModel>,
    request: Request,
    job: Rc<JobContext>,
    /// Without caches until the first chunk is read: until then another answer may leave a longer prefix in the cache.
    state: State,
    /// The prompt, the answer prefix and what followed, the end token included.
    tokens: Vec<u32>,
    prompt: PromptReading,
    sampler_config: SamplerConfig,
    /// The number of tokens that the sampler was given when it was created.
    sampler_seen: usize,
    /// The most tokens that are generated, and the rule that sets this limit.
    limit: (usize, EndedBy),
    /// The number of tokens that were generated or forced.
    generated: usize,
    output: OutputStream,
    repetitions: RepetitionDetector,
    drafts: Drafts,
    /// The smaller model or the head that drafts, until it fails.
    draft_model: Option<DraftModel>,
    times: GenerationTimes,
    load_ms: f64,
    started: Instant,
}

impl Generation {
    /// Its known tokens.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The priority of its request.
    pub fn priority(&self) -> Priority {
        self.request.priority
    }

    /// True if it has to end.
    pub fn cancelled(&self) -> bool {
        self.job.cancelled()
    }

    /// When it last read a chunk, or was admitted.
    pub fn last_chunk(&self) -> Instant {
        self.prompt.last_chunk
    }

    /// How many of its tokens the model has read, or `None` before the first chunk.
    pub fn read(&self) -> Option<usize> {
        self.state.sequence().map(|sequence| sequence.state.offset())
    }

    /// How many of its tokens still have to be read before a step can be made.
    pub fn unread(&self) -> usize {
        (self.tokens.len() - 1).saturating_sub(self.read().unwrap_or(0))
    }

    /// True if its prompt has been read, tokens follow, and it is not preempted.
    pub fn decoding(&self) -> bool {
        matches!(self.state, State::Decoding(_))
    }

    /// True if tokens have to be read before its next step.
    pub fn reading(&self) -> bool {
        self.state.is_active() && (self.unread() > 0 || !self.state.has_read_prompt())
    }

    /// The bytes that its caches will grow by, as far as its length is planned.
    pub fn cache_growth(&self) -> u64 {
        let config = &self.loaded.files.config;
        let workload = planned_workload(&self.request, self.prompt.prefilled, config.context);
        config.cache_growth(self.read().unwrap_or(0) as u32, &workload)
    }

    /// True if the next step can read its last token, which nothing in flight has read.
    pub fn ready(&self) -> bool {
        self.decoding() && self.read() == Some(self.tokens.len() - 1) && !self.awaits_grammar()
    }

    /// True if one more token is wanted while one is still in flight.
    pub fn wants_another(&self) -> bool {
        self.state.is_active() && self.generated + 1 < self.limit.0
    }

    /// True if a step in flight reads its last token.
    pub fn in_step(&self) -> bool {
        self.read() == Some(self.tokens.len())
    }

    /// True if it has to decode alone until a token of it is known.
    pub fn is_isolated(&self) -> bool {
        self.state.is_isolated()
    }

    /// Its sequence, to take part in a step.
    pub fn sequence(&mut self) -> &mut Sequence {
        #[cfg(feature = "test-support")]
        if self.job.fails_after.is_some_and(|tokens| self.generated >= tokens) {
            panic!("asked for by a test");
        }
        self.state.sequence_mut().expect("its prompt has been read")
    }

    /// Lets it begin anew with the tokens that are known, after a step failed.
    pub fn restart(&mut self) {
        self.state.isolate();
        self.sampler_seen = self.tokens.len();
        self.drafts.end();
        self.draft_model = None;
    }

    /// The draft of the tokens that may follow, if it is worth a pass.
    pub fn next_draft(&mut self, tuner: &Tuner) -> Option<NextDraft> {
        let by_model = self.can_draft();
        let room = self.limit.0 - self.generated;
        self.drafts.next(&self.tokens, room, tuner, by_model)
    }

    /// Its drafts, and how many of its tokens are known.
    pub fn drafts(&mut self) -> (&mut Drafts, usize) {
        (&mut self.drafts, self.tokens.len())
    }

    /// Adds a boundary at which prefill stops for a copy that another answer waits for.
    pub fn stop_at(&mut self, position: usize) {
        if let Err(index) = self.prompt.boundaries.binary_search(&position) {
            self.prompt.boundaries.insert(index, position);
        }
    }

    /// Takes its next token, which is known now; meanwhile the one after it may be in flight already. Returns why it
    /// ends, if it does.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn accept(&mut self, token: u32, logprobs: Option<&Logprobs>) -> Result<Option<LoopEnd>> {
        let loaded = self.loaded.clone();
        let processor = loaded.files.chat()?;
        let logprobs = logprobs.map(|logprobs| logprobs.read(token, processor)).transpose()?;
        self.state.end_isolation();
        self.generated += 1;
        if self.times.record(self.started.elapsed().as_secs_f64()) {
            self.report_prefill(self.prompt.prefilled);
        }
        self.tokens.push(token);
        if let Some(stop) = processor.stops().ids.get(&token) {
            self.output.stop_token(token, stop);
            return Ok(Some(LoopEnd::Stopped));
        }
        self.output.report(logprobs);
        if !self.output.push(token) {
            return Ok(Some(LoopEnd::Stopped));
        }
        match self.repetitions.push(token) {
            Some(Repetition::Endless) => {
                self.output.stop_repetition();
                return Ok(Some(LoopEnd::Stopped));
            }
            Some(Repetition::Noticed) => self.output.notice_repetition(),
            None => {}
        }
        self.force(self.limit.0 - self.generated);
        Ok(self.full().then_some(LoopEnd::Limit))
    }

    /// True if it has as many tokens as it may have.
    pub fn full(&self) -> bool {
        self.generated >= self.limit.0
    }

    /// Appends the tokens that replace what the model would sample here, at most `room`. They take the place of what is
    /// in flight, and the model continues as if it had sampled them.
    fn force(&mut self, room: usize) {
        let forced = self.output.forced_tokens(room);
        self.generated += forced.len();
        self.repetitions.extend(&forced);
        self.tokens.extend(forced);
    }

    /// Sends the end of the answer and keeps what of it a later prompt may begin with.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn finish(mut self, end: LoopEnd) -> Result<()> {
        if self.times.prefilled == 0 {
            self.times.prefilled = self.read().unwrap_or(0).saturating_sub(self.prompt.cached);
        }
        self.store_end(end)?;
        if let Some(model) = &mut self.draft_model {
            model.store(&self.tokens);
        }
        self.report_unquantized_layers();
        let mut done: Done = self.output.finish(
            (end, self.limit.1),
            self.prompt.tokens,
            self.prompt.cached,
            &self.times,
            self.load_ms,
        );
        if let Some(usage) = &mut done.usage {
            usage.speculation = self.drafts.usage(self.times.tokens());
        }
        self.job.send(EngineEvent::Done(done));
        Ok(())
    }

    /// The job that it is for.
    pub fn job(&self) -> Rc<JobContext> {
        self.job.clone()
    }

    /// Puts a copy of what has been read into the prefix cache.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn store(&mut self) -> Result<()> {
        let Some(sequence) = self.state.sequence_mut() else {
            return Ok(());
        };
        let read = Prefix {
            tokens: &self.tokens[..sequence.state.offset()],
            images: self.prompt.keys(),
        };
        self.loaded
            .prefix_cache
            .borrow_mut()
            .insert(read, self.request.kv_bits, sequence.state.caches())
    }

    /// Stores what has been read in the end. The next prompt will hardly repeat a thought, so with one in it only a
    /// stopped prefill is worth a copy, and an answer that may be continued.
    fn store_end(&mut self, end: LoopEnd) -> Result<()> {
        if self.read().unwrap_or(0) <= self.prompt.prefilled
            || self.output.thinking_tokens() == 0
            || end != LoopEnd::Stopped
        {
            self.store()?;
        }
        Ok(())
    }

    fn report_prefill(&self, read: usize) {
        self.job.send(EngineEvent::Progress {
            stage: Stage::Prefill,
            done: read as u64,
            total: self.prompt.prefilled as u64,
        });
    }

    /// Sends a notice if some layers cannot keep their keys in few bits.
    fn report_unquantized_layers(&self) {
        let Some(state) = self.state.sequence().map(|sequence| &sequence.state) else {
            return;
        };
        let unquantized = state.unquantized_layers();
        if self.request.kv_bits.is_some() && state.offset() > 0 && unquantized > 0 {
            let message =
                format!("{unquantized} layers keep their keys and values whole: they have no heads whose width is a multiple of 32");
            let notice = Notice::new(NoticeCode::KvBits, message).with("layers", unquantized);
            self.job.send(EngineEvent::Notice(notice));
        }
    }
}
