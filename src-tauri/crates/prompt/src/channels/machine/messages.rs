//! Messages and the headers that say which channel they belong to.

use super::call::ToolCallBlock;
use super::state::{Machine, Origin, State};
use crate::channels::event::Span;
use crate::channels::formats::{Body, Headers, MarkerKind};

/// Stands before the recipient in a header.
const RECIPIENT: &str = "to=";

impl Machine {
    /// How the format writes headers.
    fn headers(&self) -> Headers {
        self.format.headers.unwrap_or(Headers::Channels)
    }

    /// A marker that begins a message.
    pub(super) fn begin_header(&mut self, spelled: &'static str, at: usize) {
        if self.headers() == Headers::Lines {
            return self.open_header(Origin::Answer, spelled, at);
        }
        self.boundary();
        let (read, origin) = (Span::default(), Origin::Message);
        self.state = State::Header { read, origin };
    }

    pub(super) fn open_header(&mut self, origin: Origin, spelled: &str, at: usize) {
        let read = Span::new(spelled, at);
        self.state = State::Header { read, origin };
    }

    /// Text of this many bytes came into a header: it goes on, or it is none from the first character that does not
    /// fit.
    pub(super) fn header(&mut self, length: usize) {
        let State::Header { read, origin } = &self.state else {
            return;
        };
        let (known, headers) = (read.text.len() - length, self.headers());
        let mut ends = read.text[known..]
            .char_indices()
            .map(|(at, c)| known + at + c.len_utf8());
        let ended = |end: &usize| headers == Headers::Lines && read.text[..*end].ends_with('\n');
        let Some(end) = ends.find(|end| ended(end) || !headers.viable(&read.text[..*end])) else {
            return;
        };
        let whole = ended(&end) && headers.viable(&read.text[..end]);
        let (mut read, origin) = (read.clone(), *origin);
        let rest = read.text.split_off(end);
        if whole {
            self.close_header(&read, origin, "\n", read.at + end - 1);
        } else {
            self.cut_header(&read, origin, false);
        }
        self.read_text(&rest, read.at + end);
    }

    /// Text of a thought. Now and then Muse forgets the markers between its thought and the next message, and begins
    /// that one with its recipient.
    pub(super) fn thought_or_header(&mut self, text: &str, at: usize) {
        let begins = |rest: &str| rest.starts_with(RECIPIENT) || RECIPIENT.starts_with(rest);
        let after_blank = |start: usize| match text[..start].chars().next_back() {
            Some(before) => before.is_whitespace(),
            None => matches!(self.state, State::Thought { begun: false }) || !self.held.text.is_empty(),
        };
        let mut starts = text.match_indices('t').map(|(start, _)| start);
        let found = starts.find(|start| begins(&text[*start..]) && after_blank(*start));
        let Some(start) = found.filter(|_| self.format.headers == Some(Headers::Recipients)) else {
            return self.thought(text, at);
        };
        self.thought(&text[..start], at);
        self.thought_end = at + start;
        let State::Thought { begun } = self.state else { return };
        self.open_header(Origin::Thought { begun }, &text[start..], at + start);
        self.header(text.len() - start);
    }

    pub(super) fn mark_in_header(&mut self, mark: MarkerKind, spelled: &'static str, at: usize) {
        let headers = self.headers();
        let State::Header { read, origin } = &mut self.state else {
            return;
        };
        match mark {
            MarkerKind::Channel if headers.viable(&format!("{}{spelled}", read.text)) => read.push(spelled, at),
            MarkerKind::HeaderClose if headers.whole(&read.text) => {
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
        let headers = self.headers();
        let offered = |body: &Body| match body {
            Body::Call(name) if headers == Headers::Lines => self.tools.may_have(name),
            _ => true,
        };
        let body = headers.body(&read.text).filter(offered);
        if headers == Headers::Lines && body.is_none() {
            return self.cut_header(read, origin, false);
        }
        if body.is_none() && matches!(origin, Origin::Answer | Origin::Thought { .. }) {
            self.cut_header(read, origin, false);
            return self.read_text(spelled, at);
        }
        self.boundary();
        match body {
            Some(Body::Thought) => self.state = State::Thought { begun: false },
            Some(Body::Call(name)) => {
                let mut header = read.clone();
                // The end of a line is a part of it already.
                if header.at + header.text.len() == at {
                    header.push(spelled, at);
                }
                self.state = State::Call(ToolCallBlock::named(name, header));
            }
            body @ (Some(Body::Answer | Body::Calls) | None) => {
                self.state = State::Answer;
                self.quoting = headers == Headers::Recipients && body != Some(Body::Calls);
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
            Origin::Answer | Origin::Repeated | Origin::Missing => {
                self.state = State::Answer;
                self.answer(&read.text, read.at);
            }
            Origin::Boundary | Origin::Message => {
                self.state = State::Answer;
                let words = self.headers().words(&read.text, origin == Origin::Message, at_end);
                let (text, at) = (&read.text[words..], read.at + words);
                self.after_block |= words > 0;
                if self.headers() == Headers::Channels && self.headers().body(&read.text) == Some(Body::Thought) {
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
