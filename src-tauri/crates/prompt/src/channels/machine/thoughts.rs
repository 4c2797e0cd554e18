//! Thoughts and the labels after their opening markers.

use protocol::NoticeCode;

use super::{Machine, MarkerKind, Origin, Piece, Span, State};

impl Machine {
    pub(super) fn thought(&mut self, text: &str, at: usize) {
        let State::Thought { begun } = &mut self.state else { return };
        self.held.push(text, at);
        let words = self.held.text.trim_end().len();
        if words == 0 || self.ended {
            return;
        }
        let at = self.held.at;
        let rest = self.held.text.split_off(words);
        let text = std::mem::replace(
            &mut self.held,
            Span {
                text: rest,
                at: at + words,
            },
        )
        .text;
        let first = !std::mem::replace(begun, true);
        let newline = usize::from(first && self.trim_newline && text.starts_with('\n'));
        if self.thinking_on {
            self.emit(Piece::Thinking(text[newline..].to_owned()), at + newline);
        } else if !std::mem::replace(&mut self.reported, true) {
            let message = "This model thought anyway; its thought is kept out of the answer.";
            self.notice(NoticeCode::ThoughtWhileOff, message, at);
        }
    }

    pub(super) fn open(&mut self, origin: Origin, marker: usize) {
        // After words nothing is decided yet, and whitespace there was emitted with them.
        if origin != Origin::Answer {
            self.held.clear();
        }
        self.trim_newline = self.format.label.is_none();
        self.state = match self.format.label {
            Some(_) => State::Label {
                read: Span::default(),
                origin,
                marker,
            },
            None => State::Thought { begun: false },
        };
    }

    /// Decides as soon as it can whether what stands after an opening marker is the label and a line's end.
    pub(super) fn label(&mut self) {
        let (State::Label { read, .. }, Some(label)) = (&self.state, self.format.label) else {
            return;
        };
        if let Some((line, _)) = read.text.split_once('\n') {
            self.decide_label(line.trim_end() == label);
        } else if !label.starts_with(read.text.as_str()) && read.text.trim_end() != label {
            self.decide_label(false);
        }
    }

    /// A marker comes where a label was being read. A closing one makes an empty thought of a whole or missing label.
    pub(super) fn end_label(&mut self, closing: bool) {
        let (State::Label { read, origin, .. }, Some(label)) = (&self.state, self.format.label) else {
            return;
        };
        let whole = read.text.trim_end() == label;
        let missing = read.text.is_empty() && closing && *origin != Origin::Answer;
        self.decide_label(whole || missing);
    }

    pub(super) fn decide_label(&mut self, is_thought: bool) {
        let State::Label { read, origin, marker } = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        if is_thought {
            self.state = State::Thought { begun: false };
            if let Some(end) = read.text.find('\n') {
                self.thought(&read.text[end + 1..], read.at + end + 1);
            }
            return;
        }
        match origin {
            Origin::Thought { begun } => {
                self.state = State::Thought { begun };
                self.thought(&read.text, read.at);
            }
            Origin::Answer => {
                self.answer(self.format.spelled(MarkerKind::Open), marker);
                self.answer(&read.text, read.at);
            }
            Origin::Boundary | Origin::Message => {
                self.answer(&read.text, read.at);
                // Its own closing marker is as little an answer's word as the opening one.
                self.unknown_open = true;
            }
        }
    }
}
