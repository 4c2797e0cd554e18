//! Kimi K3's calls: `tool="NAME" index="1"<|sep|>`, then `<|open|>argument key="KEY"
//! type="string"<|sep|>…<|close|>argument<|sep|>` for each argument or `<|open|>json
//! type="object"<|sep|>{…}<|close|>json<|sep|>` for all.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::tool_calls::call::{insert, ParsedCalls};
use crate::tool_calls::tag::{fit, pass, skip_blank, Fit};
use crate::tool_calls::tools::Tools;

const OPEN: &str = "<|open|>";
const CLOSE: &str = "<|close|>";
const SEPARATOR: &str = "<|sep|>";

#[derive(Debug, Clone, Copy)]
enum State {
    /// In the tag of the call or, if it is no head, of an argument, up to its end.
    Tag {
        start: usize,
        head: bool,
    },
    /// Before an argument or the end.
    Between,
    Value {
        start: usize,
    },
    /// After a closing tag that ends the value if nothing but another argument follows.
    Closed {
        start: usize,
        end: usize,
    },
    Broken,
}

enum Found {
    Head(Range<usize>),
    Tag(Range<usize>),
    Value(Range<usize>),
}

/// Tags that are still being written, read from the left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tags {
    state: State,
    at: usize,
    /// The name of the open argument's tag.
    element: &'static str,
}

impl Tags {
    pub(super) fn new(at: usize) -> Self {
        let state = State::Tag { start: at, head: true };
        let element = "argument";
        Self { state, at, element }
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

    /// True if the arguments were JSON, so that nothing in them reaches beyond, although they may not be valid.
    pub(super) fn is_sound(&self, text: &str) -> bool {
        let named = || {
            text.split(SEPARATOR)
                .next()
                .is_some_and(|head| attribute(head, "tool").is_some())
        };
        self.element == "json" && self.is_closed() && named()
    }

    /// The place from which on nothing is decided: the value that is open, or else all that was not read.
    pub(super) fn settled(&self) -> usize {
        match self.state {
            State::Tag { start, .. } | State::Value { start } => start,
            State::Broken => 0,
            State::Between | State::Closed { .. } => self.at,
        }
    }

    fn step(&mut self, text: &str, at_end: bool) -> Option<Found> {
        loop {
            match self.state {
                State::Broken => return None,
                State::Tag { start, head } => {
                    let end = self.pass(text, &[SEPARATOR], at_end)?;
                    if head {
                        self.state = State::Between;
                        return Some(Found::Head(start..end));
                    }
                    let json = text[start..end].starts_with("json");
                    self.element = if json { "json" } else { "argument" };
                    self.state = State::Value { start: self.at };
                    return Some(Found::Tag(start..end));
                }
                State::Between => {
                    self.at = skip_blank(text, self.at);
                    match fit(&text[self.at..], &[OPEN], at_end) {
                        Fit::Whole(length) => {
                            self.at += length;
                            let (start, head) = (self.at, false);
                            self.state = State::Tag { start, head };
                        }
                        Fit::No if self.at < text.len() => self.state = State::Broken,
                        _ => return None,
                    }
                }
                State::Value { start } => {
                    let end = self.pass(text, &[CLOSE, self.element, SEPARATOR], at_end)?;
                    self.state = State::Closed { start, end };
                }
                State::Closed { start, end } => {
                    self.at = skip_blank(text, self.at);
                    match fit(&text[self.at..], &[OPEN, self.element], at_end) {
                        Fit::Begun => return None,
                        Fit::No if self.at < text.len() => self.state = State::Value { start },
                        _ => {
                            self.state = State::Between;
                            return Some(Found::Value(start..end));
                        }
                    }
                }
            }
        }
    }

    /// Passes over the next tag of these pieces; the result is where it begins.
    fn pass(&mut self, text: &str, pieces: &[&str], at_end: bool) -> Option<usize> {
        pass(text, &mut self.at, '<', |at| fit(&text[at..], pieces, at_end))
    }
}

/// The one call. Without its closing marker it may have wanted to say more, unless it says all that its tool needs.
pub(super) fn read(text: &str, tools: &Tools, closed: bool) -> Option<ParsedCalls> {
    let mut tags = Tags::new(0);
    let (mut name, mut arguments) = (String::new(), Map::new());
    let mut tag = "";
    while let Some(found) = tags.step(text, true) {
        match found {
            Found::Head(head) => name = attribute(&text[head], "tool")?,
            Found::Tag(found) => tag = &text[found],
            Found::Value(value) if tag.starts_with("json") => {
                arguments.extend(serde_json::from_str::<Map<String, Value>>(&text[value]).ok()?);
            }
            Found::Value(value) => {
                let key = attribute(tag, "key")?;
                let value = &text[value];
                let typed = match attribute(tag, "type").as_deref() {
                    Some("string") | None => value.into(),
                    Some(_) => serde_json::from_str(value).unwrap_or_else(|_| tools.value(&name, &key, value)),
                };
                insert(&mut arguments, &key, typed)?;
            }
        }
    }
    let whole = matches!(tags.state, State::Between) && tags.at == text.len() && !name.is_empty();
    let whole = whole && (closed || !arguments.is_empty() && tools.suffice(&name, &arguments));
    whole.then(|| ParsedCalls::one((name, arguments.into()), text.len()))
}

/// An attribute of a tag. The quotation mark and what marks it are escaped, as the template has them.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    Some(value.replace("&quot;", "\"").replace("&amp;", "&"))
}
