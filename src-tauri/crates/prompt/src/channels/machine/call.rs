//! A call that is being written.

use crate::channels::event::Span;
use crate::channels::formats::MarkerKind;
use crate::tool_calls::{self, CallContext, OpenCall, ParsedCalls, Tools};

/// A call that is being written.
#[derive(Debug, Clone)]
pub(super) struct ToolCallBlock {
    /// The tool, if a header named it.
    pub(super) name: Option<String>,
    /// The header that named it, with its markers.
    pub(super) header: Span,
    /// The marker that opened it.
    pub(super) opening: &'static str,
    pub(super) body: Span,
    pub(super) open: OpenCall,
    /// The markers that are words of it, as far as they matter if it is never closed.
    pub(super) quoted: Vec<QuotedMarker>,
    /// The number of attempts to read it at a marker that might end it, and its length at the last one.
    readings: u32,
    read_to: usize,
}

/// A marker inside a text of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuotedMarker {
    pub(super) kind: MarkerKind,
    pub(super) spelled: &'static str,
    /// Its place in the source.
    pub(super) at: usize,
}

/// After this many attempts a call is only read again once it is twice as long, so that all attempts together take
/// linear time.
const READINGS: u32 = 16;

impl ToolCallBlock {
    /// The call of a tool that this header named; its arguments begin after it.
    pub(super) fn named(name: String, header: Span) -> Self {
        let at = header.at + header.text.len();
        Self {
            name: Some(name),
            header,
            open: OpenCall::arguments(),
            ..Self::marked("", at)
        }
    }

    /// After an opening marker that begins here.
    pub(super) fn marked(opening: &'static str, at: usize) -> Self {
        Self {
            name: None,
            header: Span::default(),
            opening,
            body: Span::new("", at + opening.len()),
            open: OpenCall::new(),
            quoted: Vec::new(),
            readings: 0,
            read_to: 0,
        }
    }

    /// A call without an opening marker; its first words begin here.
    pub(super) fn unwrapped(head: &str, at: usize) -> Self {
        let mut call = Self {
            open: OpenCall::unwrapped(),
            ..Self::marked("", at)
        };
        call.push(head, at);
        call
    }

    /// The call as it was before this place of the source.
    pub(super) fn until(&self, at: usize) -> Self {
        let mut call = self.clone();
        call.body.text.truncate(at - call.body.at);
        call
    }

    pub(super) fn push(&mut self, text: &str, at: usize) {
        self.body.push(text, at);
        self.open.advance(&self.body.text);
    }

    /// Takes a marker that is a word here. The first one that may close the call is remembered, and all after it.
    pub(super) fn quote(&mut self, kind: MarkerKind, spelled: &'static str, at: usize) {
        let may_close = kind == MarkerKind::CallClose && self.open.may_lack_closing();
        if may_close || !self.quoted.is_empty() {
            self.quoted.push(QuotedMarker { kind, spelled, at });
        }
        self.push(spelled, at);
    }

    /// True if a marker here would be inside a string of the call.
    pub(super) fn is_quoted(&self) -> bool {
        self.open.quoted(&self.body.text)
    }

    /// True if an attempt to read it at a marker is due.
    pub(super) fn is_worth_reading(&mut self) -> bool {
        let worth = self.readings < READINGS || self.body.text.len() >= 2 * self.read_to;
        if worth {
            self.readings += 1;
            self.read_to = self.body.text.len();
        }
        worth
    }

    /// The calls in it if it ends here.
    pub(super) fn read(&self, tools: &Tools, verbatim: bool, closed: bool) -> Option<ParsedCalls> {
        let unwrapped = self.open.is_unwrapped();
        let around = CallContext {
            closed: closed && !unwrapped,
            unwrapped,
            verbatim,
        };
        match &self.name {
            Some(name) => tool_calls::read_arguments(name, &self.body.text),
            None => tool_calls::read(&self.body.text, tools, around),
        }
    }
}
