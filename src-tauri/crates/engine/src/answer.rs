//! One answer: the prompt, what of it is known already, the tokens as events.

use prompt::config::memory::Wanted;
use prompt::{Prompt, RenderRequest};
use protocol::{Done, EndedBy, EngineEvent, Notice, Request, Sampling, Stage, Thinking, ThinkingControl};

use crate::begun::Beginning;
use crate::error::{Error, Result};
use crate::generate::{backend, run, End, Listener, Plan, Reading, Sequence};
use crate::load::{LoadedModel, Opened};
use crate::repetition::Repetition;
use crate::sample::{Choice, Sampler};
use crate::speech::Speech;
use crate::tensor::device;
use crate::thoughts::Thoughts;
use crate::worker::Report;

/// Tokens that are rather read again than paused for.
const WORTH_A_PAUSE: usize = 32;

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

/// How a request is rendered.
pub fn render_request(request: &Request) -> RenderRequest<'_> {
    RenderRequest {
        messages: &request.messages,
        tools: &request.tools,
        thinking: request.thinking,
        add_generation_prompt: true,
    }
}

/// What an answer follows: the prompt, and what was written of the answer before.
pub struct Asked {
    prompt: Prompt,
    begun: Option<Beginning>,
}

/// What the answer to a request follows, refused where no answer fits behind it. Needs no weights, so that nothing is loaded for
/// what cannot be answered.
pub fn asked(opened: &Opened, request: &Request) -> Result<Asked> {
    let prompt = opened.dialect.prompt(&render_request(request))?;
    if prompt.ids.len() >= opened.config.context as usize {
        return Err(Error::ContextFull {
            prompt: prompt.ids.len(),
            context: opened.config.context,
        });
    }
    let begun = Beginning::of(opened, request, &prompt)?;
    Ok(Asked { prompt, begun })
}

/// Makes the answer to a request, which asks this, and reports it piece by piece.
pub fn answer(loaded: &LoadedModel, request: &Request, asked: &Asked, load_ms: f64, report: &Report) -> Result<Done> {
    let LoadedModel { model, opened, info, .. } = loaded;
    let dialect = &opened.dialect;
    let choice = Choice::new(&request.sampling, dialect.generation_defaults(), model.vocabulary())?;
    let Asked { prompt, begun } = asked;
    // A row that the embedding does not have would be read from whatever lies behind it in memory.
    if let Some(id) = prompt.ids.iter().find(|id| **id >= model.vocabulary()) {
        return Err(Error::BrokenFile {
            file: "tokenizer.json".into(),
            reason: format!("it makes the token {id}, and the model knows {} tokens", model.vocabulary()),
        });
    }
    if let Some(begun) = begun {
        begun.check_revision(&info.revision)?;
        begun.check_vocabulary(model.vocabulary())?;
    }
    report.send(EngineEvent::Started {
        prompt_tokens: prompt.ids.len() as u32,
        model_revision: info.revision.clone(),
        template_hash: info.template_hash.clone(),
    });

    let parser = dialect.parser(prompt, thinks(request.thinking, &info.thinking), &request.stop);
    let thoughts = Thoughts::new(dialect.closing(), request.thinking_budget);
    let mut speech = Speech::new(parser.with_tools(&request.tools), thoughts, report);
    let mut repetition = Repetition::default();
    let written = begun.as_ref().map_or(&[][..], |begun| &begun.tokens);
    if let Some(begun) = begun {
        speech.resume(begun)?;
        repetition.go_on(&begun.tokens);
    }

    let ids = &[&prompt.ids, written].concat();
    let mut sampler = Sampler::new(choice, ids, &dialect.eos_and_newline_ids(), model.vocabulary())?;
    sampler.pass(written.len())?;
    let known = loaded
        .snapshots
        .borrow_mut()
        .resume(ids, ids.len().saturating_sub(1), request.kv_bits)?;
    let (cached, reading) = match known {
        Some((positions, caches)) => (positions, Reading::resumed(caches, positions)),
        None => (0, Reading::new(model, request.kv_bits)),
    };
    let boundaries = worth_a_pause(dialect.boundaries(&render_request(request), prompt), cached);
    let room = opened.config.context as usize - ids.len();
    let (limit, rule) = match request.max_tokens {
        Some(most) if (most as usize) < room => (most as usize, EndedBy::TokenLimit),
        _ => (room, EndedBy::Context),
    };
    let plan = Plan {
        prompt: ids,
        boundaries: &boundaries,
        limit,
    };
    let mut hearer = Hearer {
        loaded,
        request,
        report,
        tokens: ids.clone(),
        speech,
        repetition,
        known: ids.len(),
    };
    let mut sequence = Sequence::new(model, reading, sampler);
    let (end, times) = run(&mut sequence, &plan, &mut hearer)?;
    hearer.keep_end(end, sequence.reading())?;
    hearer.tell_plain_layers(sequence.reading());
    Ok(hearer.speech.end((end, rule), prompt.ids.len(), cached, &times, load_ms))
}

/// The boundaries at which a prompt is paused that is read from `start` on. A pause costs a forward pass more, so what is
/// near the last place to go on from is read again instead; the last one costs nothing, because the token that is left is
/// read by itself anyway.
fn worth_a_pause(boundaries: Vec<usize>, start: usize) -> Vec<usize> {
    let (mut last_kept, end) = (start, boundaries.last().copied());
    let mut kept = boundaries;
    kept.retain(|boundary| {
        let worth = *boundary >= last_kept + WORTH_A_PAUSE || Some(*boundary) == end;
        if worth {
            last_kept = *boundary;
        }
        worth
    });
    kept
}

/// Passes on what a run says, and keeps copies of what it reads.
struct Hearer<'a> {
    loaded: &'a LoadedModel,
    request: &'a Request,
    report: &'a Report,
    /// The prompt and what followed, the end token included.
    tokens: Vec<u32>,
    speech: Speech<'a>,
    repetition: Repetition,
    /// Tokens of the prompt and of what the answer was begun with.
    known: usize,
}

impl Hearer<'_> {
    fn keep(&self, reading: &mut Reading) -> Result<()> {
        let tokens = &self.tokens[..reading.offset()];
        self.loaded
            .snapshots
            .borrow_mut()
            .keep(tokens, self.request.kv_bits, reading.caches())
    }

    /// Keeps what has been read in the end. Where a thought is in it, the next prompt will hardly repeat that, so then only what
    /// a stopped prefill has read is worth a copy, and an answer that may go on.
    fn keep_end(&self, end: End, reading: &mut Reading) -> Result<()> {
        if reading.offset() <= self.known || self.speech.thinking_tokens() == 0 || end != End::Refused {
            self.keep(reading)?;
        }
        Ok(())
    }

    /// Says where keys could not be kept in few bits.
    fn tell_plain_layers(&self, reading: &Reading) {
        let plain = reading.plain_layers();
        if self.request.kv_bits.is_some() && reading.offset() > 0 && plain > 0 {
            self.report.send(EngineEvent::Notice(Notice {
                code: "kv_bits".into(),
                message: format!("{plain} layers keep their keys and values whole: they have no heads whose width is a multiple of 32"),
            }));
        }
    }
}

impl Listener for Hearer<'_> {
    fn cancelled(&self) -> bool {
        self.report.cancelled()
    }

    fn room(&self, from: usize, to: usize) -> Result<()> {
        let Some(watch) = self.report.shared.watch() else { return Ok(()) };
        let wanted = Wanted {
            context: to as u32,
            kv_bits: self.request.kv_bits,
            backend: backend(),
            kept: false,
        };
        let more = self.loaded.opened.config.growth(from as u32, &wanted);
        watch.before_chunk(more, device().name()).map_err(Error::MemoryShort)
    }

    fn progress(&self, read: usize) {
        self.report.send(EngineEvent::Progress {
            stage: Stage::Prefill,
            done: read as u64,
            total: self.known as u64,
        });
    }

    fn boundary(&mut self, reading: &mut Reading) -> Result<()> {
        self.keep(reading)
    }

    fn token(&mut self, id: u32) -> bool {
        self.tokens.push(id);
        if let Some(stop) = self.loaded.opened.dialect.stops().ids.get(&id) {
            self.speech.ends_with(id, stop);
            return false;
        }
        let more = self.speech.push(id);
        if more && self.repetition.push(id) {
            self.speech.runs_away();
            return false;
        }
        more
    }

    fn said_for_it(&mut self, room: usize) -> Vec<u32> {
        let said = self.speech.end_thought(room);
        self.tokens.extend(&said);
        self.repetition.go_on(&said);
        said
    }
}

/// Whether a model is expected to think, given the switch and what its template can do.
fn thinks(asked: Option<Thinking>, control: &ThinkingControl) -> bool {
    match (control, asked) {
        (ThinkingControl::Switch { .. }, Some(asked)) => asked != Thinking::Off,
        (ThinkingControl::Switch { default_on }, None) => *default_on,
        (ThinkingControl::Levels { off: true, .. }, Some(Thinking::Off)) => false,
        (ThinkingControl::Levels { default, .. }, None) => *default != Some(Thinking::Off),
        // Where nothing can be switched off, a thought that comes all the same is shown as one.
        (ThinkingControl::Levels { .. } | ThinkingControl::Always | ThinkingControl::Never | ThinkingControl::ByRequest { .. }, _) => true,
    }
}
