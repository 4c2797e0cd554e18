//! Calls as pairs of elements after the tool's name: GLM's `NAME<arg_key>KEY</arg_key><arg_value>…</arg_value>`,
//! LongCat's with a prefix, and Hunyuan 3's after `NAME<tool_sep:opensource>`, with an ending.
//!
//! Nothing in a value is escaped, so a value ends at a closing tag after which another key or the end of the call
//! follows.

use std::ops::Range;

use serde_json::{json, Map};

use crate::tool_calls::call::{insert, ParsedCalls};
use crate::tool_calls::schema::typed;
use crate::tool_calls::tag::{first, fit, skip_blank, Fit};
use crate::tool_calls::tools::Tools;

/// How the names of the tags begin and end.
#[derive(Debug, Clone, Copy)]
struct PairTags {
    prefix: &'static str,
    ending: &'static str,
}

const PAIR_TAGS: [PairTags; 4] = [
    PairTags {
        prefix: "",
        ending: ">",
    },
    // K2 Horizon's, which may also say the type.
    PairTags {
        prefix: "ifm|",
        ending: ">",
    },
    PairTags {
        prefix: "longcat_",
        ending: ">",
    },
    PairTags {
        prefix: "",
        ending: ":opensource>",
    },
];
const SEPARATOR: &str = "<tool_sep:opensource>";

impl PairTags {
    fn tag(self, text: &str, opening: &str, name: &str, at_end: bool) -> Fit {
        fit(text, &[opening, self.prefix, name, self.ending], at_end)
    }
}

/// True if the text begins like the pairs after a name; `Err` while that is undecided.
pub(super) fn follow(text: &str, at_end: bool) -> Result<bool, ()> {
    let keys = PAIR_TAGS.map(|tags| ((), tags.tag(text, "<", "arg_key", at_end)));
    let separator = ((), fit(text, &[SEPARATOR], at_end));
    first(keys.into_iter().chain([separator])).map(|found| found.is_some())
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Before a key or the end.
    Between,
    Key {
        tags: PairTags,
        start: usize,
    },
    /// Between a key and its value.
    Keyed {
        tags: PairTags,
    },
    Type {
        tags: PairTags,
        start: usize,
    },
    Value {
        tags: PairTags,
        start: usize,
    },
    /// After a closing tag that ends the value if nothing but another key follows.
    Closed {
        tags: PairTags,
        start: usize,
        end: usize,
    },
    Broken,
}

enum Found {
    Key(Range<usize>),
    Type(Range<usize>),
    Value(Range<usize>),
}

/// Pairs that are still being written, read from the left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pairs {
    state: State,
    at: usize,
}

impl Pairs {
    /// The pairs that begin here, after the name.
    pub(super) fn new(text: &str, at: usize) -> Self {
        let separator = text[at..].starts_with(SEPARATOR);
        Self {
            state: State::Between,
            at: at + if separator { SEPARATOR.len() } else { 0 },
        }
    }

    /// Reads on; what more text will tell waits.
    pub(super) fn advance(&mut self, text: &str) {
        while self.step(text, false).is_some() {}
    }

    /// True if text that follows would be inside a value.
    pub(super) fn quoted(&self) -> bool {
        matches!(self.state, State::Value { .. })
    }

    /// True if everything that was opened is closed.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. } | State::Between)
    }

    fn step(&mut self, text: &str, at_end: bool) -> Option<Found> {
        loop {
            match self.state {
                State::Broken => return None,
                State::Between => {
                    self.at = skip_blank(text, self.at);
                    let rest = &text[self.at..];
                    match first(PAIR_TAGS.map(|tags| (tags, tags.tag(rest, "<", "arg_key", at_end)))) {
                        Ok(Some((tags, length))) => {
                            self.at += length;
                            self.state = State::Key { tags, start: self.at };
                        }
                        Ok(None) if !rest.is_empty() => self.state = State::Broken,
                        _ => return None,
                    }
                }
                State::Key { tags, start } => {
                    let end = self.closing(text, tags, "arg_key", at_end)?;
                    self.state = State::Keyed { tags };
                    return Some(Found::Key(start..end));
                }
                State::Keyed { tags } => {
                    self.at = skip_blank(text, self.at);
                    let rest = &text[self.at..];
                    match first(["arg_type", "arg_value"].map(|name| (name, tags.tag(rest, "<", name, at_end)))) {
                        Ok(Some((name, length))) => {
                            self.at += length;
                            let start = self.at;
                            self.state = match name {
                                "arg_type" => State::Type { tags, start },
                                _ => State::Value { tags, start },
                            };
                        }
                        Err(()) => return None,
                        Ok(None) => self.state = State::Broken,
                    }
                }
                State::Type { tags, start } => {
                    let end = self.closing(text, tags, "arg_type", at_end)?;
                    self.state = State::Keyed { tags };
                    return Some(Found::Type(start..end));
                }
                State::Value { tags, start } => {
                    let end = self.closing(text, tags, "arg_value", at_end)?;
                    self.state = State::Closed { tags, start, end };
                }
                State::Closed { tags, start, end } => {
                    self.at = skip_blank(text, self.at);
                    let rest = &text[self.at..];
                    match tags.tag(rest, "<", "arg_key", at_end) {
                        Fit::Begun => return None,
                        Fit::No if !rest.is_empty() => self.state = State::Value { tags, start },
                        _ => {
                            self.state = State::Between;
                            return Some(Found::Value(start..end));
                        }
                    }
                }
            }
        }
    }

    /// Passes over the next closing tag of this name; the result is where it begins.
    fn closing(&mut self, text: &str, tags: PairTags, name: &str, at_end: bool) -> Option<usize> {
        loop {
            let Some(at) = text[self.at..].find('<').map(|found| self.at + found) else {
                self.at = text.len();
                return None;
            };
            match tags.tag(&text[at..], "</", name, at_end) {
                Fit::Whole(length) => {
                    self.at = at + length;
                    return Some(at);
                }
                Fit::Begun => {
                    self.at = at;
                    return None;
                }
                Fit::No => self.at = at + 1,
            }
        }
    }
}

/// The one call.
pub(super) fn read(text: &str, tools: &Tools) -> Option<ParsedCalls> {
    let at = text
        .match_indices('<')
        .map(|(at, _)| at)
        .find(|at| follow(&text[*at..], true) == Ok(true))?;
    let name = text[..at].trim();
    let mut pairs = Pairs::new(text, at);
    let (mut arguments, mut key, mut kind) = (Map::new(), "", None);
    while let Some(found) = pairs.step(text, true) {
        match found {
            Found::Key(found) => (key, kind) = (text[found].trim(), None),
            Found::Type(found) => kind = Some(json!({"type": text[found].trim()})),
            Found::Value(value) => {
                let value = match &kind {
                    Some(_) => typed(kind.as_ref(), &text[value]),
                    None => tools.value(name, key, &text[value]),
                };
                insert(&mut arguments, key, value)?;
            }
        }
    }
    let whole = matches!(pairs.state, State::Between) && pairs.at == text.len();
    let fits = whole && !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '<');
    fits.then(|| ParsedCalls {
        calls: vec![(name.to_owned(), arguments.into())],
        end: text.len(),
    })
}

/// A name alone is a call if a tool has it.
pub(super) fn name_alone(text: &str, tools: &Tools) -> Option<ParsedCalls> {
    let name = text.trim();
    tools.has(name).then(|| ParsedCalls {
        calls: vec![(name.to_owned(), Map::new().into())],
        end: text.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_stands_before_its_pairs() {
        let read = |text: &str| read(text, &Tools::default()).map(|reading| json!(reading.calls));
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
