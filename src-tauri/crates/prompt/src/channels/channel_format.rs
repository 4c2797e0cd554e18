//! The markers by which a model sets its reasoning and its tool calls apart from its answer.

use super::header::Headers;
use super::known_calls::CALLS;
use super::known_formats::{self, THOUGHTS};
use crate::tokenizer::Tokenizer;

/// What a marker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkerKind {
    /// Opens a thought.
    Open,
    /// Closes a thought.
    Close,
    /// Opens the answer, if a model wraps it; says nothing by itself.
    AnswerOpen,
    /// Closes a wrapped answer.
    AnswerClose,
    /// Opens a tool call.
    CallOpen,
    /// Closes a tool call.
    CallClose,
    /// The first words of a call whose opening marker is missing; they belong to the call.
    CallHead,
    /// The same in the middle of a line.
    CallWord,
    /// Stands around several calls; says nothing by itself.
    Section,
    /// Opens the header of a message.
    HeaderOpen,
    /// Stands in a header before the name of a channel.
    Channel,
    /// Closes a header; the message follows.
    HeaderClose,
    /// Closes a message.
    MessageClose,
}

/// One marker of a model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marker {
    pub kind: MarkerKind,
    pub text: &'static str,
    /// The token that is this marker; without one it is looked for in the text.
    pub id: Option<u32>,
}

/// A way of speaking: its markers and their rules.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChannelFormat {
    pub(super) markers: Vec<Marker>,
    /// What stands between a thought and the answer, as far as the table knows.
    pub(super) terminator: Option<&'static str>,
    /// What must follow an opening marker up to the line's end for it to open a thought.
    pub(super) label: Option<&'static str>,
    /// Whether a tool call or an answer's marker inside a thought ends the thought; else it is a word of it.
    pub(super) ends_thoughts: bool,
    /// How the header of every message says where it belongs, if messages have one.
    pub(super) headers: Option<Headers>,
    /// Whether an answer may be a tool call without any marker.
    pub(super) bare_calls: bool,
    /// Whether the values of arguments stand right between their tags.
    pub(super) verbatim: bool,
}

impl ChannelFormat {
    /// The format whose markers the tokenizer or the template knows.
    pub(crate) fn detect(tokenizer: &Tokenizer, template: &str) -> Self {
        Self::known(template, &|text| tokenizer.id(text))
    }

    /// The format whose markers the template knows, if there is no tokenizer to ask; every marker is looked for in the text.
    pub(crate) fn spoken(template: &str) -> Self {
        let mut format = Self::known(template, &|text| template.contains(text).then_some(0));
        format.markers.iter_mut().for_each(|marker| marker.id = None);
        format
    }

    fn known(template: &str, id: &impl Fn(&str) -> Option<u32>) -> Self {
        let is_token = |text: &str| id(text).is_some();
        if known_formats::FUNCTIONARY.needed.iter().all(|text| template.contains(text)) {
            let mut format = Self::default();
            format.add(&known_formats::FUNCTIONARY);
            return format;
        }
        for row in [&known_formats::HARMONY, &known_formats::MUSE, &known_formats::GEMMA4] {
            let mut format = Self::default();
            format.add(row);
            format.resolve(id);
            // A template may speak of these markers; only a model that has them as tokens writes them.
            if row.needed.iter().all(|text| is_token(text)) {
                // Muse's calls are spelled in several tokens.
                format
                    .markers
                    .retain(|marker| marker.id.is_some() || row.headers == Some(Headers::Recipients));
                return format;
            }
        }
        let known = |text: &&str| is_token(text) || template.contains(*text);
        let mut format = Self::default();
        if let Some(row) = THOUGHTS.iter().find(|row| row.needed.iter().any(known)) {
            format.add(row);
        }
        let calls: Vec<_> = CALLS.iter().filter(|row| row.needed.iter().all(known)).collect();
        let alone = calls.iter().any(|row| row.alone);
        calls.iter().filter(|row| row.alone == alone).for_each(|row| format.add(row));
        format.resolve(id);
        format
    }

    /// A format by its name, for text without a tokenizer.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (_, rows) = known_formats::NAMES.iter().find(|(known, _)| *known == name)?;
        let mut format = Self::default();
        rows.iter().for_each(|row| format.add(row));
        Some(format)
    }

    fn add(&mut self, row: &known_formats::KnownFormat) {
        for (kind, text) in row.markers {
            if !self.markers.iter().any(|marker| marker.text == *text) {
                let (kind, text, id) = (*kind, *text, None);
                self.markers.push(Marker { kind, text, id });
            }
        }
        self.terminator = self.terminator.or(row.terminator);
        self.label = self.label.or(row.label);
        self.ends_thoughts |= row.ends_thoughts;
        self.headers = self.headers.or(row.headers);
        self.bare_calls |= row.bare_calls;
        self.verbatim |= row.verbatim;
    }

    fn resolve(&mut self, id: &impl Fn(&str) -> Option<u32>) {
        for marker in &mut self.markers {
            marker.id = id(marker.text);
        }
    }

    pub(super) fn marker(&self, mark: MarkerKind) -> Option<&Marker> {
        self.markers.iter().find(|marker| marker.kind == mark)
    }

    /// How a marker is spelled; empty if the model has none of the kind.
    pub(super) fn spelled(&self, mark: MarkerKind) -> &'static str {
        self.marker(mark).map_or("", |marker| marker.text)
    }

    /// How the markers that close calls are spelled.
    pub(super) fn closings(&self) -> impl Iterator<Item = &'static str> + '_ {
        let closing = self.markers.iter().filter(|marker| marker.kind == MarkerKind::CallClose);
        closing.map(|marker| marker.text)
    }

    /// The markers that open calls, as far as they are tokens.
    pub(crate) fn call_openings(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        self.tokens(MarkerKind::CallOpen)
    }

    /// The markers that close calls, as far as they are tokens.
    pub(crate) fn call_closings(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        self.tokens(MarkerKind::CallClose)
    }

    fn tokens(&self, kind: MarkerKind) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        let markers = self.markers.iter().filter(move |marker| marker.kind == kind);
        markers.filter_map(|marker| Some((marker.text, marker.id?)))
    }

    /// How a prompt opens a thought that nothing was said in, whole.
    pub(crate) fn opened(&self) -> Option<String> {
        match self.headers {
            Some(Headers::Lines) => return None,
            Some(headers) => return Some(format!("<|start|>assistant{}<|message|>", headers.thought())),
            None => {}
        }
        let label = self.label.map(|label| format!("{label}\n")).unwrap_or_default();
        self.marker(MarkerKind::Open).map(|marker| format!("{}{label}", marker.text))
    }

    /// Tokens that end an answer in this format, whatever the model's files say. `<|end|>` stands between harmony's messages.
    pub(crate) fn ends(&self) -> &'static [&'static str] {
        match self.headers {
            Some(Headers::Channels) => &["<|return|>", "<|call|>"],
            Some(Headers::Recipients) => &["<|eot|>"],
            Some(Headers::Lines) | None => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands in text is found from the left, and the result must not depend on the pieces it comes in.
    #[test]
    fn no_marker_is_part_of_another_one() {
        for (name, _) in known_formats::NAMES {
            let format = ChannelFormat::named(name).unwrap();
            for marker in &format.markers {
                let others = format.markers.iter().filter(|other| other.text != marker.text);
                others.for_each(|other| assert!(!other.text.contains(marker.text), "{name}: {} in {}", marker.text, other.text));
            }
        }
    }
}
