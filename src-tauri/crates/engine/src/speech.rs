//! Token ids as events.

use prompt::{ChannelParser, Piece, StopToken};
use protocol::{Channel, Done, EndedBy, EngineEvent, Notice, PartKind, Stop, ToolCall, Usage};

use crate::begun::Beginning;
use crate::error::{Error, Result};
use crate::generate::{End, Times};
use crate::thoughts::{Ending, Thoughts};
use crate::worker::Report;

/// Turns the token ids of an answer into events.
pub struct Speech<'a> {
    parser: ChannelParser,
    report: &'a Report,
    /// Ids that no event has carried yet.
    unsent: Vec<u32>,
    tokens: u32,
    calls: u32,
    thoughts: Thoughts<'a>,
    /// The rule by which no more tokens are wanted.
    ended_by: Option<EndedBy>,
}

impl<'a> Speech<'a> {
    /// Nothing said yet.
    pub fn new(parser: ChannelParser, thoughts: Thoughts<'a>, report: &'a Report) -> Self {
        Self {
            parser,
            report,
            unsent: Vec::new(),
            tokens: 0,
            calls: 0,
            thoughts,
            ended_by: None,
        }
    }

    /// How many tokens of reasoning there were.
    pub fn thinking_tokens(&self) -> u32 {
        self.parser.thinking_tokens()
    }

    /// Takes over an answer that was begun, and tells what it says.
    pub fn resume(&mut self, begun: &Beginning) -> Result<()> {
        let mut pieces = Vec::new();
        for (at, id) in begun.tokens.iter().enumerate() {
            if begun.thinking_ended && self.parser.is_thinking() {
                self.thoughts.find_ending(&mut self.parser, &begun.tokens[at..]);
            }
            pieces.extend(self.parser.push(*id));
        }
        if let Some(text) = self.parser.stop_text() {
            return Err(Error::BadRequest(format!(
                "this answer has ended, because the stop text {text:?} is in it, so there is nothing to go on with; take it off the stop \
                 texts or ask again"
            )));
        }
        let mut notices = Vec::new();
        if begun.thinking_ended {
            notices.extend(self.thoughts.was_ended(&mut self.parser));
        }
        let mut said: Vec<PartKind> = Vec::new();
        for piece in pieces {
            match (said.last_mut(), piece) {
                (Some(PartKind::Text { text }), Piece::Text(more)) | (Some(PartKind::Thinking { text }), Piece::Thinking(more)) => {
                    text.push_str(&more);
                }
                (_, Piece::Text(text)) => said.push(PartKind::Text { text }),
                (_, Piece::Thinking(text)) => said.push(PartKind::Thinking { text }),
                (_, Piece::ToolCall { name, arguments }) => {
                    let call = self.call(name, arguments);
                    said.push(PartKind::ToolCall { call });
                }
                (_, Piece::Notice { code, message }) => notices.push(Notice { code, message }),
            }
        }
        self.tokens = begun.tokens.len() as u32;
        self.report.send(EngineEvent::Resumed {
            said,
            notices,
            tokens: begun.tokens.clone(),
        });
        Ok(())
    }

    /// Ends the thought that runs, where somebody asked for it or its budget is spent. The result, at most `room` ids, is what
    /// has been said for the model.
    pub fn end_thought(&mut self, room: usize) -> Vec<u32> {
        let asked = self.report.end_thinking.is_asked();
        if room == 0 {
            return Vec::new();
        }
        let Some(Ending { mut ids, notice }) = self.thoughts.end(&mut self.parser, asked) else {
            return Vec::new();
        };
        ids.truncate(room);
        for id in &ids {
            self.push(*id);
        }
        if let Some(notice) = notice {
            self.report.send(EngineEvent::Notice(notice));
        }
        ids
    }

    fn call(&mut self, name: String, arguments: serde_json::Value) -> ToolCall {
        let id = format!("call_{}", self.calls);
        self.calls += 1;
        ToolCall { id, name, arguments }
    }

    /// Takes the next token; the result is whether more are wanted.
    pub fn push(&mut self, id: u32) -> bool {
        self.tokens += 1;
        self.unsent.push(id);
        let pieces = self.parser.push(id);
        self.say(pieces);
        if let Some(text) = self.parser.stop_text() {
            self.ended_by = Some(EndedBy::StopText { text: text.to_owned() });
        }
        self.ended_by.is_none()
    }

    /// Notes that the model ended the answer with this token.
    pub fn ends_with(&mut self, id: u32, stop: &StopToken) {
        self.ended_by = Some(EndedBy::StopToken {
            token: id,
            text: stop.text.clone(),
            sources: stop.sources.clone(),
        });
    }

    /// Notes that the answer repeats itself and is ended for that.
    pub fn runs_away(&mut self) {
        self.ended_by = Some(EndedBy::Repetition);
        self.report.send(EngineEvent::Notice(Notice {
            code: "repetition".into(),
            message: "The answer kept repeating itself, so it was ended here.".into(),
        }));
    }

    fn say(&mut self, pieces: Vec<Piece>) {
        let thinking_tokens = self.parser.thinking_tokens();
        for piece in pieces {
            let event = match piece {
                Piece::Text(text) => EngineEvent::Delta {
                    channel: Channel::Text,
                    text,
                    tokens: std::mem::take(&mut self.unsent),
                    thinking_tokens,
                },
                Piece::Thinking(text) => EngineEvent::Delta {
                    channel: Channel::Thinking,
                    text,
                    tokens: std::mem::take(&mut self.unsent),
                    thinking_tokens,
                },
                Piece::ToolCall { name, arguments } => EngineEvent::ToolCall {
                    call: self.call(name, arguments),
                    tokens: std::mem::take(&mut self.unsent),
                },
                Piece::Notice { code, message } => EngineEvent::Notice(Notice { code, message }),
            };
            self.report.send(event);
        }
    }

    /// Says what was held back and puts the end together. `cached` tokens were read before; `limit` is the rule behind the run's
    /// limit. An answer that ran away counts as cut off (`length`): the model did not end it.
    pub fn end(mut self, (end, limit): (End, EndedBy), prompt_tokens: usize, cached: usize, times: &Times, load_ms: f64) -> Done {
        let rest = self.parser.finish();
        self.say(rest);
        let ended_by = match end {
            End::Cancelled => EndedBy::Cancelled,
            End::Limit => limit,
            End::Refused => self.ended_by.unwrap_or(EndedBy::Cancelled),
        };
        let stop = match &ended_by {
            EndedBy::Cancelled => Stop::Cancelled,
            EndedBy::TokenLimit | EndedBy::Context | EndedBy::Repetition => Stop::Length,
            EndedBy::StopToken { .. } | EndedBy::StopText { .. } if self.calls > 0 => Stop::ToolCalls,
            EndedBy::StopToken { .. } | EndedBy::StopText { .. } => Stop::Stop,
        };
        let usage = Usage {
            prompt_tokens: prompt_tokens as u32,
            cached_tokens: cached as u32,
            prefilled_tokens: times.prefilled() as u32,
            completion_tokens: self.tokens,
            thinking_tokens: self.parser.thinking_tokens(),
        };
        Done {
            stop,
            ended_by,
            usage,
            timing: times.timing(load_ms),
            tokens: self.unsent,
        }
    }
}
