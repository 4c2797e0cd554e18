//! The rows of the tables of formats.

use super::header::Headers;
use super::marker::MarkerKind::{
    self, AnswerClose, AnswerOpen, CallClose, CallHead, CallOpen, CallWord, Close, Frame, Open, Section,
};

/// An opening marker and the one that closes it; the second is empty if nothing does.
type Pair = (&'static str, &'static str);

/// A row of the tables: markers that belong together.
pub(super) struct KnownFormat {
    /// The named formats that the row is a part of, each with the row of its thoughts.
    pub formats: &'static [(&'static str, &'static KnownFormat)],
    /// The texts that show that a model has these markers, if they are not the first of them: any of these texts for
    /// thoughts, all of them for calls.
    pub needed: &'static [&'static str],
    /// The text between a thought and the answer, if the template does not show it; `None`: the closing marker alone.
    pub terminator: Option<&'static str>,
    pub thoughts: &'static [Pair],
    pub answers: &'static [Pair],
    pub calls: &'static [Pair],
    /// The first words of calls without an opening marker, and those that count in the middle of a line.
    pub heads: &'static [&'static str],
    pub words: &'static [&'static str],
    pub sections: &'static [&'static str],
    /// Markers around words of an answer or a thought.
    pub frames: &'static [&'static str],
    /// Markers of messages and their headers.
    pub messages: &'static [(MarkerKind, &'static str)],
    pub label: Option<&'static str>,
    pub ends_thoughts: bool,
    pub headers: Option<Headers>,
    pub bare_calls: bool,
    /// True if the values of arguments stand right between their tags.
    pub verbatim: bool,
    /// True if no other way of marking calls counts next to it.
    pub alone: bool,
}

/// The defaults of a row.
pub(super) const ROW: KnownFormat = KnownFormat {
    formats: &[],
    needed: &[],
    terminator: None,
    thoughts: &[],
    answers: &[],
    calls: &[],
    heads: &[],
    words: &[],
    sections: &[],
    frames: &[],
    messages: &[],
    label: None,
    ends_thoughts: false,
    headers: None,
    bare_calls: false,
    verbatim: false,
    alone: false,
};

impl KnownFormat {
    /// The texts that have to be known for the row to apply.
    pub fn needed(&self) -> Vec<&'static str> {
        match (self.thoughts, self.calls) {
            _ if !self.needed.is_empty() => self.needed.to_vec(),
            ([(open, close), ..], _) => vec![open, close],
            ([], [(open, _), ..]) => vec![open],
            ([], []) => [self.heads, self.words].concat(),
        }
    }

    /// The markers with their effects.
    pub fn markers(&self) -> impl Iterator<Item = (MarkerKind, &'static str)> {
        let pairs = [
            (Open, Close, self.thoughts),
            (AnswerOpen, AnswerClose, self.answers),
            (CallOpen, CallClose, self.calls),
        ];
        let single = [
            (CallHead, self.heads),
            (CallWord, self.words),
            (Section, self.sections),
            (Frame, self.frames),
        ];
        let pairs = pairs.into_iter().flat_map(|(opens, closes, pairs)| {
            let both = move |(open, close): &Pair| [(opens, *open), (closes, *close)];
            pairs.iter().flat_map(both)
        });
        let single = single
            .into_iter()
            .flat_map(|(kind, texts)| texts.iter().map(move |text| (kind, *text)));
        let all = pairs.chain(single).chain(self.messages.iter().copied());
        all.filter(|(_, text)| !text.is_empty())
    }
}
