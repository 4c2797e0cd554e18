//! One answer: the prompt, what of it is in the prefix cache, the tokens as events.

use checkpoint::memory::Workload;
use prompt::{Prompt, RenderRequest};
use protocol::{Done, EndedBy, EngineEvent, Notice, NoticeCode, Request, Sampling, Stage, Thinking, ThinkingControl};

use crate::answer_prefix::PrefixTokens;
use crate::error::{Error, Result};
use crate::generate::{backend, generate, GenerationObserver, GenerationPlan, LoopEnd, Sequence, SequenceState};
use crate::load::{LoadedModel, ModelFiles};
use crate::output_stream::OutputStream;
use crate::repetition_detector::RepetitionDetector;
use crate::sampler::{Sampler, SamplerConfig};
use crate::tensor::device;
use crate::thinking_budget::ThinkingBudget;
use crate::worker::JobContext;

/// The least distance of two boundaries at which reading pauses: reading fewer tokens again costs less than a pause.
const MIN_BOUNDARY_DISTANCE: usize = 32;

/// Refuses what no model can do, before one is loaded for it.
pub fn check(request: &Request) -> Result<()> {
    // The model's vocabulary is not known yet.
    SamplerConfig::new(&request.sampling, &Sampling::default(), u32::MAX)?;
    if request.max_tokens == Some(0) {
        return Err(Error::BadRequest(
            "an answer of at most 0 tokens was asked for; ask for 1 or more".into(),
        ));
    }
    Ok(())
}

/// How a request is rendered.
pub fn render_request(request: &Request) -> RenderRequest<'_> {
    RenderRequest {
        messages: &request.messages,
        tools: &request.tools,
        thinking: request.thinking,
        add_generation_prompt: true,
    }
}

/// What an answer continues: the prompt, and the answer prefix if it is continued.
pub struct PreparedPrompt {
    prompt: Prompt,
    prefix: Option<PrefixTokens>,
}

/// Renders and tokenises a request. Needs no weights, so that no model is loaded for what cannot be answered.
///
/// # Errors
/// If the request cannot be rendered or no answer fits after it.
pub fn prepare(files: &ModelFiles, request: &Request) -> Result<PreparedPrompt> {
    let prompt = files.processor.prompt(&render_request(request))?;
    if prompt.ids.len() >= files.config.context as usize {
        return Err(Error::ContextFull {
            prompt: prompt.ids.len(),
            context: files.config.context,
        });
    }
    let prefix = PrefixTokens::new(files, request, &prompt)?;
    Ok(PreparedPrompt { prompt, prefix })
}

/// Generates the answer to a request, whose prompt has been prepared, and sends it piece by piece.
pub fn answer(loaded: &LoadedModel, request: &Request, prepared: &PreparedPrompt, load_ms: f64, job: &JobContext) -> Result<Done> {
    let LoadedModel { model, files, info, .. } = loaded;
    let processor = &files.processor;
    let config = SamplerConfig::new(&request.sampling, processor.generation_defaults(), model.vocabulary())?;
    let PreparedPrompt { prompt, prefix } = prepared;
    // A row that the embedding does not have would be read from whatever follows it in memory.
    if let Some(id) = prompt.ids.iter().find(|id| **id >= model.vocabulary()) {
        return Err(Error::BrokenFile {
            file: "tokenizer.json".into(),
            reason: format!("it makes the token {id}, and the model knows {} tokens", model.vocabulary()),
        });
    }
    if let Some(prefix) = prefix {
        prefix.check_revision(&info.revision)?;
        prefix.check_vocabulary(model.vocabulary())?;
    }
    job.send(EngineEvent::Started {
        prompt_tokens: Some(prompt.ids.len() as u32),
        model_revision: Some(info.revision.clone()),
        template_hash: Some(info.template_hash.clone()),
    });

    let parser = processor.parser(prompt, thinks(request.thinking, &info.thinking), &request.stop);
    let thinking = ThinkingBudget::new(processor.thinking_terminator(), request.thinking_budget);
    let mut output = OutputStream::new(parser.with_tools(&request.tools), thinking, job);
    let mut repetitions = RepetitionDetector::default();
    let written = prefix.as_ref().map_or(&[][..], |prefix| &prefix.tokens);
    if let Some(prefix) = prefix {
        output.replay(prefix)?;
        repetitions.extend(&prefix.tokens);
    }

    let ids = &[&prompt.ids, written].concat();
    let mut sampler = Sampler::new(config, ids, &processor.eos_and_newline_ids(), model.vocabulary())?;
    sampler.skip_draws(written.len())?;
    let hit = loaded
        .prefix_cache
        .borrow_mut()
        .lookup(ids, ids.len().saturating_sub(1), request.kv_bits)?;
    let (cached, state) = match hit {
        Some((positions, caches)) => (positions, SequenceState::from_caches(caches, positions)),
        None => (0, SequenceState::new(model, request.kv_bits)),
    };
    let boundaries = pauses(processor.boundaries(&render_request(request), prompt), cached);
    let room = files.config.context as usize - ids.len();
    let (limit, rule) = match request.max_tokens {
        Some(most) if (most as usize) < room => (most as usize, EndedBy::TokenLimit),
        _ => (room, EndedBy::Context),
    };
    let plan = GenerationPlan {
        prompt: ids,
        boundaries: &boundaries,
        limit,
    };
    let mut observer = AnswerObserver {
        loaded,
        request,
        job,
        tokens: ids.clone(),
        output,
        repetitions,
        prefilled: ids.len(),
    };
    let mut sequence = Sequence::new(model, state, sampler);
    let (end, times) = generate(&mut sequence, &plan, &mut observer)?;
    observer.store_end(end, sequence.state())?;
    observer.report_unquantized_layers(sequence.state());
    Ok(observer.output.finish((end, rule), prompt.ids.len(), cached, &times, load_ms))
}

/// The boundaries at which reading pauses for a copy, from `start` on. A pause costs one more forward pass, so tokens close to
/// the last copy are read again instead; the last boundary costs nothing, because the token that is left is read by itself
/// anyway.
fn pauses(boundaries: Vec<usize>, start: usize) -> Vec<usize> {
    let (mut last_kept, end) = (start, boundaries.last().copied());
    let mut kept = boundaries;
    kept.retain(|boundary| {
        let worth = *boundary >= last_kept + MIN_BOUNDARY_DISTANCE || Some(*boundary) == end;
        if worth {
            last_kept = *boundary;
        }
        worth
    });
    kept
}

/// Sends the output of a generation and puts copies of what was read into the prefix cache.
struct AnswerObserver<'a> {
    loaded: &'a LoadedModel,
    request: &'a Request,
    job: &'a JobContext,
    /// The prompt and what followed, the end token included.
    tokens: Vec<u32>,
    output: OutputStream<'a>,
    repetitions: RepetitionDetector,
    /// Tokens of the prompt and of the answer prefix.
    prefilled: usize,
}

impl AnswerObserver<'_> {
    fn store(&self, state: &mut SequenceState) -> Result<()> {
        let tokens = &self.tokens[..state.offset()];
        self.loaded
            .prefix_cache
            .borrow_mut()
            .insert(tokens, self.request.kv_bits, state.caches())
    }

    /// Stores what has been read in the end. The next prompt will hardly repeat a thought, so with one in it only a stopped
    /// prefill is worth a copy, and an answer that may be continued.
    fn store_end(&self, end: LoopEnd, state: &mut SequenceState) -> Result<()> {
        if state.offset() <= self.prefilled || self.output.thinking_tokens() == 0 || end != LoopEnd::Stopped {
            self.store(state)?;
        }
        Ok(())
    }

    /// Sends a notice if some layers cannot keep their keys in few bits.
    fn report_unquantized_layers(&self, state: &SequenceState) {
        let unquantized = state.unquantized_layers();
        if self.request.kv_bits.is_some() && state.offset() > 0 && unquantized > 0 {
            let message =
                format!("{unquantized} layers keep their keys and values whole: they have no heads whose width is a multiple of 32");
            let notice = Notice::new(NoticeCode::KvBits, message).with("layers", unquantized);
            self.job.send(EngineEvent::Notice(notice));
        }
    }
}

impl GenerationObserver for AnswerObserver<'_> {
    fn cancelled(&self) -> bool {
        self.job.cancelled()
    }

    fn check_memory(&self, from: usize, to: usize) -> Result<()> {
        let Some(guard) = self.job.shared.memory_guard() else {
            return Ok(());
        };
        let workload = Workload {
            context: to as u32,
            kv_bits: self.request.kv_bits,
            backend: backend(),
            prefix_cached: false,
        };
        let more = self.loaded.files.config.additional_memory(from as u32, &workload);
        guard.before_chunk(more, device().name()).map_err(Error::MemoryShort)
    }

    fn on_prefill(&self, read: usize) {
        self.job.send(EngineEvent::Progress {
            stage: Stage::Prefill,
            done: read as u64,
            total: self.prefilled as u64,
        });
    }

    fn on_boundary(&mut self, state: &mut SequenceState) -> Result<()> {
        self.store(state)
    }

    fn on_token(&mut self, id: u32) -> bool {
        self.tokens.push(id);
        if let Some(stop) = self.loaded.files.processor.stops().ids.get(&id) {
            self.output.stop_token(id, stop);
            return false;
        }
        let more = self.output.push(id);
        if more && self.repetitions.push(id) {
            self.output.stop_repetition();
            return false;
        }
        more
    }

    fn forced_tokens(&mut self, room: usize) -> Vec<u32> {
        let forced = self.output.forced_tokens(room);
        self.tokens.extend(&forced);
        self.repetitions.extend(&forced);
        forced
    }
}

/// Whether a model is expected to think, given the switch and what its template can do.
fn thinks(asked: Option<Thinking>, control: &ThinkingControl) -> bool {
    match (control, asked) {
        (ThinkingControl::Switch { .. }, Some(asked)) => asked != Thinking::Off,
        (ThinkingControl::Switch { default_on }, None) => *default_on,
        (ThinkingControl::Levels { off: true, .. }, Some(Thinking::Off)) => false,
        (ThinkingControl::Levels { default, .. }, None) => *default != Some(Thinking::Off),
        // Even if nothing can be switched off, a thought is shown as one.
        (ThinkingControl::Levels { .. } | ThinkingControl::Always | ThinkingControl::Never | ThinkingControl::ByRequest { .. }, _) => true,
    }
}
