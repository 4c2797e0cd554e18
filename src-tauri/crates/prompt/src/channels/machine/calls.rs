//! Calls of tools, between markers, after a header or without anything.

use protocol::{Notice, NoticeCode};

use super::call::{QuotedMarker, ToolCallBlock};
use super::state::{Ambiguity, Machine, State};
use crate::channels::event::{Event, Piece, Span};
use crate::channels::formats::MarkerKind;
use crate::tool_calls::{self, BareCall, CallContext, ParsedCall, ParsedCalls};

impl Machine {
    /// Begins a call speculatively, with its opening marker or first words; later text decides whether it is one.
    pub(super) fn speculative_call(
        &mut self,
        ambiguity: Ambiguity,
        mark: MarkerKind,
        spelled: &'static str,
        at: usize,
    ) {
        self.speculate(ambiguity, spelled, at);
        if ambiguity != Ambiguity::Unescaped {
            self.boundary();
        }
        self.held.clear();
        self.dangling.clear();
        self.state = State::Call(match mark {
            MarkerKind::CallHead | MarkerKind::CallWord => ToolCallBlock::unwrapped(spelled, at),
            _ => ToolCallBlock::marked(spelled, at),
        });
    }

    /// True if a marker here would be inside a string of a call.
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
        let closes = self.lenient && mark == MarkerKind::CallClose && call.open.may_lack_closing();
        if call.is_quoted() && !closes {
            return call.quote(mark, spelled, at);
        }
        let named = call.name.is_some();
        match mark {
            MarkerKind::CallOpen => {
                self.end_call(None);
                self.read_mark(mark, spelled, at);
            }
            MarkerKind::Section | MarkerKind::Frame => {
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
            // A call that the format never closes ends before the next block.
            MarkerKind::Open
            | MarkerKind::Close
            | MarkerKind::AnswerOpen
            | MarkerKind::AnswerClose
            | MarkerKind::Channel
                if (!named || mark == MarkerKind::Channel) && self.may_end_call() =>
            {
                self.end_call(Some(""));
                self.read_mark(mark, spelled, at);
            }
            _ => {
                if let State::Call(call) = &mut self.state {
                    call.quote(mark, spelled, at);
                }
            }
        }
    }

    /// True if the open call would be complete if it ended here.
    fn may_end_call(&mut self) -> bool {
        let State::Call(call) = &mut self.state else {
            return false;
        };
        let read = |call: &ToolCallBlock| call.read(&self.tools, self.format.verbatim, true);
        call.open.is_closed() && call.is_worth_reading() && read(call).is_some()
    }

    /// Ends a call without markers as soon as it is complete, and reads on.
    pub(super) fn end_if_over(&mut self) {
        let State::Call(call) = &mut self.state else { return };
        let Some(end) = call.open.over(&call.body.text) else {
            return;
        };
        let (rest, at) = (call.body.text.split_off(end), call.body.at + end);
        self.end_call(None);
        self.read_text(&rest, at);
    }

    /// Ends the open call with its closing marker. An incomplete one becomes text, markers included.
    pub(super) fn end_call(&mut self, closing: Option<&'static str>) {
        let State::Call(call) = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        // Only the end of the answer closes a call that has nothing else to close it.
        let ends = closing.is_some() || !call.open.needs_closing();
        let reading = call
            .read(&self.tools, self.format.verbatim, closing.is_some())
            .filter(|_| ends);
        if reading.is_none() && closing.is_some() && call.open.is_sound(&call.body.text) {
            let end = call.body.at + call.body.text.len() + closing.map_or(0, str::len);
            self.pass_over(call.body.at - call.opening.len()..end);
        }
        self.end_with(&call, closing, reading);
    }

    fn end_with(&mut self, call: &ToolCallBlock, closing: Option<&'static str>, reading: Option<ParsedCalls>) {
        self.judge(&call.open, &call.body.text, reading.is_some());
        match reading {
            Some(reading) => self.call(call, closing, reading),
            None => self.give_up(call, closing, None),
        }
    }

    /// A call that is none becomes text with its markers: it is not whole, or nobody offered the tool of this name.
    fn give_up(&mut self, call: &ToolCallBlock, closing: Option<&'static str>, unknown: Option<&str>) {
        // The name of an unknown tool is shown with its call.
        let head = match unknown {
            Some(_) if call.name.is_some() => call.header.text.as_str(),
            _ => call.opening,
        };
        let text = format!("{head}{}{}", call.body.text, closing.unwrap_or_default());
        let given_up = Span::new(&text, call.body.at - head.len());
        self.say(&given_up.text, given_up.at);
        match unknown {
            Some(name) => self.unknown_tool(&given_up, name, call.opening, closing),
            None => self.broken_call(&given_up, call.opening, closing),
        }
        self.boundary();
    }

    /// Ends the open call with the answer. What was opened in it was not closed by anything outside of it.
    pub(super) fn cut_call(&mut self) {
        let State::Call(call) = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        let reading = call.read(&self.tools, self.format.verbatim, false);
        if reading.is_none() {
            if let Some(marker) = call.quoted.first().copied() {
                if self.end_at(&call, marker) {
                    return;
                }
            }
        }
        let begin = match &reading {
            Some(reading) => call.body.at + reading.end,
            None => call.body.at - call.opening.len(),
        };
        let settled = call.body.at + call.open.settled();
        if settled > begin {
            self.pass_over(begin..settled);
        }
        self.end_with(&call, None, reading);
    }

    /// Ends a call that was never closed at a marker that was taken for a word of its last argument, and reads what
    /// follows as if that marker had ended it at once.
    fn end_at(&mut self, call: &ToolCallBlock, marker: QuotedMarker) -> bool {
        let cut = call.until(marker.at);
        let after = &call.body.text[cut.body.text.len()..];
        let Some(reading) = cut.read(&self.tools, self.format.verbatim, true) else {
            return false;
        };
        self.lenient = true;
        self.end_with(&cut, Some(marker.spelled), Some(reading));
        let mut at = marker.at + marker.spelled.len();
        for next in &call.quoted[1..] {
            self.read_text(&after[at - marker.at..next.at - marker.at], at);
            self.read_mark(next.kind, next.spelled, next.at);
            at = next.at + next.spelled.len();
        }
        self.read_text(&after[at - marker.at..], at);
        self.finish_state();
        true
    }

    /// Tells the calls of tools that were offered; the others stay text.
    pub(super) fn call(&mut self, call: &ToolCallBlock, closing: Option<&'static str>, reading: ParsedCalls) {
        let body = &call.body;
        let unknown = |(name, _): &&ParsedCall| !self.tools.may_have(name);
        let strangers: Vec<String> = reading
            .calls
            .iter()
            .filter(unknown)
            .map(|(name, _)| name.clone())
            .collect();
        if let Some(name) = strangers.first().filter(|_| strangers.len() == reading.calls.len()) {
            self.pass_over(body.at - call.opening.len()..body.at + reading.end);
            return self.give_up(call, closing, Some(name));
        }
        let end = body.at + reading.end;
        self.last_thought = false;
        let (mut begin, mut ends) = (0, reading.ends);
        if let Some(last) = ends.last_mut() {
            *last = reading.end;
        }
        for ((name, arguments), end_of_one) in reading.calls.into_iter().zip(ends) {
            let one = body.at + begin..body.at + end_of_one;
            let known = !strangers.contains(&name);
            // Between calls of other tools each has a place of its own.
            let source = if strangers.is_empty() {
                body.at..end
            } else {
                one.clone()
            };
            if known {
                let piece = Piece::ToolCall { name, arguments };
                self.events.push(Event { piece, source });
            } else {
                let text = Span::new(&body.text[begin..end_of_one], one.start);
                self.say(&text.text, text.at);
                self.pass_over(one);
                self.unknown_tool(&text, &name, "", None);
            }
            begin = end_of_one;
        }
        self.boundary();
        self.after_call = true;
        self.called = body.text[..reading.end].trim().into();
        let rest = Span::new(&body.text[reading.end..], end);
        if !rest.text.trim().is_empty() {
            self.state = State::Answer;
            self.say(&rest.text, end);
            if reading.broken {
                self.broken_call(&rest, "", None);
            }
        }
    }

    /// True if these words may repeat the last call.
    pub(super) fn may_be_echo(&self, words: &str) -> bool {
        let closes = || self.format.marker(MarkerKind::CallClose).is_some();
        self.after_call && self.may_open && !words.is_empty() && self.echoes(words, 0) && closes()
    }

    /// True if the text continues from here as the last call did, with nothing but blanks after it.
    fn echoes(&self, text: &str, from: usize) -> bool {
        let (called, more) = (self.called.as_bytes(), &text.as_bytes()[from..]);
        let inside = called.len().saturating_sub(from).min(more.len());
        let (same, blank) = more.split_at(inside);
        called[from.min(called.len())..].starts_with(same) && blank.iter().all(u8::is_ascii_whitespace)
    }

    /// Takes `length` more bytes of a possible repetition of the last call.
    pub(super) fn echo(&mut self, length: usize) {
        let State::Echo(read) = &self.state else { return };
        if !self.echoes(&read.text, read.text.len() - length) {
            let read = read.clone();
            self.state = State::Answer;
            self.say(&read.text, read.at);
        }
    }

    /// A marker after a possible repetition of the last call; true if it closes the repetition, which is dropped then.
    pub(super) fn end_echo(&mut self, mark: MarkerKind, spelled: &'static str, at: usize) -> bool {
        let State::Echo(read) = &mut self.state else {
            return false;
        };
        let read = read.take();
        self.state = State::Answer;
        let closed = mark == MarkerKind::CallClose && read.text.trim_end() == &*self.called;
        if closed {
            self.held.clear();
            self.pass_over(read.at..at + spelled.len());
        } else {
            self.say(&read.text, read.at);
        }
        closed
    }

    /// Reports that a call of a tool that nobody offered is shown as text.
    fn unknown_tool(&mut self, body: &Span, name: &str, opening: &str, closing: Option<&str>) {
        let message = "The model called a tool that was not offered to it; what it wrote is shown as text.";
        let notice = Notice::new(NoticeCode::UnknownTool, message).with("name", name);
        self.shown_call(notice, body, opening, closing);
    }

    /// Reports that a call is shown as text, with its markers for clients that hide them.
    pub(super) fn broken_call(&mut self, body: &Span, opening: &str, closing: Option<&str>) {
        let message = "The model began to call a tool and did not write it in full; what it wrote is shown as text.";
        self.shown_call(Notice::new(NoticeCode::BrokenToolCall, message), body, opening, closing);
    }

    fn shown_call(&mut self, notice: Notice, body: &Span, opening: &str, closing: Option<&str>) {
        let notice = notice.with("opening", opening);
        let notice = closing
            .into_iter()
            .fold(notice, |notice, closing| notice.with("closing", closing));
        let (piece, end) = (Piece::Notice(notice), body.at + body.text.len());
        let source = end..end;
        self.events.push(Event { piece, source });
    }

    /// Decides as early as possible whether the answer is a call without markers.
    pub(super) fn bare(&mut self) {
        let State::BareCall { body, open, certain } = &mut self.state else {
            return;
        };
        open.advance(&body.text);
        if *certain {
            return;
        }
        match tool_calls::bare(&body.text, &self.tools) {
            BareCall::Yes => *certain = true,
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
        let State::BareCall { body, certain, .. } = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        let read = || tool_calls::read(&body.text, &self.tools, CallContext::default());
        match certain.then(read).flatten() {
            Some(reading) => {
                self.held.clear();
                let mut call = ToolCallBlock::marked("", body.at);
                call.body = body;
                self.call(&call, None, reading);
            }
            None => {
                self.begin_words();
                self.speak(&body.text, body.at);
                if certain {
                    self.broken_call(&body, "", None);
                }
            }
        }
    }
}
