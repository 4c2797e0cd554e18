//! Messages and the headers that say which channel they belong to.

use super::{Call, Machine, MarkerKind, Origin, Span, State};
use crate::channels::header::{self, Body};

impl Machine {
    /// A marker that begins a message.
    pub(super) fn begin_header(&mut self) {
        self.boundary();
        let (read, origin) = (Span::default(), Origin::Message);
        self.state = State::Header { read, origin };
    }

    pub(super) fn open_header(&mut self, origin: Origin, spelled: &'static str, at: usize) {
        let read = Span::new(spelled, at);
        self.state = State::Header { read, origin };
    }

    /// Text of this many bytes came into a header: it goes on, or it is none from the first character that does not fit.
    pub(super) fn header(&mut self, length: usize) {
        let State::Header { read, origin } = &self.state else { return };
        let known = read.text.len() - length;
        let mut ends = read.text[known..].char_indices().map(|(at, c)| known + at + c.len_utf8());
        let Some(end) = ends.find(|end| !header::viable(&read.text[..*end])) else {
            return;
        };
        let (mut read, origin) = (read.clone(), *origin);
        let rest = read.text.split_off(end);
        self.cut_header(&read, origin, false);
        self.read_text(&rest, read.at + end);
    }

    pub(super) fn mark_in_header(&mut self, mark: MarkerKind, spelled: &'static str, at: usize) {
        let State::Header { read, origin } = &mut self.state else { return };
        match mark {
            MarkerKind::Channel if header::viable(&format!("{}{spelled}", read.text)) => read.push(spelled, at),
            MarkerKind::HeaderClose if header::whole(&read.text) => {
                let (read, origin) = (read.take(), *origin);
                self.close_header(&read, origin, spelled, at);
            }
            _ => {
                let (read, origin) = (read.take(), *origin);
                self.cut_header(&read, origin, false);
                self.read_mark(mark, spelled, at);
            }
        }
    }

    pub(super) fn close_header(&mut self, read: &Span, origin: Origin, spelled: &'static str, at: usize) {
        let body = header::body(&read.text);
        if body.is_none() && matches!(origin, Origin::Answer | Origin::Thought { .. }) {
            self.cut_header(read, origin, false);
            return self.read_text(spelled, at);
        }
        self.boundary();
        match body {
            Some(Body::Thought) => self.state = State::Thought { begun: false },
            Some(Body::Call(name)) => self.state = State::Call(Call::named(name, at + spelled.len())),
            Some(Body::Answer) | None => {
                self.state = State::Answer;
                self.next_message = Some(at);
            }
        }
    }

    /// A header that is none, or is cut off: its words go where they would have gone without it.
    pub(super) fn cut_header(&mut self, read: &Span, origin: Origin, at_end: bool) {
        match origin {
            Origin::Thought { begun } => {
                self.state = State::Thought { begun };
                self.thought(&read.text, read.at);
            }
            Origin::Answer | Origin::Repeated => {
                self.state = State::Answer;
                self.answer(&read.text, read.at);
            }
            Origin::Boundary | Origin::Message => {
                self.state = State::Answer;
                let words = header::words(&read.text, origin == Origin::Message, at_end);
                let (text, at) = (&read.text[words..], read.at + words);
                self.after_block |= words > 0;
                if header::body(&read.text) == Some(Body::Thought) {
                    self.boundary();
                    self.state = State::Thought { begun: false };
                    self.thought(text, at);
                } else {
                    self.answer(text, at);
                }
            }
        }
    }
}
