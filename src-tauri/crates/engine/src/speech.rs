//! Token ids as events.

use prompt::{ChannelParser, Piece, StopToken};
use protocol::{Channel, Done, EndedBy, EngineEvent, Notice, Stop, ToolCall, Usage};

use crate::generate::{End, Times};
use crate::worker::Report;

/// Turns the token ids of an answer into events.
pub struct Speech<'a> {
    parser: ChannelParser,
    report: &'a Report,
    /// Ids that no event has carried yet.
    unsent: Vec<u32>,
    tokens: u32,
    calls: u32,
    /// The rule by which no more tokens are wanted.
    ended_by: Option<EndedBy>,
}

impl<'a> Speech<'a> {
    /// Nothing said yet.
    pub fn new(parser: ChannelParser, report: &'a Report) -> Self {
        Self {
            parser,
            report,
            unsent: Vec::new(),
            tokens: 0,
            calls: 0,
            ended_by: None,
        }
    }

    /// How many tokens of reasoning there were.
    pub fn thinking_tokens(&self) -> u32 {
        self.parser.thinking_tokens()
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

    /// Says what was held back and puts the end together. `cached` tokens of the prompt were read before. An answer that
    /// ran away counts as cut off (`length`): the model did not end it.
    pub fn end(mut self, end: End, prompt_tokens: usize, cached: usize, times: &Times, load_ms: f64) -> Done {
        let rest = self.parser.finish();
        self.say(rest);
        let ended_by = match end {
            End::Cancelled => EndedBy::Cancelled,
            End::Limit => EndedBy::TokenLimit,
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
