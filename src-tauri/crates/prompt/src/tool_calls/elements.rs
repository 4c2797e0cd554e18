//! Calls as elements whose arguments are plain text: `<function=NAME><parameter=KEY>…` of Qwen3-Coder and Seed, `<invoke name="NAME"><parameter
//! name="KEY">…` of MiniMax and DeepSeek, `<function name="NAME"><param name="KEY">…` of MiniCPM, and GLM's
//! `NAME<arg_key>KEY</arg_key><arg_value>…</arg_value>`.

use serde_json::{Map, Value};

use super::{json, Call, ParsedCalls, Tools};

/// Prefixes that families put before the names of their elements.
const SPACES: [&str; 4] = ["", "｜DSML｜", "atem:", "longcat_"];

/// Whether the text begins with an element that holds a call.
pub(super) fn begins(text: &str) -> bool {
    opening(text).is_some()
}

/// The element's name with its prefix, and what stands after it.
fn opening(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('<')?;
    SPACES.iter().find_map(|space| {
        let rest = text.strip_prefix(space)?;
        let element = ["function", "invoke"].into_iter().find(|element| rest.starts_with(element))?;
        Some((format!("{space}{element}"), &rest[element.len()..]))
    })
}

/// One element or several.
pub(super) fn read(text: &str, tools: &Tools) -> Option<ParsedCalls> {
    let (mut calls, mut rest) = (Vec::new(), text);
    while let Some((element, inner)) = opening(rest.trim_start()) {
        let (call, after) = call(&element, inner, tools)?;
        calls.push(call);
        rest = after;
    }
    (!calls.is_empty()).then_some(ParsedCalls {
        calls,
        end: text.len() - rest.len(),
    })
}

fn call<'a>(element: &str, text: &'a str, tools: &Tools) -> Option<(Call, &'a str)> {
    let (name, _, mut rest) = head(text)?;
    let end = format!("</{element}>");
    let mut arguments = Map::new();
    if rest.trim_start().starts_with('{') {
        let inner = rest.trim_start();
        let (value, length) = json::object(inner)?;
        let after = inner[length..].trim_start().strip_prefix(end.as_str())?;
        return Some(((name.to_owned(), value), after));
    }
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(end.as_str()) {
            return Some(((name.to_owned(), arguments.into()), after));
        }
        let (parameter, inner) = parameter(rest)?;
        let (key, attributes, inner) = head(inner)?;
        let (value, after) = value(inner, &parameter, &end)?;
        let typed = match attribute(attributes, "string") {
            Some("true") => Value::from(value),
            Some(_) => serde_json::from_str(value).ok()?,
            None => tools.value(name, key, value),
        };
        arguments.insert(key.to_owned(), typed);
        rest = after;
    }
}

fn parameter(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('<')?;
    SPACES.iter().find_map(|space| {
        let rest = text.strip_prefix(space)?;
        let element = ["parameter", "param"].into_iter().find(|element| rest.starts_with(element))?;
        Some((format!("{space}{element}"), &rest[element.len()..]))
    })
}

/// After an element's name: `=NAME>` or ` name="NAME" …>` as the name, the other attributes and the rest.
fn head(text: &str) -> Option<(&str, &str, &str)> {
    let (head, rest) = text.split_once('>')?;
    let (name, attributes) = match head.strip_prefix('=') {
        Some(name) => (name.trim().trim_matches('"'), ""),
        None => (attribute(head, "name")?, head),
    };
    let fits = !name.is_empty() && !name.contains(['<', '\n']);
    fits.then_some((name, attributes, rest))
}

fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let start = attributes.find(&format!("{name}=\""))? + name.len() + 2;
    attributes[start..].split_once('"').map(|(value, _)| value)
}

/// A value ends at a closing tag after which the call goes on; code in it may hold closing tags of its own. A closing
/// tag that was forgotten is made up for by what follows.
fn value<'a>(text: &'a str, parameter: &str, end: &str) -> Option<(&'a str, &'a str)> {
    let (next, close) = (format!("<{parameter}"), format!("</{parameter}>"));
    let goes_on = |rest: &str| {
        let rest = rest.trim_start();
        rest.starts_with(&next) || rest.starts_with(end)
    };
    let closed = text
        .match_indices(&close)
        .map(|(at, tag)| (at, at + tag.len()))
        .find(|(_, after)| goes_on(&text[*after..]));
    let forgotten = || {
        let at = text.find(&next).into_iter().chain(text.find(end)).min()?;
        Some((at, at))
    };
    let early = closed.filter(|(at, _)| !text[..*at].contains(&format!("\n{next}")));
    let (at, after) = early.or_else(forgotten)?;
    let value = &text[..at];
    // Written on lines of its own, or between the tags.
    let value = match value.strip_prefix('\n') {
        Some(inner) => inner.strip_suffix('\n').unwrap_or(inner),
        None => value,
    };
    let value = value
        .strip_prefix("<![CDATA[")
        .and_then(|data| data.strip_suffix("]]>"))
        .unwrap_or(value);
    Some((value, &text[after..]))
}

/// GLM's form; the name alone is a call if a tool has it.
pub(super) fn pairs(text: &str, tools: &Tools) -> Option<ParsedCalls> {
    let space = SPACES.iter().find(|space| text.contains(&format!("<{space}arg_key>")));
    let Some(space) = space else {
        let name = text.trim();
        return tools.has(name).then(|| ParsedCalls {
            calls: vec![(name.to_owned(), Map::new().into())],
            end: text.len(),
        });
    };
    let tag = |name: &str| format!("{space}{name}>");
    let (key_open, key_close) = (format!("<{}", tag("arg_key")), format!("</{}", tag("arg_key")));
    let (value_open, value_close) = (format!("<{}", tag("arg_value")), format!("</{}", tag("arg_value")));
    let at = text.find(&key_open)?;
    let name = text[..at].trim();
    let mut arguments = Map::new();
    let mut rest = &text[at..];
    while !rest.trim().is_empty() {
        let (key, after) = rest.trim_start().strip_prefix(key_open.as_str())?.split_once(key_close.as_str())?;
        let inner = after.trim_start().strip_prefix(value_open.as_str())?;
        let (end, after) = inner
            .match_indices(&value_close)
            .map(|(at, tag)| (at, at + tag.len()))
            .find(|(_, after)| inner[*after..].trim().is_empty() || inner[*after..].trim_start().starts_with(&key_open))?;
        arguments.insert(key.trim().to_owned(), tools.value(name, key.trim(), &inner[..end]));
        rest = &inner[after..];
    }
    let fits = !name.is_empty() && !name.contains(char::is_whitespace);
    fits.then(|| ParsedCalls {
        calls: vec![(name.to_owned(), arguments.into())],
        end: text.len(),
    })
}
