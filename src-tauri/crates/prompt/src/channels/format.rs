//! The markers by which a model sets its reasoning and its tool calls apart from its answer.

use super::{gemma4, think};
use crate::tokenizer::Tokenizer;
use crate::tool_call::Syntax;

/// What a marker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Opens a thought.
    Open,
    /// Closes a thought.
    Close,
    /// Opens a tool call.
    CallOpen,
    /// Closes a tool call.
    CallClose,
}

/// One marker of a model.
#[derive(Debug, Clone)]
pub(super) struct Marker {
    pub mark: Mark,
    pub text: &'static str,
    /// The token that is this marker; without one it is looked for in the text.
    pub id: Option<u32>,
}

/// A way of speaking: its markers and their rules.
#[derive(Debug, Clone)]
pub(crate) struct Format {
    pub(super) markers: Vec<Marker>,
    /// What must follow an opening marker up to the line's end for it to open a thought.
    pub(super) label: Option<&'static str>,
    /// How tool calls are written.
    pub(super) calls: Syntax,
    /// Whether a tool call inside a thought ends the thought; else it is a word of it.
    pub(super) calls_end_thoughts: bool,
}

impl Format {
    /// The format whose markers the tokenizer or the template knows.
    pub(crate) fn detect(tokenizer: &Tokenizer, template: &str) -> Self {
        gemma4::format(tokenizer).unwrap_or_else(|| think::format(tokenizer, template))
    }

    pub(super) fn new(pairs: &[(Mark, &'static str)], tokenizer: &Tokenizer) -> Self {
        let markers = pairs
            .iter()
            .map(|(mark, text)| Marker {
                mark: *mark,
                text,
                id: tokenizer.id(text),
            })
            .collect();
        Self {
            markers,
            label: None,
            calls: Syntax::Json,
            calls_end_thoughts: false,
        }
    }

    pub(super) fn marker(&self, mark: Mark) -> Option<&Marker> {
        self.markers.iter().find(|marker| marker.mark == mark)
    }

    /// How a marker is spelled; empty where the model has none of the kind.
    pub(super) fn spelled(&self, mark: Mark) -> &'static str {
        self.marker(mark).map_or("", |marker| marker.text)
    }
}
