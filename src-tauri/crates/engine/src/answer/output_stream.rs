//! Token ids as events.

use std::rc::Rc;

use prompt::{ChannelParser, Piece, StopToken};
use protocol::{Content, Done, EndedBy, EngineEvent, FinishReason, Notice, NoticeCode, TokenLogprobs, ToolCall, Usage};

use crate::answer::constraint::OutputConstraint;
use crate::answer::job::JobContext;
use crate::answer::prefix::PrefixTokens;
use crate::answer::thinking_budget::{ForcedEnd, ThinkingBudget};
use crate::error::{Error, Result};
use crate::sequence::sampler::Mask;
use crate::sequence::{GenerationTimes, LoopEnd};

/// A piece of the parser, as the rest of the app knows it.
enum Read {
    Content(Content),
    Notice(Notice),
}

/// Turns the token ids of an answer into events.
pub struct OutputStream {
    parser: ChannelParser,
    /// The constraint of the answer, if there is one.
    constraint: Option<Box<dyn OutputConstraint>>,
    job: Rc<JobContext>,
    /// Ids that no event has carried yet.
    unsent: Vec<u32>,
    /// How likely those were.
    logprobs: Vec<TokenLogprobs>,
    tokens: u32,
    calls: u32,
    thinking: ThinkingBudget,
    /// The rule by which no more tokens are wanted.
    ended_by: Option<EndedBy>,
}

impl OutputStream {
    /// Nothing sent yet.
    pub fn new(parser: ChannelParser, thinking: ThinkingBudget, job: Rc<JobContext>) -> Self {
        Self {
            parser,
            constraint: None,
            job,
            unsent: Vec::new(),
            logprobs: Vec::new(),
            tokens: 0,
            calls: 0,
            thinking,
            ended_by: None,
        }
    }

    /// Limits the answer.
    pub fn limited(self, constraint: Option<Box<dyn OutputConstraint>>) -> Self {
        Self { constraint, ..self }
    }

    /// True if the next token is limited by those before it.
    pub fn is_limited(&self) -> bool {
        self.constraint.is_some()
    }

    /// True if the mask is not known yet, because a grammar is still being compiled.
    pub fn awaits_grammar(&self) -> bool {
        self.constraint
            .as_ref()
            .is_some_and(|constraint| constraint.compiling())
    }

    /// The tokens that may come next; `None` if all of them may.
    ///
    /// # Errors
    /// If what was written does not follow the grammar.
    pub fn mask(&mut self) -> Result<Option<Mask>> {
        let mask = self.constraint.as_mut().map(|constraint| constraint.mask(&self.parser));
        mask.transpose().map(Option::flatten)
    }

    fn parse(&mut self, id: u32) -> Vec<Piece> {
        match &mut self.constraint {
            Some(constraint) => constraint.read(&mut self.parser, id),
            None => self.parser.push(id),
        }
    }

    /// How many tokens of reasoning there were.
    pub fn thinking_tokens(&self) -> u32 {
        self.parser.thinking_tokens()
    }

    /// Replays the prefix of an answer that is continued and sends its content.
    ///
    /// # Errors
    /// [`Error::BadRequest`] if a stop text is in it.
    pub fn replay(&mut self, prefix: &PrefixTokens) -> Result<()> {
        let mut pieces = Vec::new();
        for (at, id) in prefix.tokens.iter().enumerate() {
            if prefix.thinking_ended && self.parser.is_thinking() {
                self.thinking.find_ending(&mut self.parser, &prefix.tokens[at..]);
            }
            pieces.extend(self.parse(*id));
        }
        if let Some(text) = self.parser.stop_text() {
            return Err(Error::BadRequest(format!(
                "this answer holds the stop text {text:?}, which ended it, so it cannot be continued; remove the stop text or ask again"
            )));
        }
        let mut notices = Vec::new();
        if prefix.thinking_ended {
            notices.extend(self.thinking.was_ended(&mut self.parser));
            self.job.send(EngineEvent::ThinkingEnded);
        }
        let mut parts: Vec<Content> = Vec::new();
        for piece in pieces {
            match self.read(piece) {
                Read::Content(content) => Content::push(&mut parts, content),
                Read::Notice(notice) => notices.push(notice),
            }
        }
        self.tokens = prefix.tokens.len() as u32;
        self.job.send(EngineEvent::Continued {
            parts,
            notices,
            tokens: prefix.tokens.clone(),
        });
        Ok(())
    }

    /// Ends the current thought if the user asked for it or its budget is spent; returns the tokens that end it, at
    /// most `room`.
    pub fn forced_tokens(&mut self, room: usize) -> Vec<u32> {
        let asked = self.job.end_thinking.is_asked();
        if room == 0 {
            return Vec::new();
        }
        let Some(ForcedEnd { mut ids, notice }) = self.thinking.end(&mut self.parser, asked) else {
            return Vec::new();
        };
        ids.truncate(room);
        for id in &ids {
            self.push(*id);
        }
        if let Some(notice) = notice {
            self.job.send(EngineEvent::ThinkingEnded);
            self.job.send(EngineEvent::Notice(notice));
        }
        ids
    }

    /// A piece of the parser as the rest of the app knows it.
    fn read(&mut self, piece: Piece) -> Read {
        match piece {
            Piece::Text(text) => Read::Content(Content::Text { text }),
            Piece::Thinking(text) => Read::Content(Content::Thinking { text }),
            Piece::ToolCall { name, arguments } => {
                self.calls += 1;
                let call = ToolCall::new(name, arguments);
                Read::Content(Content::ToolCall { call })
            }
            Piece::Notice(notice) => Read::Notice(notice),
        }
    }

    /// Says how likely the next token was, together with what carries it.
    pub fn report(&mut self, logprobs: Option<TokenLogprobs>) {
        self.logprobs.extend(logprobs);
    }

    /// Takes the next token; the result is whether more are wanted.
    pub fn push(&mut self, id: u32) -> bool {
        self.tokens += 1;
        self.unsent.push(id);
        let pieces = self.parse(id);
        self.send(pieces);
        if let Some(text) = self.parser.stop_text() {
            self.ended_by = Some(EndedBy::StopText { text: text.to_owned() });
        }
        self.ended_by.is_none()
    }

    /// Notes that the model ended the answer with this token.
    pub fn stop_token(&mut self, id: u32, stop: &StopToken) {
        self.ended_by = Some(EndedBy::StopToken {
            token: id,
            text: stop.text.clone(),
            sources: stop.sources.clone(),
        });
    }

    /// Reports that the answer repeats itself; its user decides what becomes of it.
    pub fn notice_repetition(&self) {
        let notice = Notice::new(NoticeCode::Repeats, "The answer repeats itself.");
        self.job.send(EngineEvent::Notice(notice));
    }

    /// Notes that the answer repeats itself without end and is ended for that reason.
    pub fn stop_repetition(&mut self) {
        self.ended_by = Some(EndedBy::Repetition);
        let message = "The answer kept repeating itself, so it was ended here.";
        self.job
            .send(EngineEvent::Notice(Notice::new(NoticeCode::Repetition, message)));
    }

    fn send(&mut self, mut pieces: Vec<Piece>) {
        // Clients that hide markers have to hear of a call that is none before its text.
        for at in 1..pieces.len() {
            if matches!(&pieces[at], Piece::Notice(notice) if notice.code.shows_a_call()) {
                pieces.swap(at - 1, at);
            }
        }
        let thinking_tokens = Some(self.parser.thinking_tokens());
        for piece in pieces {
            let event = match self.read(piece) {
                Read::Content(content) => {
                    self.send_logprobs();
                    EngineEvent::Delta {
                        content,
                        tokens: std::mem::take(&mut self.unsent),
                        thinking_tokens,
                    }
                }
                Read::Notice(notice) => EngineEvent::Notice(notice),
            };
            self.job.send(event);
        }
    }

    fn send_logprobs(&mut self) {
        if !self.logprobs.is_empty() {
            self.job.send(EngineEvent::Logprobs(std::mem::take(&mut self.logprobs)));
        }
    }

    /// Sends what was held back and puts the end together. `cached` tokens were in the prefix cache; `limit` is the
    /// rule that set the plan's limit. An answer that repeats itself counts as cut off (`length`): the model did not
    /// end it.
    pub fn finish(
        mut self,
        (end, limit): (LoopEnd, EndedBy),
        prompt_tokens: usize,
        cached: usize,
        times: &GenerationTimes,
        load_ms: f64,
    ) -> Done {
        let rest = self.parser.finish();
        self.send(rest);
        self.send_logprobs();
        let ended_by = match end {
            LoopEnd::Cancelled => EndedBy::Cancelled,
            LoopEnd::Limit => limit,
            LoopEnd::Stopped => self.ended_by.unwrap_or(EndedBy::Cancelled),
        };
        let stop = match &ended_by {
            EndedBy::Cancelled => FinishReason::Cancelled,
            EndedBy::TokenLimit | EndedBy::Context | EndedBy::Repetition => FinishReason::Length,
            EndedBy::StopToken { .. } | EndedBy::StopText { .. } | EndedBy::Endpoint { .. } if self.calls > 0 => {
                FinishReason::ToolCalls
            }
            EndedBy::StopToken { .. } | EndedBy::StopText { .. } | EndedBy::Endpoint { .. } => FinishReason::Stop,
        };
        let usage = Usage {
            prompt_tokens: prompt_tokens as u32,
            cached_tokens: cached as u32,
            prefilled_tokens: times.prefilled as u32,
            completion_tokens: self.tokens,
            thinking_tokens: Some(self.parser.thinking_tokens()),
            speculation: None,
        };
        Done {
            finish_reason: stop,
            ended_by,
            usage: Some(usage),
            timing: times.timing(load_ms),
            tokens: self.unsent,
        }
    }
}
