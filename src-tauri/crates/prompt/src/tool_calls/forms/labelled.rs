//! Calls that name the tool before its arguments, which are JSON: `NAME[ARGS]{…}` of Mistral,
//! `functions.NAME:0<|tool_call_argument_begin|>{…}` of Kimi K2, `NAME<｜tool▁sep｜>{…}` of DeepSeek,
//! `ID<|tool_call:name|>NAME<|tool_call:args|>{…}` of Solar.

use super::json;
use crate::tool_calls::call::ParsedCalls;

/// One call, or several of Mistral's after one marker.
pub(super) fn read(text: &str) -> Option<ParsedCalls> {
    let mut reading = one(text)?;
    while let Some(next) = another(&text[reading.end..]) {
        let end = reading.end + next.end;
        next.calls.into_iter().for_each(|call| reading.add(call, end));
    }
    reading.broken = text[reading.end..].contains(ARGUMENTS);
    Some(reading)
}

/// Stands between Mistral's names and arguments.
const ARGUMENTS: &str = "[ARGS]";

/// One more call, if its label tells that it is one.
fn another(text: &str) -> Option<ParsedCalls> {
    let brace = text.find('{')?;
    text[..brace].contains(ARGUMENTS).then(|| one(text))?
}

fn one(text: &str) -> Option<ParsedCalls> {
    let (name, rest) = label(text)?;
    let arguments = rest.trim_start();
    let start = text.len() - arguments.len();
    let (value, length) = json::object(arguments)?;
    let mut end = start + length;
    if text[..start].trim_end().ends_with(CODE) {
        end = text.len() - text[end..].trim_start().strip_prefix("```")?.len();
    }
    let fits = !name.is_empty() && is_word(name);
    fits.then(|| ParsedCalls::one((name.to_owned(), value), end))
}

/// How older models of DeepSeek open the arguments.
const CODE: &str = "```json";

/// The name and what stands after the label. A word of the label counts before the arguments alone, and nothing else
/// stands in it.
fn label(text: &str) -> Option<(&str, &str)> {
    let brace = text.find('{')?;
    let (head, arguments) = text.split_at(brace);
    let only = |fits: bool, name| fits.then_some((name, arguments));
    if let Some((label, rest)) = head.split_once("<|tool_call_argument_begin|>") {
        let label = label.trim();
        let name = label.strip_prefix("functions.").unwrap_or(label);
        let numbered = name
            .rsplit_once(':')
            .filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()));
        return only(rest.trim().is_empty(), numbered.map_or(name, |(name, _)| name));
    }
    if let Some((kind, rest)) = head.split_once("<｜tool▁sep｜>") {
        // Older models write the kind of tool first and the arguments as a block of code.
        return match rest.split_once(CODE) {
            Some((name, rest)) => only(is_word(kind.trim()) && rest.trim().is_empty(), name.trim()),
            None => only(rest.trim().is_empty(), kind.trim()),
        };
    }
    if let Some((name, rest)) = head.split_once("<|tool_call:args|>") {
        let (id, name) = name.split_once("<|tool_call:name|>").unwrap_or(("", name));
        return only(is_word(id.trim()) && rest.trim().is_empty(), name.trim());
    }
    if let Some((name, rest)) = head.split_once(ARGUMENTS) {
        let (name, id) = name.split_once("[CALL_ID]").unwrap_or((name, ""));
        return only(is_word(id.trim()) && rest.trim().is_empty(), name.trim());
    }
    Some((head.trim(), arguments))
}

/// True if this may be a name, or is empty.
fn is_word(text: &str) -> bool {
    !text.contains(|c: char| c.is_whitespace() || "<>[](){}=,\"'".contains(c))
}
