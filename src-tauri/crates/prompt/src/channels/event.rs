//! The pieces of an answer, with their places in the source.

use std::collections::VecDeque;
use std::ops::Range;

use protocol::Notice;
use serde_json::Value;

/// A piece of an answer. Text never splits a character and never contains a marker that was interpreted.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// More of the answer.
    Text(String),
    /// More of the reasoning.
    Thinking(String),
    /// A complete call of a tool.
    ToolCall {
        /// The tool.
        name: String,
        /// The arguments, a JSON object.
        arguments: Value,
    },
    /// A notice for the user.
    Notice(Notice),
}

/// A piece and the source that it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The piece.
    pub piece: Piece,
    /// Its place in the text that the model wrote, markers and all, in bytes. A text is exactly what stands there, a
    /// call what stands between its markers, also for several calls in one; a notice is empty, and so is a paragraph
    /// that separates two messages of an answer or two thoughts. Thoughts that are kept out of an answer have no event.
    pub source: Range<usize>,
}

/// Appends an event; text that goes on where the last one ended becomes one with it, but for a paragraph that has no
/// place.
pub(super) fn append(events: &mut Vec<Event>, event: Event) {
    if matches!(&event.piece, Piece::Text(text) | Piece::Thinking(text) if text.is_empty()) {
        return;
    }
    if let Some(last) = events.last_mut().filter(|last| last.source.end == event.source.start) {
        match (&mut last.piece, &event.piece) {
            (Piece::Text(text), Piece::Text(more)) | (Piece::Thinking(text), Piece::Thinking(more))
                if !last.source.is_empty() && !event.source.is_empty() =>
            {
                text.push_str(more);
                last.source.end = event.source.end;
                return;
            }
            _ => {}
        }
    }
    events.push(event);
}

/// A stretch of text and where it begins in the source.
#[derive(Debug, Clone, Default)]
pub(super) struct Span {
    pub text: String,
    pub at: usize,
}

impl Span {
    pub(super) fn new(text: &str, at: usize) -> Self {
        Self {
            text: text.to_owned(),
            at,
        }
    }

    /// Appends what follows; after a gap a new stretch begins.
    pub(super) fn push(&mut self, text: &str, at: usize) {
        // An empty text has no place that could replace the one of the stretch.
        if text.is_empty() {
            return;
        }
        if self.at + self.text.len() != at {
            self.text.clear();
        }
        if self.text.is_empty() {
            self.at = at;
        }
        self.text.push_str(text);
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
    }

    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

/// Gives back the places of text that passes a filter which holds some of it back.
#[derive(Debug, Default)]
pub(super) struct SourceMap {
    stretches: VecDeque<(usize, Range<usize>)>,
}

impl SourceMap {
    /// Text of this length goes in.
    pub(super) fn enter(&mut self, length: usize, source: Range<usize>) {
        self.stretches.push_back((length, source));
    }

    /// This text comes out.
    pub(super) fn leave(&mut self, mut text: &str, events: &mut Vec<Event>) {
        while !text.is_empty() {
            let Some((length, source)) = self.stretches.pop_front() else {
                return;
            };
            let taken = length.min(text.len());
            let (here, rest) = text.split_at(taken);
            // A paragraph of our own has no place of its own.
            let end = match source.is_empty() {
                true => source.end,
                false => source.start + taken,
            };
            if taken < length {
                self.stretches.push_front((length - taken, end..source.end));
            }
            let (piece, source) = (Piece::Text(here.to_owned()), source.start..end);
            append(events, Event { piece, source });
            text = rest;
        }
    }
}
