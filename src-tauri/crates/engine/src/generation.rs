//! One answer in the making: what is known of its tokens, what the model has read of them, and what becomes of each new one.

mod constrained;
mod image_encoding;
mod pausing;
mod reading;

pub use image_encoding::ImageEncoding;
pub use reading::Chunk;

use std::rc::Rc;
use std::time::Instant;

use checkpoint::memory::Workload;
use protocol::{Done, EndedBy, EngineEvent, Notice, NoticeCode, Priority, RawPrompt, Request, Stage};

use crate::answer::{render_request, thinks, PreparedPrompt};
use crate::cache::{ImageKey, Prefix};
use crate::error::{Error, Result};
use crate::job::JobContext;
use crate::load::LoadedModel;
use crate::logprobs::Logprobs;
use crate::output_constraint;
use crate::output_stream::OutputStream;
use crate::prompt_lookup::{Drafts, Tuner};
use crate::repetition_detector::RepetitionDetector;
use crate::sampler::{Sampler, SamplerConfig};
use crate::sequence::{backend, GenerationTimes, LoopEnd, PromptImages, Sequence};
use crate::thinking_budget::ThinkingBudget;

/// How much of an answer is planned for when it is admitted, in tokens: few answers are longer.
const PLANNED_TOKENS: u32 = 1024;

/// What the sequence of a request will take, as far as it is planned, after so many tokens of prompt and answer prefix.
pub fn planned_workload(request: &Request, tokens: usize, context: u32) -> Workload {
    let answer = request.max_tokens.map_or(PLANNED_TOKENS, |most| most.min(PLANNED_TOKENS));
    Workload {
        context: (tokens as u32).saturating_add(answer).min(request.context_of(context)),
        kv_bits: request.kv_bits,
        backend: backend(),
        prefix_cached: false,
    }
}

/// An answer that was admitted. It reads its prompt in chunks, then takes part in decode steps, one token each; in between it can
/// be left out of any step.
///
/// The tokens of the answer join `tokens` when they are known. What of them the model has read follows from the sequence's
/// offset: all but the last, and a step may be made; more are missing, and they are read first, as after forced tokens; none,
/// and the step that reads the last is in flight.
pub struct Generation {
    loaded: Rc<LoadedModel>,
    request: Request,
    job: Rc<JobContext>,
    /// `None` until the first chunk is read: until then another answer may leave a longer prefix in the cache.
    sequence: Option<Sequence>,
    sampler_config: SamplerConfig,
    /// The prompt, the answer prefix and what followed, the end token included.
    tokens: Vec<u32>,
    /// The pictures of the prompt, if there are any, and what tells them from others.
    images: Option<(Rc<PromptImages>, Vec<ImageKey>)>,
    /// The picture that is being encoded, or was last.
    encoding_image: Option<usize>,
    /// Tokens of the prompt alone.
    prompt_tokens: usize,
    /// Tokens of the prompt and of the answer prefix.
    prefilled: usize,
    /// How many of the tokens the sampler was told when it was made.
    told: usize,
    /// How many tokens were in the prefix cache.
    cached: usize,
    /// Where reading pauses for a copy, in rising order.
    boundaries: Vec<usize>,
    /// At most so many tokens are generated, by this rule.
    limit: (usize, EndedBy),
    /// Tokens that were generated or forced.
    written: usize,
    output: OutputStream,
    repetitions: RepetitionDetector,
    times: GenerationTimes,
    load_ms: f64,
    started: Instant,
    /// When it last read a chunk.
    last_chunk: Instant,
    /// Whether its prompt has been read and tokens follow.
    decoding: bool,
    /// Whether a step failed that it took part in, so that it has to show alone that it was not its fault.
    suspect: bool,
    /// Whether it neither reads nor takes part in steps for now.
    paused: bool,
    /// The sampler, while there is no sequence because its caches were dropped.
    sampler: Option<Sampler>,
    drafts: Drafts,
}

impl Generation {
    /// Begins the answer to a request whose prompt has been prepared, and whose model took `load_ms` to load.
    ///
    /// # Errors
    /// If the model cannot answer this.
    pub fn begin(loaded: Rc<LoadedModel>, request: Request, prepared: PreparedPrompt, load_ms: f64, job: Rc<JobContext>) -> Result<Self> {
        let LoadedModel { model, files, info, .. } = &*loaded;
        let processor = files.chat()?;
        let sampler_config = SamplerConfig::new(&request.sampling, processor.generation_defaults(), model.vocabulary())?;
        let PreparedPrompt {
            prompt,
            images,
            plans,
            prefix,
        } = prepared;
        let images = match images.is_empty() {
            true => None,
            false => Some(Rc::new(loaded.images(images)?)),
        };
        let images = images.map(|images| (images.clone(), images.keys()));
        // A row that the embedding does not have would be read from whatever follows it in memory.
        if let Some(id) = prompt.ids.iter().find(|id| **id >= model.readable()) {
            if matches!(request.raw_prompt, Some(RawPrompt::Tokens(_))) {
                return Err(Error::BadRequest(format!(
                    "there is no token {id}: the model knows {}",
                    model.readable()
                )));
            }
            return Err(Error::BrokenFile {
                file: "tokenizer.json".into(),
                reason: format!("it makes the token {id}, and the model knows {} tokens", model.readable()),
            });
        }
        if let Some(prefix) = &prefix {
            prefix.check_revision(&info.revision)?;
            prefix.check_vocabulary(model.vocabulary())?;
        }
        job.send(EngineEvent::Started {
            prompt_tokens: Some(prompt.ids.len() as u32),
            model_revision: Some(info.revision.clone()),
            template_hash: Some(info.template_hash.clone()),
        });

        let parser = match request.raw_prompt {
            Some(_) => processor.raw_parser(&prompt, &request.stop),
            None => processor.parser(&prompt, thinks(request.thinking, &info.thinking), &request.stop),
        };
        let thinking = ThinkingBudget::new(processor.thinking_terminator().cloned(), request.thinking_budget);
        let constraint = output_constraint::begin(&loaded, processor, &request);
        let mut output = OutputStream::new(parser.with_tools(&request.tools), thinking, job.clone()).limited(constraint);
        let mut repetitions = RepetitionDetector::default();
        let mut tokens = prompt.ids.clone();
        if let Some(prefix) = &prefix {
            output.replay(prefix)?;
            repetitions.extend(&prefix.tokens);
            tokens.extend(&prefix.tokens);
        }
        if tokens.is_empty() {
            return Err(Error::BadRequest("there is nothing to answer: the prompt is empty".into()));
        }
        let room = (request.context_of(files.config.context) as usize).saturating_sub(tokens.len());
        let limit = match request.max_tokens {
            Some(most) if (most as usize) < room => (most as usize, EndedBy::TokenLimit),
            _ => (room, EndedBy::Context),
        };
        let boundaries = match request.raw_prompt {
            Some(_) => vec![prompt.ids.len().saturating_sub(1)],
            None => processor.boundaries(&render_request(&request, &plans), &prompt),
        };
        // What ends a thought drops a draw that is in flight, and a draft has none.
        let exact = sampler_config.is_greedy() || request.thinking_budget.is_none();
        // What a grammar allows is known one token at a time.
        let single = request.top_logprobs.is_some() || output.is_limited();
        let drafts = Drafts::new(exact && !single && model.reads_chunks_alike());
        let image_tokens = images.iter().flat_map(|(images, _)| images.tokens(&tokens));
        let drafts = drafts.without(image_tokens.collect());
        Ok(Self {
            sequence: None,
            sampler_config,
            images,
            encoding_image: None,
            prompt_tokens: prompt.ids.len(),
            prefilled: tokens.len(),
            told: tokens.len(),
            cached: 0,
            boundaries,
            limit,
            written: 0,
            output,
            repetitions,
            times: GenerationTimes::default(),
            load_ms,
            started: Instant::now(),
            last_chunk: Instant::now(),
            decoding: false,
            suspect: false,
            paused: false,
            sampler: None,
            drafts,
            tokens,
            loaded,
            request,
            job,
        })
    }

    /// What is known of its tokens.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Who waits for it.
    pub fn priority(&self) -> Priority {
        self.request.priority
    }

    /// Whether it has to end.
    pub fn cancelled(&self) -> bool {
        self.job.cancelled()
    }

    /// When it last read a chunk, or was admitted.
    pub fn last_chunk(&self) -> Instant {
        self.last_chunk
    }

    /// How many of its tokens the model has read, or `None` before the first chunk.
    pub fn read(&self) -> Option<usize> {
        self.sequence.as_ref().map(|sequence| sequence.state.offset())
    }

    /// How many of its tokens still have to be read before a step can be made.
    pub fn unread(&self) -> usize {
        (self.tokens.len() - 1).saturating_sub(self.read().unwrap_or(0))
    }

    /// Whether its prompt has been read and tokens follow.
    pub fn decoding(&self) -> bool {
        self.decoding && !self.paused
    }

    /// Whether tokens have to be read before its next step.
    pub fn reading(&self) -> bool {
        !self.paused && (self.unread() > 0 || !self.decoding)
    }

    /// The bytes that its caches will grow by, as far as its length is planned.
    pub fn cache_growth(&self) -> u64 {
        let config = &self.loaded.files.config;
        let workload = planned_workload(&self.request, self.prefilled, config.context);
        config.cache_growth(self.read().unwrap_or(0) as u32, &workload)
    }

    /// Whether the next step can read its last token, which nothing in flight has read.
    pub fn ready(&self) -> bool {
        self.decoding() && self.read() == Some(self.tokens.len() - 1) && !self.awaits_grammar()
    }

    /// Whether one more token is wanted while one is still in flight.
    pub fn wants_another(&self) -> bool {
        !self.paused && self.written + 1 < self.limit.0
    }

    /// Whether a step in flight reads its last token.
    pub fn in_step(&self) -> bool {
        self.read() == Some(self.tokens.len())
    }

    /// Whether it has to decode alone until a token of it is known.
    pub fn suspect(&self) -> bool {
        self.suspect
    }

    /// Its sequence, to take part in a step.
    pub fn sequence(&mut self) -> &mut Sequence {
        #[cfg(feature = "test-support")]
        if self.job.fails_after.is_some_and(|tokens| self.written >= tokens) {
            panic!("asked for by a test");
        }
        self.sequence.as_mut().expect("its prompt has been read")
    }

    /// Lets it begin anew with the tokens that are known, after a step failed.
    pub fn restart(&mut self) {
        self.suspect = true;
        self.told = self.tokens.len();
        self.drafts.end();
        self.sequence = None;
        self.sampler = None;
    }

    /// What may follow its known tokens, if it is worth a pass.
    pub fn draft(&mut self, tuner: &Tuner) -> Option<Vec<u32>> {
        self.drafts.next(&self.tokens, self.limit.0 - self.written, tuner)
    }

    /// Its drafts, and how many of its tokens are known.
    pub fn drafts(&mut self) -> (&mut Drafts, usize) {
        (&mut self.drafts, self.tokens.len())
    }

    /// Pauses reading at this position too, for a copy that somebody waits for.
    pub fn pause_at(&mut self, position: usize) {
        if let Err(index) = self.boundaries.binary_search(&position) {
            self.boundaries.insert(index, position);
        }
    }

    /// Takes its next token, which is known now; meanwhile the one after it may be in flight already. Returns why it ends, if it
    /// does.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn accept(&mut self, token: u32, logprobs: Option<&Logprobs>) -> Result<Option<LoopEnd>> {
        let loaded = self.loaded.clone();
        let processor = loaded.files.chat()?;
        let logprobs = logprobs.map(|logprobs| logprobs.read(token, processor)).transpose()?;
        self.suspect = false;
        self.written += 1;
        if self.times.record(self.started.elapsed().as_secs_f64()) {
            self.report_prefill(self.prefilled);
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
        if self.repetitions.push(token) {
            self.output.stop_repetition();
            return Ok(Some(LoopEnd::Stopped));
        }
        self.force(self.limit.0 - self.written);
        Ok(self.full().then_some(LoopEnd::Limit))
    }

    /// Whether it has as many tokens as it may have.
    pub fn full(&self) -> bool {
        self.written >= self.limit.0
    }

    /// Appends the tokens that replace what the model would sample here, at most `room`. They take the place of what is in
    /// flight, and the model continues as if it had sampled them.
    fn force(&mut self, room: usize) {
        let forced = self.output.forced_tokens(room);
        self.written += forced.len();
        self.repetitions.extend(&forced);
        self.tokens.extend(forced);
    }

    /// Sends the end of the answer and keeps what of it a later prompt may begin with.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn finish(mut self, end: LoopEnd) -> Result<()> {
        if self.times.prefilled == 0 {
            self.times.prefilled = self.read().unwrap_or(0).saturating_sub(self.cached);
        }
        self.store_end(end)?;
        self.report_unquantized_layers();
        let mut done: Done = self
            .output
            .finish((end, self.limit.1), self.prompt_tokens, self.cached, &self.times, self.load_ms);
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
        let Some(sequence) = &mut self.sequence else { return Ok(()) };
        let read = Prefix {
            tokens: &self.tokens[..sequence.state.offset()],
            images: self.images.as_ref().map_or(&[], |(_, keys)| keys),
        };
        self.loaded
            .prefix_cache
            .borrow_mut()
            .insert(read, self.request.kv_bits, sequence.state.caches())
    }

    /// Stores what has been read in the end. The next prompt will hardly repeat a thought, so with one in it only a stopped
    /// prefill is worth a copy, and an answer that may be continued.
    fn store_end(&mut self, end: LoopEnd) -> Result<()> {
        if self.read().unwrap_or(0) <= self.prefilled || self.output.thinking_tokens() == 0 || end != LoopEnd::Stopped {
            self.store()?;
        }
        Ok(())
    }

    fn report_prefill(&self, read: usize) {
        self.job.send(EngineEvent::Progress {
            stage: Stage::Prefill,
            done: read as u64,
            total: self.prefilled as u64,
        });
    }

    /// Sends a notice if some layers cannot keep their keys in few bits.
    fn report_unquantized_layers(&self) {
        let Some(state) = self.sequence.as_ref().map(|sequence| &sequence.state) else {
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
