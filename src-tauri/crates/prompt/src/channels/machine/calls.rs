//! Calls of tools, between markers, after a header or without anything.

use protocol::{Notice, NoticeCode};

use super::{Doubt, Event, Machine, MarkerKind, Piece, Span, State};
use crate::tool_calls::{self, BareCall, OpenCall, ParsedCalls, Surroundings};

/// A call that is being written.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The tool, if a header named it.
    name: Option<String>,
    /// The marker that opened it.
    opening: &'static str,
    body: Span,
    open: OpenCall,
    /// Whether the body begins with the first words of a call, because its opening marker is missing.
    unwrapped: bool,
    /// How often it was read where a marker might have ended it, and how long it was then.
    readings: u32,
    read_to: usize,
}

/// A call that did not end at so many markers is read anew only once it is twice as long, so that all readings together cost no more than a few.
const READINGS: u32 = 16;

impl Call {
    /// The call of a tool that a header named; its arguments begin here.
    pub(super) fn named(name: String, at: usize) -> Self {
        Self {
            name: Some(name),
            open: OpenCall::arguments(),
            ..Self::marked("", at)
        }
    }

    /// After an opening marker that begins here.
    fn marked(opening: &'static str, at: usize) -> Self {
        Self {
            name: None,
            opening,
            body: Span::new("", at + opening.len()),
            open: OpenCall::new(),
            unwrapped: false,
            readings: 0,
            read_to: 0,
        }
    }

    /// With its first words, which begin here.
    fn unwrapped(head: &str, at: usize) -> Self {
        let mut call = Self {
            open: OpenCall::unwrapped(),
            unwrapped: true,
            ..Self::marked("", at)
        };
        call.push(head, at);
        call
    }

    pub(super) fn push(&mut self, text: &str, at: usize) {
        self.body.push(text, at);
        self.open.advance(&self.body.text);
    }

    /// Whether a marker would stand in a text of the call.
    pub(super) fn is_quoted(&self) -> bool {
        self.open.quoted(&self.body.text)
    }

    /// Whether everything that was opened in the call is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.open.is_closed()
    }

    /// Whether no call is written like this.
    pub(super) fn is_hopeless(&self) -> bool {
        self.open.is_hopeless()
    }

    /// Whether it is to be read where a marker may end it.
    fn is_worth_reading(&mut self) -> bool {
        let worth = self.readings < READINGS || self.body.text.len() >= 2 * self.read_to;
        if worth {
            self.readings += 1;
            self.read_to = self.body.text.len();
        }
        worth
    }

    /// What it says if it ends here.
    fn read(&self, machine: &Machine, closed: bool) -> Option<ParsedCalls> {
        let around = Surroundings {
            closed: closed && !self.unwrapped,
            unwrapped: self.unwrapped,
            verbatim: machine.format.verbatim,
        };
        match &self.name {
            Some(name) => tool_calls::read_arguments(name, &self.body.text),
            None => tool_calls::read(&self.body.text, &machine.tools, around),
        }
    }
}

impl Machine {
    /// A call whose opening marker or first words begin here; what follows tells whether it is one.
    pub(super) fn call_on_trial(&mut self, doubt: Doubt, mark: MarkerKind, spelled: &'static str, at: usize) {
        self.try_out(doubt, spelled, at);
        if doubt != Doubt::Unescaped {
            self.boundary();
        }
        self.held.clear();
        self.dangling.clear();
        self.state = State::Call(match mark {
            MarkerKind::CallHead | MarkerKind::CallWord => Call::unwrapped(spelled, at),
            _ => Call::marked(spelled, at),
        });
    }

    /// Whether a marker would stand in a text of a call.
    pub(super) fn is_quoted(&self) -> bool {
        match &self.state {
            State::Call(call) => call.is_quoted(),
            State::BareCall { body, open, .. } => open.quoted(&body.text),
            _ => false,
        }
    }

    /// A marker that comes while a call is open: inside a text of it, a word.
    pub(super) fn mark_in_call(&mut self, mark: MarkerKind, spelled: &'static str, at: usize) {
        let State::Call(call) = &mut self.state else { return };
        if call.is_quoted() {
            return call.push(spelled, at);
        }
        let named = call.name.is_some();
        match mark {
            MarkerKind::CallOpen => {
                self.end_call(None);
                self.read_mark(mark, spelled, at);
            }
            MarkerKind::Section => {
                if call.open.is_unescaped() {
                    self.miss_closing();
                }
                self.end_call(Some(spelled));
            }
            MarkerKind::CallClose => self.end_call(Some(spelled)),
            MarkerKind::MessageClose => self.end_call(Some("")),
            MarkerKind::HeaderOpen => {
                self.end_call(Some(""));
                self.begin_header(spelled, at);
            }
            // What some formats never close ends before the next block.
            MarkerKind::Open | MarkerKind::Close | MarkerKind::AnswerOpen | MarkerKind::AnswerClose if !named && self.may_end_call() => {
                self.end_call(Some(""));
                self.read_mark(mark, spelled, at);
            }
            MarkerKind::Channel if self.may_end_call() => {
                self.end_call(Some(""));
                self.read_mark(mark, spelled, at);
            }
            _ => {
                if let State::Call(call) = &mut self.state {
                    call.push(spelled, at);
                }
            }
        }
    }

    /// Whether the call that is open would be whole if it ended here.
    fn may_end_call(&mut self) -> bool {
        let State::Call(call) = &mut self.state else { return false };
        if !call.is_closed() || !call.is_worth_reading() {
            return false;
        }
        let State::Call(call) = &self.state else { return false };
        call.read(self, true).is_some()
    }

    /// Ends a call that nothing stands around as soon as it is over; what follows is read on.
    pub(super) fn end_if_over(&mut self) {
        let State::Call(call) = &mut self.state else { return };
        let Some(end) = call.open.over(&call.body.text) else { return };
        let (rest, at) = (call.body.text.split_off(end), call.body.at + end);
        self.end_call(None);
        self.read_text(&rest, at);
    }

    /// Ends the call that is open, with what closes it. One that is not whole is given up: it is text, with its markers.
    pub(super) fn end_call(&mut self, closing: Option<&'static str>) {
        let State::Call(call) = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        let reading = call.read(self, closing.is_some());
        self.judge(&call.open, &call.body.text, reading.is_some());
        match reading {
            Some(reading) => self.call(&call.body, reading),
            None => {
                let text = format!("{}{}{}", call.opening, call.body.text, closing.unwrap_or_default());
                let given_up = Span::new(&text, call.body.at - call.opening.len());
                self.say(&given_up.text, given_up.at);
                self.broken_call(&given_up, call.opening, closing);
                self.boundary();
            }
        }
    }

    pub(super) fn call(&mut self, body: &Span, reading: ParsedCalls) {
        let end = body.at + reading.end;
        self.last_thought = false;
        for (name, arguments) in reading.calls {
            let piece = Piece::ToolCall { name, arguments };
            let source = body.at..end;
            self.events.push(Event { piece, source });
        }
        self.boundary();
        self.after_call = true;
        self.called = body.text[..reading.end].trim().into();
        if !body.text[reading.end..].trim().is_empty() {
            self.state = State::Answer;
            self.say(&body.text[reading.end..], end);
        }
    }

    /// Whether these words may be the last call once more.
    pub(super) fn may_be_echo(&self, words: &str) -> bool {
        let closes = || self.format.marker(MarkerKind::CallClose).is_some();
        self.after_call && self.may_open && !words.is_empty() && self.echoes(words, 0) && closes()
    }

    /// Whether a text goes on from here as the last call did, with nothing but blanks after it.
    fn echoes(&self, text: &str, from: usize) -> bool {
        let (called, more) = (self.called.as_bytes(), &text.as_bytes()[from..]);
        let inside = called.len().saturating_sub(from).min(more.len());
        let (same, blank) = more.split_at(inside);
        called[from.min(called.len())..].starts_with(same) && blank.iter().all(u8::is_ascii_whitespace)
    }

    /// More of what may be the last call once more, so many bytes.
    pub(super) fn echo(&mut self, length: usize) {
        let State::Echo(read) = &self.state else { return };
        if !self.echoes(&read.text, read.text.len() - length) {
            let read = read.clone();
            self.state = State::Answer;
            self.say(&read.text, read.at);
        }
    }

    /// A marker after what may be the last call once more: whether it closes that one, which is none then.
    pub(super) fn end_echo(&mut self, mark: MarkerKind, spelled: &'static str, at: usize) -> bool {
        let State::Echo(read) = &mut self.state else { return false };
        let read = read.take();
        self.state = State::Answer;
        let closed = mark == MarkerKind::CallClose && read.text.trim_end() == &*self.called;
        if closed {
            self.held.clear();
            self.pass_echo(read.at..at + spelled.len());
        } else {
            self.say(&read.text, read.at);
        }
        closed
    }

    /// Says that a call is text, and between which markers it stands, for those who show none.
    pub(super) fn broken_call(&mut self, body: &Span, opening: &str, closing: Option<&str>) {
        let message = "The model began to call a tool and did not write it in full; what it wrote is shown as text.";
        let notice = Notice::new(NoticeCode::BrokenToolCall, message).with("opening", opening);
        let notice = closing.into_iter().fold(notice, |notice, closing| notice.with("closing", closing));
        let (piece, end) = (Piece::Notice(notice), body.at + body.text.len());
        self.events.push(Event { piece, source: end..end });
    }

    /// Decides as soon as it can whether the answer is a call without markers.
    pub(super) fn bare(&mut self) {
        let State::BareCall { body, open, sure } = &mut self.state else {
            return;
        };
        open.advance(&body.text);
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
        let State::BareCall { body, sure, .. } = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        let reading = Some(())
            .filter(|()| sure)
            .and_then(|()| tool_calls::read(&body.text, &self.tools, Surroundings::default()));
        match reading {
            Some(reading) => {
                self.held.clear();
                self.call(&body, reading);
            }
            None => {
                self.begin_words();
                self.speak(&body.text, body.at);
                if sure {
                    self.broken_call(&body, "", None);
                }
            }
        }
    }
}
