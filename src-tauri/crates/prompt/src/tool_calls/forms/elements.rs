//! Calls as elements whose arguments are plain text: `<function=NAME><parameter=KEY>…` of Qwen3-Coder and Seed,
//! `<invoke name="NAME"><parameter name="KEY">…` of MiniMax and DeepSeek, and `<function name="NAME"><param
//! name="KEY">…` of MiniCPM.
//!
//! Nothing in a value is escaped, so a value ends at a closing tag after which the call goes on or ends.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::tool_calls::call::{insert, CallContext, ParsedCall, ParsedCalls};
use crate::tool_calls::nesting::{Nesting, Notation};
use crate::tool_calls::tag::{first, fit, pass, skip_blank, Fit};
use crate::tool_calls::tools::Tools;

/// Prefixes that families put before the names of their elements.
const SPACES: &[&str] = &["", "｜DSML｜", "｜DSML｜ ", "atem:"];
const CALLS: [&str; 2] = ["function", "invoke"];
/// The longer name first, because the other one begins it.
const PARAMETERS: [&str; 2] = ["parameter", "param"];
/// The delimiters that MiniCPM puts around values with line ends and angle brackets.
const CDATA: [&str; 2] = ["<![CDATA[", "]]>"];

/// The name of an element with its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    space: &'static str,
    name: &'static str,
    /// True if the value of the name follows an equals sign.
    equals: bool,
}

impl Name {
    /// The one of these elements that a text opens, and how long `<NAME` is; `Err` while more text will tell.
    fn opened(text: &str, names: &'static [&'static str], at_end: bool) -> Result<Option<(Self, usize)>, ()> {
        let named = |space| {
            names
                .iter()
                .map(move |name| [true, false].map(|equals| Self { space, name, equals }))
        };
        let names = SPACES.iter().flat_map(|space| named(*space)).flatten();
        let opening = |name: Self| match fit(text, &["<", name.space, name.name], at_end) {
            Fit::Whole(length) => match text[length..].chars().next() {
                Some('=') if name.equals => Fit::Whole(length),
                Some(next) if next.is_whitespace() && !name.equals => Fit::Whole(length),
                None if !at_end => Fit::Begun,
                _ => Fit::No,
            },
            other => other,
        };
        first(names.map(|name| (name, opening(name))))
    }

    /// The closing tag of a parameter, as a call of this prefix has it.
    fn closed_parameter(self, text: &str, at_end: bool) -> Result<Option<((), usize)>, ()> {
        first(PARAMETERS.map(|name| ((), Self { name, ..self }.closed(text, at_end))))
    }

    fn closed(self, text: &str, at_end: bool) -> Fit {
        fit(text, &["</", self.space, self.name, ">"], at_end)
    }
}

/// True if the text begins with the element of a call; `Err` while that is undecided.
pub(super) fn begins(text: &str, at_end: bool) -> Result<bool, ()> {
    Name::opened(text, &CALLS, at_end).map(|found| found.is_some())
}

/// The names of an open argument and of its call.
#[derive(Debug, Clone, Copy)]
struct Argument {
    call: Name,
    parameter: Name,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Before a call or after one.
    Outside,
    /// In the opening tag of a call, after its name.
    Head(Name),
    /// In a call, before a parameter or the closing tag.
    Inside(Name),
    /// In the opening tag of a parameter.
    Key(Argument),
    Value(Argument),
    /// After a closing tag, which begins here and ends the value if the call goes on or ends.
    Closed(Argument, usize),
    /// After the call's closing tag as well, which counts if nothing but another call follows.
    Ended(Argument, usize),
    /// All arguments at once.
    Json(Name, Nesting),
    Broken,
}

/// A part that was read.
enum Found {
    Head(Range<usize>),
    Key(Range<usize>, Name),
    Value(Range<usize>),
    Json(Range<usize>),
    /// The closing tag of the call.
    End,
}

/// Elements that are still being written, read from the left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements {
    state: State,
    at: usize,
    /// The start of the name, key or value that is open.
    start: usize,
    /// True if words may follow a call, because it has no markers.
    unwrapped: bool,
    /// True if the text's end is the marker that closes the calls, and so also what they lack.
    closed: bool,
    /// The end of the last complete call.
    end: Option<usize>,
    /// True once a call had all its arguments as JSON.
    json: bool,
    /// True once anything but the name of the open call was read.
    begun: bool,
    /// True if a closing tag was skipped while no argument was open, or a value ends like one that was opened before.
    stray: bool,
}

impl Elements {
    pub(super) fn new(at: usize, unwrapped: bool) -> Self {
        Self {
            state: State::Outside,
            at,
            start: at,
            unwrapped,
            closed: false,
            end: None,
            json: false,
            begun: false,
            stray: false,
        }
    }

    /// Reads on; what more text will tell waits.
    pub(super) fn advance(&mut self, text: &str) {
        while self.step(text, false).is_some() {}
    }

    /// True if text that follows would be inside a value.
    pub(super) fn quoted(&self, text: &str) -> bool {
        match self.state {
            State::Value(_) | State::Closed(..) => true,
            State::Json(_, nesting) => nesting.quoted(text),
            _ => false,
        }
    }

    /// True if at least one call is complete and nothing more was begun.
    pub(super) fn is_closed(&self) -> bool {
        match self.state {
            State::Ended(..) => true,
            State::Outside => self.end.is_some(),
            _ => false,
        }
    }

    /// True after the end of an argument, if that is the call's as well.
    pub(super) fn may_lack_closing(&self) -> bool {
        matches!(self.state, State::Closed(..))
    }

    /// The place from which on nothing is decided: the value that is open, or else all that was not read.
    pub(super) fn settled(&self) -> usize {
        match &self.state {
            State::Head(_) | State::Key(_) | State::Value(_) => self.start,
            State::Json(_, nesting) => nesting.settled(),
            // Nothing is open.
            State::Broken | State::Outside => 0,
            State::Inside(_) | State::Closed(..) | State::Ended(..) => self.at,
        }
    }

    /// True if the arguments were JSON, so that nothing in them reaches beyond, although they may not be valid.
    pub(super) fn is_sound(&self) -> bool {
        self.json && self.is_closed()
    }

    /// True if something was closed that was not opened.
    pub(super) fn has_stray(&self) -> bool {
        self.stray
    }

    /// True if text that is no call follows the calls.
    pub(super) fn is_over(&self, text: &str) -> bool {
        matches!(self.state, State::Outside)
            && self.end.is_some()
            && self.at < text.len()
            && begins(&text[self.at..], false) == Ok(false)
    }

    /// The next part; `None` if more text will tell, or nothing that belongs to a call follows.
    fn step(&mut self, text: &str, at_end: bool) -> Option<Found> {
        loop {
            match self.state {
                State::Broken => return None,
                State::Outside => {
                    let Ok(Some((call, length))) = Name::opened(self.next(text), &CALLS, at_end) else {
                        return None;
                    };
                    self.open(State::Head(call), length);
                }
                State::Head(call) => {
                    let end = self.tag_end(text)?;
                    self.state = State::Inside(call);
                    self.begun = false;
                    return Some(Found::Head(self.start..end));
                }
                State::Inside(call) => {
                    let rest = self.next(text);
                    match call.closed_parameter(rest, at_end) {
                        _ if self.begun => {}
                        // Now and then a model closes an argument that it never opened.
                        Ok(Some(((), length))) => {
                            self.at += length;
                            self.stray = true;
                            continue;
                        }
                        Err(()) => return None,
                        Ok(None) => {}
                    }
                    let begun = std::mem::replace(&mut self.begun, true);
                    if rest.starts_with('{') {
                        self.open(State::Json(call, Nesting::once(Notation::Json, self.at)), 0);
                        continue;
                    }
                    match (Name::opened(rest, &PARAMETERS, at_end), call.closed(rest, at_end)) {
                        (Ok(Some((parameter, length))), _) => {
                            self.open(State::Key(Argument { call, parameter }), length);
                        }
                        (_, Fit::Whole(length)) => return Some(self.end_call(length)),
                        (Err(()), _) | (_, Fit::Begun) => return None,
                        _ if self.closed && begun && rest.is_empty() => return Some(self.end_call(0)),
                        _ => self.state = State::Broken,
                    }
                }
                State::Key(argument) => {
                    let head = self.start..self.tag_end(text)?;
                    self.open(State::Value(argument), 0);
                    return Some(Found::Key(head, argument.parameter));
                }
                State::Value(argument) => {
                    let (start, parameter) = (self.start, argument.parameter);
                    let closed = |end| match parameter.closed(&text[end..], at_end) {
                        Fit::Whole(_) if is_in_data(&text[start..end], parameter) => Fit::No,
                        fits => fits,
                    };
                    let end = pass(text, &mut self.at, '<', closed)?;
                    self.state = State::Closed(argument, end);
                }
                State::Closed(argument, end) => {
                    let rest = self.next(text);
                    let opened = Name::opened(rest, &PARAMETERS, at_end);
                    match (opened, argument.call.closed(rest, at_end)) {
                        (Ok(Some((next, _))), _) if next == argument.parameter => {
                            return Some(self.close_value(text, argument, end));
                        }
                        (_, Fit::Whole(_)) if self.unwrapped => return Some(self.close_value(text, argument, end)),
                        (_, Fit::Whole(length)) => {
                            self.at += length;
                            self.state = State::Ended(argument, end);
                        }
                        (Err(()), _) | (_, Fit::Begun) => return None,
                        _ if self.closed && rest.is_empty() => return Some(self.close_value(text, argument, end)),
                        _ => self.state = State::Value(argument),
                    }
                }
                State::Ended(argument, end) => match begins(self.next(text), at_end) {
                    Err(()) => return None,
                    Ok(false) if self.at < text.len() => self.state = State::Value(argument),
                    _ => {
                        // The closing tag is read once more, now that it counts.
                        let Name { space, name, .. } = argument.parameter;
                        self.at = end + "</>".len() + space.len() + name.len();
                        return Some(self.close_value(text, argument, end));
                    }
                },
                State::Json(call, mut nesting) => {
                    nesting.advance(text);
                    self.state = State::Json(call, nesting);
                    if !nesting.is_closed() {
                        return None;
                    }
                    let end = nesting.at();
                    self.at = self.at.max(end);
                    match call.closed(self.next(text), at_end) {
                        Fit::Whole(_) => {
                            self.state = State::Inside(call);
                            self.json = true;
                            return Some(Found::Json(self.start..end));
                        }
                        Fit::Begun => return None,
                        Fit::No => self.state = State::Broken,
                    }
                }
            }
        }
    }

    /// The text from the next word on.
    fn next<'t>(&mut self, text: &'t str) -> &'t str {
        self.at = skip_blank(text, self.at);
        &text[self.at..]
    }

    /// Something begins after this many bytes.
    fn open(&mut self, state: State, length: usize) {
        self.at += length;
        (self.state, self.start) = (state, self.at);
    }

    /// Passes over an opening tag to the end of its line at most: now and then a model forgets the `>`.
    fn tag_end(&mut self, text: &str) -> Option<usize> {
        let Some(end) = text[self.at..].find(['>', '\n']).map(|found| self.at + found) else {
            self.at = text.len();
            return None;
        };
        self.at = end + usize::from(text[end..].starts_with('>'));
        Some(end)
    }

    /// The value ends here; what may have closed a longer one is remembered.
    fn close_value(&mut self, text: &str, argument: Argument, end: usize) -> Found {
        let inner = &text[self.start..end];
        let is_data = argument.parameter.name == "param" && inner.ends_with(CDATA[1]);
        self.stray |= is_data && !inner.starts_with(CDATA[0]);
        self.state = State::Inside(argument.call);
        Found::Value(self.start..end)
    }

    fn end_call(&mut self, length: usize) -> Found {
        self.at += length;
        self.end = Some(self.at);
        self.state = State::Outside;
        Found::End
    }
}

/// True if a value that began like this only ends at a CDATA delimiter.
fn is_in_data(value: &str, parameter: Name) -> bool {
    parameter.name == "param" && value.starts_with(CDATA[0]) && !value.ends_with(CDATA[1])
}

/// One element or several.
pub(super) fn read(text: &str, tools: &Tools, around: CallContext) -> Option<ParsedCalls> {
    let closed = around.closed;
    let mut elements = Elements {
        closed,
        ..Elements::new(0, around.unwrapped)
    };
    let mut found = ParsedCalls::default();
    while let Some(call) = call(&mut elements, text, tools, around) {
        found.add(call, elements.at);
    }
    found.broken = !matches!(elements.state, State::Outside);
    found.some()
}

/// The next call; `None` if there is none or it is not whole.
fn call(elements: &mut Elements, text: &str, tools: &Tools, around: CallContext) -> Option<ParsedCall> {
    let (mut tool, mut fields, mut open) = ("", Map::new(), None);
    while let Some(found) = elements.step(text, true) {
        match found {
            Found::Head(head) => tool = tools.offered(name(&text[head])?.0),
            Found::Key(head, parameter) => open = Some((name(&text[head])?, parameter)),
            Found::Value(value) => {
                let ((key, attributes), parameter) = open.take()?;
                let missing = |key: &str| tools.schema(tool, key).is_some() && !fields.contains_key(key);
                for (key, attributes, value) in arguments((key, attributes), &text[value], parameter, missing) {
                    let value = plain(value, attributes, parameter, around.verbatim);
                    insert(&mut fields, key, typed(value, tool, key, attributes, tools))?;
                }
            }
            Found::Json(value) => fields = serde_json::from_str(&text[value]).ok()?,
            Found::End => return Some((tool.to_owned(), fields.into())),
        }
    }
    None
}

/// The name in an opening tag, `=NAME` or ` name="NAME" …`, and the other attributes.
fn name(head: &str) -> Option<(&str, &str)> {
    let (name, attributes) = match head.strip_prefix('=') {
        Some(name) => (name.trim().trim_matches('"'), ""),
        None => (attribute(head, "name")?, head),
    };
    (!name.is_empty() && !name.contains('<')).then_some((name, attributes))
}

fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    ['"', '\''].iter().find_map(|quote| {
        let start = attributes.find(&format!("{name}={quote}"))? + name.len() + 2;
        attributes[start..].split_once(*quote).map(|(value, _)| value)
    })
}

/// A value without what stands around it: line ends, as Qwen3-Coder writes them, or MiniCPM's marks of plain data.
fn plain<'a>(value: &'a str, attributes: &str, parameter: Name, verbatim: bool) -> &'a str {
    if parameter.name == "param" {
        let data = value
            .strip_prefix(CDATA[0])
            .and_then(|data| data.strip_suffix(CDATA[1]));
        return data.unwrap_or(value);
    }
    match value.strip_prefix('\n').filter(|_| attributes.is_empty() && !verbatim) {
        Some(inner) => inner.strip_suffix('\n').unwrap_or(inner),
        None => value,
    }
}

/// The value of an argument written as text. DSML marks strings itself, but a schema has precedence.
fn typed(value: &str, tool: &str, key: &str, attributes: &str, tools: &Tools) -> Value {
    match attribute(attributes, "string") {
        Some("true") if tools.schema(tool, key).is_none() => value.into(),
        Some("false") => serde_json::from_str(value).unwrap_or_else(|_| tools.value(tool, key, value)),
        _ => tools.value(tool, key, value),
    }
}

/// The name of an argument and the other attributes of its tag.
type Key<'a> = (&'a str, &'a str);

/// The arguments in what was read as one value, with the attributes of each: a closing tag is taken for forgotten if a
/// line opens another argument that the tool has and the call lacks, and no call is quoted before it. DSML's tags are
/// made of a token that stands nowhere else, so for them any other argument will do.
fn arguments<'a>(
    first: Key<'a>,
    value: &'a str,
    parameter: Name,
    missing: impl Fn(&str) -> bool,
) -> Vec<(&'a str, &'a str, &'a str)> {
    let certain = parameter.space.contains("DSML");
    let next = format!(
        "{}<{}{}",
        if certain { "" } else { "\n" },
        parameter.space,
        parameter.name
    );
    let mut found: Vec<(&str, &str, &str)> = Vec::new();
    let (mut key, mut rest) = (first, value);
    while let Some(at) = rest.find(&next) {
        let inner = &rest[at + next.len()..];
        let head = inner
            .find(['>', '\n'])
            .and_then(|end| Some((name(&inner[..end])?, end)));
        let known = |other: &str| other == key.0 || found.iter().any(|(known, ..)| *known == other);
        let fits = |other: &str| !known(other) && (certain || missing(other));
        let quoted = CALLS
            .iter()
            .any(|call| rest[..at].contains(&format!("<{}{call}", parameter.space)));
        let Some((other, end)) = head.filter(|((other, _), _)| fits(other) && !quoted) else {
            break;
        };
        found.push((key.0, key.1, &rest[..at + usize::from(!certain)]));
        (key, rest) = (other, inner[end..].strip_prefix('>').unwrap_or(&inner[end..]));
    }
    found.push((key.0, key.1, rest));
    found
}
