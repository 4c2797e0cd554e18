//! Calls as JSON: `{"name": …, "arguments": {…}}` of Hermes, Qwen and others, one after the other or in a list;
//! `parameters` of Llama, `tool_name` of Cohere, and `{"NAME": {…}}` of Apertus.

use serde_json::{Deserializer, Map, Value};

use crate::tool_calls::call::{BareCall, ParsedCall, ParsedCalls};
use crate::tool_calls::tag::{first as first_of, fit, skip_blank, Fit};
use crate::tool_calls::tools::Tools;

/// Words that stand before a list of calls instead of markers around it: Firefunction's and Command R+'s.
const HEADS: [&str; 3] = ["functools", "Action:\n```json", "Action: ```json"];
/// Closes a block of code.
const FENCE: &str = "```";
/// The most blanks before it.
const LONGEST_BLANK: usize = 64;

/// The words before the calls, if there are some; `Err` while more text will tell.
pub(super) fn head(text: &str, at_end: bool) -> Result<Option<&'static str>, ()> {
    first_of(HEADS.map(|head| (head, fit(text, &[head], at_end)))).map(|found| found.map(|(head, _)| head))
}

/// The end of calls whose list is closed here, if such words precede them; `None` while that is undecided.
pub(super) fn end_of_list(text: &str, closed: usize) -> Option<usize> {
    let Ok(Some(head)) = head(text.trim_start(), true) else {
        return None;
    };
    if !head.contains(FENCE) {
        return Some(closed);
    }
    let fence = skip_blank(text, closed);
    if fence - closed > LONGEST_BLANK {
        return Some(closed);
    }
    match fit(&text[fence..], &[FENCE], false) {
        Fit::Whole(length) => Some(fence + length),
        Fit::Begun => None,
        // No block of code ends like this.
        Fit::No => Some(closed),
    }
}

pub(super) fn read(text: &str, tools: &Tools) -> Option<ParsedCalls> {
    let Ok(Some(head)) = head(text, true) else {
        return list(text, tools);
    };
    let mut reading = list(&text[head.len()..], tools)?;
    reading.end += head.len();
    reading.ends.iter_mut().for_each(|end| *end += head.len());
    if head.contains(FENCE) {
        let rest = text[reading.end..].trim_start();
        match rest.strip_prefix(FENCE) {
            Some(after) => reading.end = text.len() - after.len(),
            // The answer ends before the block does.
            None if FENCE.starts_with(rest.trim_end()) || reading.broken => {}
            None => return None,
        }
    }
    Some(reading)
}

/// Calls one after the other, and lists of them. What follows the last one is no part of it, unless it begins like
/// another one.
fn list(text: &str, tools: &Tools) -> Option<ParsedCalls> {
    let (mut found, mut at, mut in_list) = (ParsedCalls::default(), 0, false);
    loop {
        let start = text.len() - text[at..].trim_start_matches(between).len();
        match text[start..].chars().next() {
            Some('[') if !in_list => {
                (in_list, at) = (true, start + 1);
                continue;
            }
            Some(']') if in_list => {
                (in_list, at) = (false, start + 1);
                found.end = at;
                continue;
            }
            Some('{') => {
                let read = first(&text[start..]).and_then(|(value, length)| Some((call(value, tools)?, length)));
                let Some((call, length)) = read else { break };
                at = start + length;
                found.add(call, at);
                continue;
            }
            // The comma after the last call that came.
            None if in_list => found.end = start,
            _ => {}
        }
        break;
    }
    found.broken = in_list && found.end < text.len() || text[at..].trim_start_matches(between).starts_with(['{', '[']);
    found.some()
}

/// The object a text begins with and where it ends.
pub(crate) fn object(text: &str) -> Option<(Value, usize)> {
    first(text).filter(|(value, _)| value.is_object())
}

fn between(c: char) -> bool {
    c.is_whitespace() || c == ';' || c == ','
}

fn first(text: &str) -> Option<(Value, usize)> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, values.byte_offset()))
}

fn call(mut call: Value, tools: &Tools) -> Option<ParsedCall> {
    let fields = call.as_object_mut()?;
    if let Some(inner) = fields.get_mut("function").filter(|inner| inner.is_object()) {
        return self::call(inner.take(), tools);
    }
    let name = ["name", "tool_name", "function"]
        .iter()
        .find_map(|key| fields.get(*key).and_then(Value::as_str).map(str::to_owned));
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        // The name of the tool is the only key.
        let alone = fields.len() == 1;
        let (name, arguments) = fields.iter_mut().next()?;
        let meant = alone && tools.has(name) && arguments.is_object();
        return meant.then(|| (name.clone(), arguments.take()));
    };
    let arguments = ["arguments", "parameters"]
        .iter()
        .find_map(|key| fields.get_mut(*key).map(Value::take));
    let arguments = match arguments {
        Some(Value::String(text)) => serde_json::from_str(&text).ok()?,
        Some(Value::Null) | None => Map::new().into(),
        Some(arguments) => arguments,
    };
    arguments.is_object().then_some((name, arguments))
}

/// Checks for `{"name": "f"` at the beginning, after `"type": "function"` or not.
pub(super) fn bare(text: &str, tools: &Tools) -> BareCall {
    match name(text).map(|rest| rest.split_once('"')) {
        Ok(Some((name, _))) if tools.may_have(name) && !name.is_empty() => BareCall::Yes,
        Ok(Some(_)) => BareCall::No,
        Ok(None) => BareCall::Maybe,
        Err(verdict) => verdict,
    }
}

/// The text from the name on; the verdict if it has none.
fn name(text: &str) -> Result<&str, BareCall> {
    let fields = after(text, &["{"])?;
    // The type may be missing: its two words have the same beginning as no other key.
    let fields = match after(fields, &["\"type\""]) {
        Err(BareCall::No) => fields,
        kind => after(kind?, &[":", "\"function\"", ","])?,
    };
    after(fields, &["\"name\"", ":", "\""])
}

/// The text after these tokens; the verdict if they are not there.
fn after<'t>(text: &'t str, tokens: &[&str]) -> Result<&'t str, BareCall> {
    tokens.iter().try_fold(text, |rest, token| {
        let rest = rest.trim_start();
        match rest.strip_prefix(token) {
            None if token.starts_with(rest) => Err(BareCall::Maybe),
            after => after.ok_or(BareCall::No),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_calls_are_read() {
        let read = |text: &str| read(text, &Tools::default()).map(|reading| json!(reading.calls));
        assert_eq!(
            read("{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n"),
            Some(json!([["f", {"a": 1}]]))
        );
        assert_eq!(
            read(r#"{"name": "f", "arguments": "{\"a\": 1}"}"#),
            Some(json!([["f", {"a": 1}]]))
        );
        assert_eq!(
            read(r#"[{"name": "f"}, {"name": "g", "parameters": {"b": []}}]"#),
            Some(json!([["f", {}], ["g", {"b": []}]]))
        );
        assert_eq!(
            read(r#"[{"tool_call_id": "0", "tool_name": "f", "parameters": {"a": 1}}]"#),
            Some(json!([["f", {"a": 1}]]))
        );
        assert_eq!(
            read("{\"name\": \"f\"}\n{\"name\": \"g\"}"),
            Some(json!([["f", {}], ["g", {}]]))
        );
        assert_eq!(
            read(r#"{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}"#),
            Some(json!([["f", {"a": 1}]]))
        );
        for text in [
            "",
            "{\"name\": \"f\"",
            "{\"arguments\": {}}",
            "[]",
            "{\"name\": \"f\", \"arguments\": 3}",
            "[{]",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_only_key_may_be_the_name() {
        let tools = Tools::new(&[json!({"function": {"name": "f"}})]);
        let calls = read(r#"[{"f": {"a": 1}}]"#, &tools).map(|reading| json!(reading.calls));
        assert_eq!(calls, Some(json!([["f", {"a": 1}]])));
        assert_eq!(read(r#"[{"g": {"a": 1}}]"#, &tools), None);
    }
}
