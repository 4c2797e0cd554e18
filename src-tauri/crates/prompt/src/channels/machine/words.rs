//! Words of the answer, and the whitespace between its blocks.

use super::state::{Machine, State};
use crate::channels::event::{Event, Piece, Span};
use crate::tool_calls::OpenCall;

impl Machine {
    pub(super) fn answer(&mut self, text: &str, at: usize) {
        let words = text.trim_start();
        if self.format.bare_calls && self.may_open && !self.spoken && words.starts_with(['{', '[']) {
            let blank = text.len() - words.len();
            self.hold(&text[..blank], at);
            let body = Span::new(words, at + blank);
            let (open, certain) = (OpenCall::new(), false);
            self.state = State::BareCall { body, open, certain };
            return self.bare();
        }
        if let Some(origin) = self.may_be_label(words) {
            let marker = at + text.len() - words.len();
            self.hold(&text[..marker - at], at);
            let read = Span::new(words, marker);
            self.state = State::Label { read, origin, marker };
            return self.label();
        }
        if self.may_be_echo(words) {
            let blank = text.len() - words.len();
            self.hold(&text[..blank], at);
            self.state = State::Echo(Span::new(words, at + blank));
            return;
        }
        self.say(text, at);
    }

    /// Text that is the answer's, whatever it looks like.
    pub(super) fn say(&mut self, text: &str, at: usize) {
        if !self.may_open {
            return self.speak(text, at);
        }
        let words = text.trim_start();
        let blank = text.len() - words.len();
        self.hold(&text[..blank], at);
        if !words.is_empty() {
            self.begin_words();
            self.speak(words, at + blank);
        }
    }

    pub(super) fn hold(&mut self, blank: &str, at: usize) {
        if !blank.is_empty() {
            self.held.push(blank, at);
        }
    }

    pub(super) fn begin_words(&mut self) {
        let message = self.next_message.take().filter(|_| self.spoken && !self.line_ended);
        if let Some(at) = message {
            // The words of two messages do not run together.
            self.held.clear();
            let source = at..at;
            let piece = Piece::Text("\n\n".into());
            self.events.push(Event { piece, source });
        }
        // Between two stretches of an answer whitespace stays, so that their words do not run together.
        if self.after_block && !self.spoken {
            self.held.clear();
        }
        self.emit_held();
        (self.may_open, self.spoken) = (false, true);
        (self.after_thought, self.after_call) = (false, false);
    }

    pub(super) fn speak(&mut self, text: &str, at: usize) {
        if self.after_section || !self.dangling.text.is_empty() {
            self.dangling.push(text, at);
            if text.trim().is_empty() {
                return;
            }
            self.after_section = false;
            let Span { text, at } = self.dangling.take();
            return self.speak(&text, at);
        }
        self.last_thought = false;
        self.line_ended = text.ends_with('\n');
        self.emit(Piece::Text(text.to_owned()), at);
    }

    pub(super) fn emit_held(&mut self) {
        let held = self.held.take();
        self.emit(Piece::Text(held.text), held.at);
    }

    /// Whitespace before a marker that was dropped where nothing but whitespace stood is the boundary's.
    pub(super) fn drop_held(&mut self) {
        if self.may_open {
            self.held.clear();
        }
    }

    pub(super) fn boundary(&mut self) {
        self.held.clear();
        self.dangling.clear();
        (self.may_open, self.after_block) = (true, true);
        (
            self.unknown_open,
            self.after_thought,
            self.after_call,
            self.after_section,
        ) = (false, false, false, false);
        (self.next_message, self.quoting) = (None, false);
        self.state = self.between();
    }
}
