//! The markers that separate a model's reasoning and tool calls from its answer.

use std::collections::BTreeSet;

use super::calls::CALLS;
use super::header::Headers;
use super::marker::{Marker, MarkerKind};
use super::row::KnownFormat;
use super::thoughts::{FUNCTIONARY, THOUGHTS, WHOLE};
use crate::tokenizer::Tokenizer;

/// A way of speaking: its markers and their rules.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChannelFormat {
    pub(in crate::channels) markers: Vec<Marker>,
    /// The text between a thought and the answer, as far as the table knows.
    pub(in crate::channels) terminator: Option<&'static str>,
    /// The label that must follow an opening marker, up to the end of the line, for it to open a thought.
    pub(in crate::channels) label: Option<&'static str>,
    /// True if a tool call or an answer's marker inside a thought ends the thought; else it is a word of it.
    pub(in crate::channels) ends_thoughts: bool,
    /// The headers of messages, if they have one.
    pub(in crate::channels) headers: Option<Headers>,
    /// True if an answer may be a tool call without any marker.
    pub(in crate::channels) bare_calls: bool,
    /// True if the values of arguments stand right between their tags.
    pub(in crate::channels) verbatim: bool,
}

/// The rows that named formats are made of.
fn parts() -> impl Iterator<Item = &'static KnownFormat> {
    let whole = [&FUNCTIONARY].into_iter().chain(WHOLE.iter().copied());
    whole.chain(THOUGHTS.iter().copied()).chain(CALLS)
}

/// The names of the formats, in alphabetical order.
pub(in crate::channels) fn names() -> impl Iterator<Item = &'static str> {
    let names: BTreeSet<&str> = parts().flat_map(|row| row.formats).map(|(name, _)| *name).collect();
    names.into_iter()
}

impl ChannelFormat {
    /// The format whose markers the tokenizer or the template knows.
    pub(crate) fn detect(tokenizer: &Tokenizer, template: &str) -> Self {
        Self::known(template, &|text| tokenizer.id(text))
    }

    /// The format whose markers the template knows, if there is no tokenizer to ask; every marker is looked for in the
    /// text.
    pub(crate) fn spoken(template: &str) -> Self {
        let mut format = Self::known(template, &|text| template.contains(text).then_some(0));
        format.markers.iter_mut().for_each(|marker| marker.id = None);
        format
    }

    fn known(template: &str, id: &impl Fn(&str) -> Option<u32>) -> Self {
        let is_token = |text: &str| id(text).is_some();
        let mut format = Self::default();
        if FUNCTIONARY.needed.iter().all(|text| template.contains(text)) {
            format.add(&FUNCTIONARY);
            return format;
        }
        for row in WHOLE {
            let mut format = Self::default();
            format.add(row);
            format.resolve(id);
            // A template may speak of these markers; only a model that has them as tokens writes them.
            if row.needed().iter().all(|text| is_token(text)) {
                // Muse's calls are spelled in several tokens.
                format
                    .markers
                    .retain(|marker| marker.id.is_some() || row.headers == Some(Headers::Recipients));
                return format;
            }
        }
        let known = |text: &&str| is_token(text) || template.contains(*text);
        let thoughts = THOUGHTS.iter().find(|row| row.needed().iter().any(known));
        thoughts.into_iter().for_each(|row| format.add(row));
        let calls: Vec<_> = CALLS.iter().filter(|row| row.needed().iter().all(known)).collect();
        let alone = calls.iter().any(|row| row.alone);
        let calls = calls.iter().filter(|row| row.alone == alone);
        calls.for_each(|row| format.add(row));
        format.resolve(id);
        format
    }

    /// A format by its name, for text without a tokenizer.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut format = None::<Self>;
        for row in parts() {
            if let Some((_, thoughts)) = row.formats.iter().find(|(known, _)| *known == name) {
                let format = format.get_or_insert_default();
                format.add(thoughts);
                format.add(row);
            }
        }
        format
    }

    fn add(&mut self, row: &KnownFormat) {
        for (kind, text) in row.markers() {
            if !self.markers.iter().any(|marker| marker.text == text) {
                self.markers.push(Marker { kind, text, id: None });
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

    pub(in crate::channels) fn marker(&self, mark: MarkerKind) -> Option<&Marker> {
        self.markers.iter().find(|marker| marker.kind == mark)
    }

    /// How a marker is spelled; empty if the model has none of the kind.
    pub(in crate::channels) fn spelled(&self, mark: MarkerKind) -> &'static str {
        self.marker(mark).map_or("", |marker| marker.text)
    }

    /// The markers of these kinds.
    pub(in crate::channels) fn markers_of(&self, kinds: &'static [MarkerKind]) -> impl Iterator<Item = &Marker> {
        self.markers.iter().filter(|marker| kinds.contains(&marker.kind))
    }

    /// The markers that open or close calls, as far as they are tokens.
    pub(crate) fn call_tokens(&self, opening: bool) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        let markers = match opening {
            true => self.markers_of(&[MarkerKind::CallOpen]),
            false => self.markers_of(&[MarkerKind::CallClose]),
        };
        markers.filter_map(|marker| Some((marker.text, marker.id?)))
    }

    /// The label that opens a thought, with the end of its line; empty if there is none.
    pub(in crate::channels) fn label_line(&self) -> String {
        self.label.map(|label| format!("{label}\n")).unwrap_or_default()
    }

    /// How a prompt opens a thought that nothing was said in, whole.
    pub(crate) fn opened(&self) -> Option<String> {
        match self.headers {
            Some(Headers::Lines) => None,
            Some(headers) => Some(format!("<|start|>assistant{}<|message|>", headers.thought())),
            None => Some(format!("{}{}", self.marker(MarkerKind::Open)?.text, self.label_line())),
        }
    }

    /// Tokens that end an answer in this format, whatever the model's files say. `<|end|>` stands between harmony's
    /// messages.
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

    /// Markers in text are searched from the left, and the result must not depend on how the text is cut.
    #[test]
    fn no_marker_is_part_of_another_one() {
        for name in names() {
            let format = ChannelFormat::named(name).unwrap();
            for marker in &format.markers {
                let others = format.markers.iter().filter(|other| other.text != marker.text);
                others.for_each(|other| {
                    assert!(
                        !other.text.contains(marker.text),
                        "{name}: {} in {}",
                        marker.text,
                        other.text
                    )
                });
            }
        }
    }
}
