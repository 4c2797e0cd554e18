//! Calls as Python: `[f(a=1, b="x"), g()]` of LFM2 and Llama, one on each line of OLMo 3, with Python's or JSON's words
//! for true, false and nothing.

use serde_json::Map;

use crate::tool_calls::call::{BareCall, ParsedCall, ParsedCalls};
use crate::tool_calls::python_value::{is_word, Reader};
use crate::tool_calls::tools::Tools;

/// A list of calls, or one call on each line. A list that is cut off ends after its last whole call.
pub(super) fn calls(text: &str, closed: bool) -> Option<ParsedCalls> {
    let mut reader = Reader { rest: text };
    let mut found = ParsedCalls::default();
    let at = |reader: &Reader| text.len() - reader.rest.len();
    if reader.take("[").is_some() {
        while reader.take("]").is_none() {
            let before = at(&reader);
            let Some(call) = call(&mut reader) else {
                // Another call that is not whole, or the comma after the last one that came.
                found.broken = !text[before..].trim().is_empty();
                found.end = if found.broken { found.end } else { text.len() };
                return found.some().filter(|found| !closed || found.broken);
            };
            found.add(call, at(&reader));
            if reader.take(",").is_none() && !reader.rest.trim_start().starts_with(']') {
                found.broken = !reader.rest.trim().is_empty();
                return found.some().filter(|found| !closed || found.broken);
            }
        }
        found.end = at(&reader);
        return found.some();
    }
    let first = call(&mut reader)?;
    found.add(first, at(&reader));
    while reader.rest.trim_start_matches([' ', '\t', '\r']).starts_with('\n') {
        let mut next = Reader { rest: reader.rest };
        let Some(call) = call(&mut next) else { break };
        found.add(call, at(&next));
        reader = next;
    }
    found.some()
}

/// Checks for `[f(` at the beginning.
pub(super) fn bare(text: &str, tools: &Tools) -> BareCall {
    let name = text.trim_start_matches('[').trim_start();
    let end = name.find(|c: char| !is_word(c)).unwrap_or(name.len());
    let begins = name.chars().next().is_none_or(|c| c.is_alphabetic() || c == '_');
    match name[end..].chars().next() {
        _ if !begins || text.starts_with("[[") => BareCall::No,
        None => BareCall::Maybe,
        Some('(') if end > 0 && tools.may_have(&name[..end]) => BareCall::Yes,
        Some(_) => BareCall::No,
    }
}

/// One call.
fn call(reader: &mut Reader<'_>) -> Option<ParsedCall> {
    let name = reader.word()?;
    // Llama calls its built-in tools by a method.
    let name = name.strip_suffix(".call").unwrap_or(name).to_owned();
    reader.take("(")?;
    let mut arguments = Map::new();
    reader.items(")", |reader| {
        let key = reader.word()?;
        reader.take("=")?;
        arguments.insert(key.to_owned(), reader.value(0)?);
        Some(())
    })?;
    Some((name, arguments.into()))
}
