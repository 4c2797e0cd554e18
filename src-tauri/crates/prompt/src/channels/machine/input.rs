//! Text and markers as they come, handed to the part of the machine whose state they meet.

use super::state::{Ambiguity, Machine, Origin, State};
use crate::channels::event::{Piece, Span};
use crate::channels::formats::MarkerKind;

impl Machine {
    /// Text that begins at this place of the source.
    pub(in crate::channels) fn text(&mut self, text: &str, at: usize) {
        if text.is_empty() {
            return;
        }
        self.note(text, at);
        self.read_text(text, at);
        self.check_speculation();
    }

    /// A marker, spelled like this, that begins at this place of the source.
    pub(in crate::channels) fn mark(&mut self, mark: MarkerKind, spelled: &'static str, at: usize) {
        self.ambiguous_at(mark);
        self.note(spelled, at);
        self.read_mark(mark, spelled, at);
        self.check_speculation();
    }

    pub(super) fn read_text(&mut self, text: &str, at: usize) {
        if text.is_empty() {
            return;
        }
        match &mut self.state {
            State::Answer => self.answer(text, at),
            State::Thought { .. } => self.thought_or_header(text, at),
            State::Call(call) => {
                call.push(text, at);
                self.end_if_over();
            }
            State::Label { read, .. } => {
                read.push(text, at);
                self.label();
            }
            State::Header { read, .. } => {
                read.push(text, at);
                self.header(text.len());
            }
            State::Echo(read) => {
                read.push(text, at);
                self.echo(text.len());
            }
            State::BareCall { body, .. } => {
                body.push(text, at);
                self.bare();
            }
        }
    }

    pub(super) fn read_mark(&mut self, mark: MarkerKind, spelled: &'static str, at: usize) {
        if self.end_echo(mark, spelled, at) {
            return;
        }
        match self.state {
            State::Label { .. } => self.end_label(mark == MarkerKind::Close),
            State::Header { .. } => return self.mark_in_header(mark, spelled, at),
            State::BareCall { .. }
                if matches!(mark, MarkerKind::CallOpen | MarkerKind::Section | MarkerKind::Frame)
                    && !self.is_quoted() =>
            {
                self.end_bare()
            }
            State::Call(_) => return self.mark_in_call(mark, spelled, at),
            _ => {}
        }
        if matches!(self.state, State::Thought { .. }) {
            self.thought_end = at + spelled.len();
        }
        let (ends_thoughts, ends_line) = (self.format.ends_thoughts, self.thought_ends_line());
        match (&mut self.state, mark) {
            (State::Answer, MarkerKind::Open) if self.may_open => self.open(Origin::Boundary, at),
            // After words only a label shows that a marker is meant.
            (State::Answer, MarkerKind::Open) if self.format.label.is_some() => self.open(Origin::Answer, at),
            (State::Answer, MarkerKind::Close) if self.ended => self.boundary(),
            (State::Answer, MarkerKind::Close) if self.unknown_open || self.after_thought => {
                self.unknown_open = false;
                self.drop_held();
            }
            (State::Answer, MarkerKind::Close) if self.format.label.is_some() && !self.may_open => {
                self.dangling.push(spelled, at)
            }
            (State::Answer, MarkerKind::CallClose) if self.after_call => self.drop_held(),
            (State::Answer, MarkerKind::AnswerOpen) if self.may_open => {
                (self.wrapped, self.after_block) = (true, true);
                self.drop_held();
            }
            (State::Answer, MarkerKind::AnswerClose) if self.wrapped => {
                self.wrapped = false;
                self.boundary();
            }
            (State::Answer, MarkerKind::AnswerClose) if self.after_call => self.drop_held(),
            (State::Answer, MarkerKind::Section | MarkerKind::Frame) if self.may_open => self.drop_held(),
            (State::Thought { .. }, MarkerKind::Frame) => {}
            (State::Answer, MarkerKind::Section | MarkerKind::Frame) => {
                let Span { text, at } = self.dangling.take();
                self.emit(Piece::Text(text), at);
                self.after_section = true;
            }
            (State::Answer, MarkerKind::CallOpen | MarkerKind::CallWord) if !self.quoting => {
                self.speculative_call(Ambiguity::Unescaped, mark, spelled, at)
            }
            (State::Answer, MarkerKind::CallHead) if self.may_open || self.line_ended => {
                self.speculative_call(Ambiguity::Unescaped, mark, spelled, at);
            }
            (State::Answer, MarkerKind::HeaderClose) if self.may_open => self.drop_held(),
            (State::Answer, MarkerKind::Channel) => self.open_header(Origin::Answer, spelled, at),
            (State::Thought { begun }, MarkerKind::Channel) => {
                let begun = *begun;
                self.open_header(Origin::Thought { begun }, spelled, at);
            }
            (State::Thought { begun: false }, MarkerKind::Open) => self.open(Origin::Thought { begun: false }, at),
            // After words only the label of an answer counts.
            (State::Thought { begun: true }, MarkerKind::Open) if self.format.label.is_some() => {
                self.open(Origin::Thought { begun: true }, at);
            }
            (State::Thought { .. }, MarkerKind::Close) => {
                self.boundary();
                self.after_thought = true;
            }
            (State::Thought { .. }, MarkerKind::CallOpen) if ends_thoughts => {
                self.speculative_call(Ambiguity::EndsThought, mark, spelled, at);
            }
            (State::Thought { .. }, MarkerKind::CallOpen) if self.speculation.is_none() => {
                self.speculative_call(Ambiguity::InThought, mark, spelled, at);
            }
            (State::Thought { .. }, MarkerKind::CallHead) if self.speculation.is_none() && ends_line => {
                self.speculative_call(Ambiguity::InThought, mark, spelled, at);
            }
            (State::Thought { .. }, MarkerKind::AnswerOpen) if ends_thoughts => {
                self.boundary();
                self.wrapped = true;
            }
            (State::Thought { .. }, MarkerKind::Section) if ends_thoughts => {
                self.speculate(Ambiguity::EndsThought, spelled, at);
                self.boundary();
            }
            (State::Answer | State::Thought { .. }, MarkerKind::MessageClose) => self.boundary(),
            (State::Answer | State::Thought { .. }, MarkerKind::HeaderOpen) => self.begin_header(spelled, at),
            _ => self.read_text(spelled, at),
        }
    }

    /// The answer has ended.
    pub(in crate::channels) fn finish(&mut self) {
        self.finish_state();
        self.decide();
    }

    pub(super) fn finish_state(&mut self) {
        match &mut self.state {
            // Whitespace after a block is a boundary's; whitespace alone is an answer of whitespace.
            State::Answer if !self.after_block => self.emit_held(),
            State::Answer => {}
            State::Label { .. } => self.cut_label(),
            State::Header { read, origin } => {
                let (read, origin) = (read.take(), *origin);
                self.cut_header(&read, origin, true);
                if !self.after_block && !matches!(self.state, State::Thought { .. }) {
                    self.emit_held();
                }
                if let State::Thought { begun } = self.state {
                    self.cut_thought(begun);
                }
            }
            State::Thought { begun } => {
                let begun = *begun;
                self.state = State::Answer;
                self.cut_thought(begun);
            }
            State::Call(_) => self.cut_call(),
            State::Echo(read) => {
                let read = read.take();
                self.state = State::Answer;
                self.say(&read.text, read.at);
            }
            State::BareCall { .. } => self.end_bare(),
        }
    }
}
