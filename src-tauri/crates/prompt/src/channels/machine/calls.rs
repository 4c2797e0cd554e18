//! Calls of tools, between markers, after a header or without anything.

use protocol::NoticeCode;

use super::{Event, Machine, Piece, Span, State};
use crate::tool_calls::{self, BareCall, ParsedCalls};

impl Machine {
    /// A call whose words begin at this place; the tool, if a header named it.
    pub(super) fn open_call(&mut self, name: Option<String>, at: usize) {
        self.held.clear();
        let body = Span::new("", at);
        self.state = State::Call { body, name };
    }

    /// Whether a call is open that lacks nothing but a closing marker, which some formats never write.
    pub(super) fn call_is_whole(&self) -> bool {
        match &self.state {
            State::Call { body, name: None } => tool_calls::read(&body.text, &self.tools, true).is_some(),
            _ => false,
        }
    }

    pub(super) fn end_call(&mut self, closed: bool) {
        let State::Call { body, name } = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        let reading = match &name {
            Some(name) => tool_calls::read_arguments(name, &body.text),
            None => tool_calls::read(&body.text, &self.tools, closed),
        };
        match reading {
            Some(reading) => self.call(&body, reading),
            None => {
                self.say(&body.text, body.at);
                self.broken_call(&body);
                self.boundary();
            }
        }
    }

    pub(super) fn call(&mut self, body: &Span, reading: ParsedCalls) {
        let end = body.at + reading.end;
        for (name, arguments) in reading.calls {
            let piece = Piece::ToolCall { name, arguments };
            let source = body.at..end;
            self.events.push(Event { piece, source });
        }
        self.boundary();
        if !body.text[reading.end..].trim().is_empty() {
            self.state = State::Answer;
            self.say(&body.text[reading.end..], end);
        }
    }

    pub(super) fn broken_call(&mut self, body: &Span) {
        let message = "The model began to call a tool and did not write it in full; what it wrote is shown as text.";
        self.notice(NoticeCode::BrokenToolCall, message, body.at + body.text.len());
    }

    /// Decides as soon as it can whether the answer is a call without markers.
    pub(super) fn bare(&mut self) {
        let State::BareCall { body, sure } = &mut self.state else { return };
        if *sure {
            return;
        }
        match tool_calls::bare(&body.text, &self.tools) {
            BareCall::Yes => *sure = true,
            BareCall::Maybe => {}
            BareCall::No => {
                let body = body.take();
                self.state = State::Answer;
                self.begin_words();
                self.speak(&body.text, body.at);
            }
        }
    }

    pub(super) fn end_bare(&mut self) {
        let State::BareCall { body, sure } = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        let reading = Some(())
            .filter(|()| sure)
            .and_then(|()| tool_calls::read(&body.text, &self.tools, false));
        match reading {
            Some(reading) => {
                self.held.clear();
                self.call(&body, reading);
            }
            None => {
                self.begin_words();
                self.speak(&body.text, body.at);
                if sure {
                    self.broken_call(&body);
                }
            }
        }
    }
}
