//! MiniMax-M3's calls: `<invoke name="NAME">` whose arguments are elements named after them, nested as the value is,
//! each tag after the marker `]<]minimax[>[`, which no text contains by chance. `<item>` elements make a list.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::tool_calls::call::{ParsedCall, ParsedCalls, DEPTH};
use crate::tool_calls::schema::{only_type, typed};
use crate::tool_calls::tag::{fit, pass, skip_blank, Fit};
use crate::tool_calls::tools::Tools;

/// Stands before each tag.
const SPACE: &str = "]<]minimax[>[";

/// No name of an argument is longer; what is to close it is compared with what may do so each time that more is there.
const LONGEST_NAME: usize = 1024;

/// True if the text begins with a call of this form; `Err` while that is undecided.
pub(super) fn begins(text: &str, at_end: bool) -> Result<bool, ()> {
    match fit(text, &[SPACE], at_end) {
        Fit::Begun => Err(()),
        fits => Ok(fits != Fit::No),
    }
}

#[derive(Debug, Clone)]
enum State {
    /// Before a tag.
    Between,
    /// In a tag whose name begins here.
    Tag(usize),
    /// After the opening tag of this name, as long as nothing is known of what it holds.
    Opened(Range<usize>),
    /// In the text of the element of this name.
    Text(Range<usize>),
}

/// Tags that are still being written, read from the left.
#[derive(Debug, Clone)]
pub(super) struct Namespaced {
    state: State,
    at: usize,
    depth: usize,
    /// The names of the elements that are open, and if each was closed by its own.
    open: Vec<Range<usize>>,
    nested: bool,
    closed: bool,
    broken: bool,
}

impl Namespaced {
    pub(super) fn new(at: usize) -> Self {
        Self {
            state: State::Between,
            at,
            depth: 0,
            open: Vec::new(),
            nested: true,
            closed: false,
            broken: false,
        }
    }

    /// True if text that follows would be inside a value.
    pub(super) fn quoted(&self) -> bool {
        matches!(self.state, State::Text(_) | State::Opened(_))
    }

    /// True if everything that was opened is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed && self.depth == 0
    }

    /// The place from which on nothing is decided: the value that is open, or else all that was not read.
    pub(super) fn settled(&self) -> usize {
        match &self.state {
            _ if !self.nested => 0,
            State::Opened(key) | State::Text(key) => key.end + 1,
            State::Tag(start) => *start,
            State::Between if self.broken => 0,
            State::Between => self.at,
        }
    }

    /// Reads on; what more text will tell waits.
    pub(super) fn advance(&mut self, text: &str) {
        while !self.broken {
            let Some(next) = self.step(text) else { return };
            self.state = next;
        }
    }

    fn step(&mut self, text: &str) -> Option<State> {
        match &self.state {
            State::Text(key) => {
                let closing = [SPACE, "</", &text[key.clone()], ">"];
                let end = pass(text, &mut self.at, ']', |at| fit(&text[at..], &closing, false))?;
                // A text that looks like a tag of another element may be one.
                self.nested &= !text[key.end..end].contains(SPACE);
                self.depth -= 1;
                self.open.pop();
                Some(State::Between)
            }
            State::Opened(key) => {
                self.at = skip_blank(text, self.at);
                let inner = &text[self.at..];
                match (fit(inner, &[SPACE, "</"], false), fit(inner, &[SPACE, "<"], false)) {
                    (Fit::Begun, _) | (_, Fit::Begun) => None,
                    (Fit::No, Fit::Whole(_)) => Some(State::Between),
                    _ => Some(State::Text(key.clone())),
                }
            }
            State::Tag(start) => {
                let start = *start;
                let end = pass(text, &mut self.at, '>', |_| Fit::Whole(1))?;
                self.broken = end - start > LONGEST_NAME;
                if let Some(name) = text[start..end].strip_prefix('/') {
                    let opened = self.open.pop().map(|opened| &text[opened]);
                    self.nested &= opened.and_then(|opened| opened.split(' ').next()) == Some(name);
                    self.depth = self.depth.saturating_sub(1);
                    self.closed |= self.depth == 0;
                    return Some(State::Between);
                }
                self.depth += 1;
                self.open.push(start..end);
                Some(match self.depth {
                    1 => State::Between,
                    _ => State::Opened(start..end),
                })
            }
            State::Between => {
                self.at = skip_blank(text, self.at);
                let fits = fit(&text[self.at..], &[SPACE, "<"], false);
                self.broken = fits == Fit::No;
                let Fit::Whole(length) = fits else { return None };
                self.at += length;
                Some(State::Tag(self.at))
            }
        }
    }
}

/// One call or several.
pub(super) fn read(text: &str, tools: &Tools) -> Option<ParsedCalls> {
    let (mut found, mut rest) = (ParsedCalls::default(), text);
    while let Some(after) = rest.trim_start().strip_prefix(SPACE) {
        let Some((call, after)) = call(after, tools) else {
            found.broken = true;
            break;
        };
        found.add(call, text.len() - after.len());
        rest = after;
    }
    found.some()
}

fn call<'a>(text: &'a str, tools: &Tools) -> Option<(ParsedCall, &'a str)> {
    let (name, inner) = text.strip_prefix("<invoke name=\"")?.split_once("\">")?;
    let (fields, rest) = fields(inner, "invoke", 0)?;
    let arguments = object(fields, |key| tools.schema(name, key))?;
    (!name.is_empty() && !name.contains(['<', '"'])).then_some(((name.to_owned(), arguments.into()), rest))
}

/// An object of elements; those of one name make a list.
fn object<'a>(fields: Vec<(&str, Node<'_>)>, schema: impl Fn(&str) -> Option<&'a Value>) -> Option<Map<String, Value>> {
    let mut lists: Vec<(&str, Vec<Node<'_>>)> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (key, node) in fields {
        let at = *known.entry(key).or_insert(lists.len());
        if at == lists.len() {
            lists.push((key, Vec::new()));
        }
        lists[at].1.push(node);
    }
    let value = |(key, mut nodes): (&str, Vec<Node<'_>>)| {
        let schema = schema(key);
        let value = match nodes.len() {
            1 => nodes.remove(0).value(schema)?,
            _ => list(nodes.into_iter(), schema)?,
        };
        Some((key.to_owned(), value))
    };
    lists.into_iter().map(value).collect()
}

fn list<'a>(nodes: impl Iterator<Item = Node<'a>>, schema: Option<&Value>) -> Option<Value> {
    let items = schema.and_then(|schema| schema.get("items"));
    nodes.map(|node| node.value(items)).collect()
}

/// The content of an element.
enum Node<'a> {
    Text(&'a str),
    Fields(Vec<(&'a str, Node<'a>)>),
}

impl Node<'_> {
    /// The value, with the types that the schema asks for.
    fn value(self, schema: Option<&Value>) -> Option<Value> {
        let kind = schema.and_then(only_type);
        match self {
            // An empty list or object has no elements to tell it from a text.
            Node::Text("") if kind == Some("array") => Some(Value::Array(Vec::new())),
            Node::Text("") if kind == Some("object") => Some(Map::new().into()),
            Node::Text(text) => Some(typed(schema, text)),
            Node::Fields(fields) if kind != Some("object") && fields.iter().all(|(key, _)| *key == "item") => {
                list(fields.into_iter().map(|(_, node)| node), schema)
            }
            Node::Fields(fields) => {
                let properties = schema.and_then(|schema| schema.get("properties"));
                object(fields, |key| properties.and_then(|properties| properties.get(key))).map(Value::Object)
            }
        }
    }
}

/// The elements up to the closing tag of `parent`, and what stands after it.
fn fields<'a>(mut text: &'a str, parent: &str, depth: usize) -> Option<(Vec<(&'a str, Node<'a>)>, &'a str)> {
    if depth >= DEPTH {
        return None;
    }
    let mut found = Vec::new();
    loop {
        let tag = text.trim_start().strip_prefix(SPACE)?.strip_prefix('<')?;
        if let Some(closing) = tag.strip_prefix('/') {
            let rest = closing.strip_prefix(parent)?.strip_prefix('>')?;
            return Some((found, rest));
        }
        let (key, inner) = tag
            .split_once('>')
            .filter(|(key, _)| !key.is_empty() && !key.contains(['<', '\n']))?;
        let nested = inner
            .trim_start()
            .strip_prefix(SPACE)
            .is_some_and(|tag| !tag.starts_with("</"));
        let (node, rest) = if nested {
            let (fields, rest) = fields(inner, key, depth + 1)?;
            (Node::Fields(fields), rest)
        } else {
            let (value, rest) = inner.split_once(&format!("{SPACE}</{key}>"))?;
            (Node::Text(value), rest)
        };
        found.push((key, node));
        text = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn calls(text: &str) -> Option<Value> {
        let tools = Tools::new(&[
            json!({"type": "function", "function": {"name": "f", "parameters": {"properties": {
            "s": {"type": "string"}, "i": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}},
            "o": {"type": "object", "properties": {"item": {"type": "boolean"}}}}}}}),
        ]);
        read(&text.replace('§', SPACE), &tools).map(|reading| json!([reading.calls, reading.end]))
    }

    fn written(text: &str) -> usize {
        text.replace('§', SPACE).len()
    }

    #[test]
    fn arguments_are_elements_of_their_names() {
        let text = "§<invoke name=\"f\">§<s>12§</s>§<i>-12§</i>§<l>§<item>1§</item>§<item>b c§</item>§</l>§<o>§<item>true§</item>§</o>§</invoke>\n§<invoke name=\"g\">§<a>§<k>1§</k>§</a>§</invoke>";
        let read =
            json!([["f", {"s": "12", "i": -12, "l": ["1", "b c"], "o": {"item": true}}], ["g", {"a": {"k": 1}}]]);
        assert_eq!(calls(text), Some(json!([read, written(text)])));
        let empty = "§<invoke name=\"f\">§<s>§</s>§<l>§</l>§<o>§</o>§</invoke>";
        assert_eq!(
            calls(empty),
            Some(json!([[["f", {"s": "", "l": [], "o": {}}]], written(empty)]))
        );
        // Tags without the marker are text.
        let code = "§<invoke name=\"f\">§<s>a </s> <b>§</s>§</invoke>";
        assert_eq!(calls(code), Some(json!([[["f", {"s": "a </s> <b>"}]], written(code)])));
    }

    #[test]
    fn broken_ones_are_none() {
        for text in [
            "§<invoke name=\"f\">",
            "§<invoke name=\"f\">§<s>1",
            "§<invoke name=\"f\">§<s>1§</i>§</invoke>",
            "§<invoke>§</invoke>",
            "§<tool>",
        ] {
            assert_eq!(calls(text), None, "{text}");
        }
        let deep = format!("§<invoke name=\"f\">{}", "§<a>".repeat(100_000));
        assert_eq!(calls(&deep), None);
    }
}
