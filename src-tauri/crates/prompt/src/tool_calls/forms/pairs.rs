//! Calls as pairs of elements after the tool's name: GLM's `NAME<arg_key>KEY</arg_key><arg_value>…</arg_value>`,
//! LongCat's with a prefix, and Hunyuan 3's after `NAME<tool_sep:opensource>`, with an ending.
//!
//! Nothing in a value is escaped, so a value ends at a closing tag after which another key or the end of the call
//! follows.

use std::ops::Range;

use serde_json::{json, Map};

use crate::tool_calls::call::{insert, ParsedCalls};
use crate::tool_calls::schema::typed;
use crate::tool_calls::tag::{first, fit, pass, skip_blank, Fit};
use crate::tool_calls::tools::Tools;

/// How the names of the tags begin and end.
type PairTags = (&'static str, &'static str);

/// The second are K2 Horizon's, which may also say the type.
const PAIR_TAGS: [PairTags; 4] = [("", ">"), ("ifm|", ">"), ("longcat_", ">"), ("", ":opensource>")];
const SEPARATOR: &str = "<tool_sep:opensource>";

const KEY: &str = "arg_key";
const TYPE: &str = "arg_type";
const VALUE: &str = "arg_value";

fn tag((prefix, ending): PairTags, text: &str, opening: &str, name: &str, at_end: bool) -> Fit {
    fit(text, &[opening, prefix, name, ending], at_end)
}

/// True if the text begins like the pairs after a name; `Err` while that is undecided.
pub(super) fn follow(text: &str, at_end: bool) -> Result<bool, ()> {
    let keys = PAIR_TAGS.map(|tags| ((), tag(tags, text, "<", KEY, at_end)));
    let separator = ((), fit(text, &[SEPARATOR], at_end));
    first(keys.into_iter().chain([separator])).map(|found| found.is_some())
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Before a key or the end.
    Between,
    /// In an element of this name.
    Open {
        name: &'static str,
        start: usize,
    },
    /// Between a key and its value.
    Keyed,
    /// After a closing tag that ends the value if nothing but another key follows.
    Closed {
        start: usize,
        end: usize,
    },
    Broken,
}

/// Pairs that are still being written, read from the left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pairs {
    state: State,
    at: usize,
    /// How the tags of the pair are written.
    tags: PairTags,
}

impl Pairs {
    /// The pairs that begin here, after the name.
    pub(super) fn new(text: &str, at: usize) -> Self {
        let separator = text[at..].starts_with(SEPARATOR);
        Self {
            state: State::Between,
            at: at + if separator { SEPARATOR.len() } else { 0 },
            tags: PAIR_TAGS[0],
        }
    }

    /// Reads on; what more text will tell waits.
    pub(super) fn advance(&mut self, text: &str) {
        while self.step(text, false).is_some() {}
    }

    /// True if text that follows would be inside a value.
    pub(super) fn quoted(&self) -> bool {
        matches!(self.state, State::Open { name: VALUE, .. })
    }

    /// True if everything that was opened is closed.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. } | State::Between)
    }

    /// The place from which on nothing is decided: the value that is open, or else all that was not read.
    pub(super) fn settled(&self) -> usize {
        match self.state {
            State::Open { start, .. } => start,
            State::Broken => 0,
            State::Between | State::Keyed | State::Closed { .. } => self.at,
        }
    }

    /// The next element: its name and its content.
    fn step(&mut self, text: &str, at_end: bool) -> Option<(&'static str, Range<usize>)> {
        loop {
            if let State::Open { name, start } = self.state {
                let tags = self.tags;
                let end = pass(text, &mut self.at, '<', |at| tag(tags, &text[at..], "</", name, at_end))?;
                if name != VALUE {
                    self.state = State::Keyed;
                    return Some((name, start..end));
                }
                self.state = State::Closed { start, end };
            }
            self.at = skip_blank(text, self.at);
            let rest = &text[self.at..];
            match self.state {
                State::Broken | State::Open { .. } => return None,
                State::Between => match first(PAIR_TAGS.map(|tags| (tags, tag(tags, rest, "<", KEY, at_end)))) {
                    Ok(Some((tags, length))) => {
                        self.tags = tags;
                        self.open(KEY, length);
                    }
                    Ok(None) if !rest.is_empty() => self.state = State::Broken,
                    _ => return None,
                },
                State::Keyed => {
                    match first([TYPE, VALUE].map(|name| (name, tag(self.tags, rest, "<", name, at_end)))) {
                        Ok(Some((name, length))) => self.open(name, length),
                        Err(()) => return None,
                        Ok(None) => self.state = State::Broken,
                    }
                }
                State::Closed { start, end } => match tag(self.tags, rest, "<", KEY, at_end) {
                    Fit::Begun => return None,
                    Fit::No if !rest.is_empty() => self.state = State::Open { name: VALUE, start },
                    _ => {
                        self.state = State::Between;
                        return Some((VALUE, start..end));
                    }
                },
            }
        }
    }

    fn open(&mut self, name: &'static str, length: usize) {
        self.at += length;
        self.state = State::Open { name, start: self.at };
    }
}

/// The one call. Without its closing marker it may have wanted to say more, unless it says all that its tool needs.
pub(super) fn read(text: &str, tools: &Tools, closed: bool) -> Option<ParsedCalls> {
    let at = text
        .match_indices('<')
        .map(|(at, _)| at)
        .find(|at| follow(&text[*at..], true) == Ok(true))?;
    let name = text[..at].trim();
    let mut pairs = Pairs::new(text, at);
    let (mut arguments, mut key, mut kind) = (Map::new(), "", None);
    while let Some(found) = pairs.step(text, true) {
        match found {
            (KEY, found) => (key, kind) = (text[found].trim(), None),
            (TYPE, found) => kind = Some(json!({"type": text[found].trim()})),
            (_, value) => {
                let schema = kind.as_ref().or_else(|| tools.schema(name, key));
                insert(&mut arguments, key, typed(schema, &text[value]))?;
            }
        }
    }
    let whole = matches!(pairs.state, State::Between) && pairs.at == text.len();
    let fits = whole && !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '<');
    let whole = closed || !arguments.is_empty() && tools.suffice(name, &arguments);
    (fits && whole).then(|| ParsedCalls::one((name.to_owned(), arguments.into()), text.len()))
}

/// A name alone is a call if a tool has it.
pub(super) fn name_alone(text: &str, tools: &Tools) -> Option<ParsedCalls> {
    let name = text.trim();
    tools
        .has(name)
        .then(|| ParsedCalls::one((name.to_owned(), Map::new().into()), text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_stands_before_its_pairs() {
        let read = |text: &str| read(text, &Tools::default(), true).map(|reading| json!(reading.calls));
        let text = "f<tool_sep:opensource>\n<arg_key:opensource>a</arg_key:opensource>\n<arg_value:opensource>1</arg_value:opensource>\n<arg_key:opensource>s</arg_key:opensource>\n<arg_value:opensource>x:opensource></arg_value></arg_value:opensource>\n";
        assert_eq!(
            read(text),
            Some(json!([["f", {"a": 1, "s": "x:opensource></arg_value>"}]]))
        );
        assert_eq!(read("now<tool_sep:opensource>\n"), Some(json!([["now", {}]])));
        for text in [
            "<tool_sep:opensource>",
            "a b<tool_sep:opensource>",
            "f<tool_sep:opensource>\n<arg_key:opensource>a",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
