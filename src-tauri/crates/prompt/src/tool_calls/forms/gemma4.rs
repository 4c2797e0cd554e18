//! Gemma 4's calls, `call:NAME{key:<|"|>text<|"|>,n:1,b:true,o:{…},a:[…]}`; FunctionGemma has another quotation mark.

use serde_json::{Map, Number, Value};

use crate::tool_calls::call::{insert, ParsedCall, ParsedCalls, DEPTH};
use crate::tool_calls::python_value::Reader;

/// One call or several.
pub(super) fn read(text: &str) -> Option<ParsedCalls> {
    let mut reader = Reader { rest: text };
    let first = reader.call()?;
    let at = |reader: &Reader| text.len() - reader.rest.len();
    let mut found = ParsedCalls::one(first, at(&reader));
    while !reader.rest.trim().is_empty() {
        reader.take(",");
        let rest = reader.rest.trim_start();
        let begins = rest.starts_with("call") || rest.starts_with(':') || "call:".starts_with(rest);
        match reader.call() {
            Some(call) => found.add(call, at(&reader)),
            None if begins => {
                found.broken = true;
                return Some(found);
            }
            None => return None,
        }
    }
    found.end = text.len();
    Some(found)
}

/// The quotation marks for texts, of Gemma 4 and of FunctionGemma.
const QUOTES: [&str; 2] = ["<|\"|>", "<escape>"];

impl Reader<'_> {
    /// The word before the name is forgotten now and then, or the colon doubled.
    fn call(&mut self) -> Option<ParsedCall> {
        self.take("call");
        self.take(":")?;
        let name = self
            .until(&['{'])?
            .trim()
            .trim_start_matches(':')
            .trim_start()
            .to_owned();
        let arguments = self.object(0)?;
        (!name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "<>\"".contains(c)))
            .then_some((name, arguments))
    }

    fn until(&mut self, ends: &[char]) -> Option<&str> {
        let (found, rest) = self.rest.split_at(self.rest.find(ends)?);
        self.rest = rest;
        Some(found)
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        let mut object = Map::new();
        self.list(["{", "}"], depth, |reader, depth| {
            let key = match reader.quoted() {
                Some(key) => key,
                None => reader.until(&[':', '{', '}', '[', ']', ','])?.trim().to_owned(),
            };
            reader.take(":")?;
            let value = reader.gemma_value(depth)?;
            (!key.is_empty()).then(|| insert(&mut object, &key, value))?
        })?;
        Some(object.into())
    }

    fn list(
        &mut self,
        [open, close]: [&str; 2],
        depth: usize,
        mut item: impl FnMut(&mut Self, usize) -> Option<()>,
    ) -> Option<()> {
        self.take(open)?;
        if depth == DEPTH {
            return None;
        }
        if self.take(close).is_some() {
            return Some(());
        }
        loop {
            item(self, depth + 1)?;
            if self.take(close).is_some() {
                return Some(());
            }
            self.take(",")?;
        }
    }

    /// A text in Gemma's quotation marks, which nothing inside of it can end, or in JSON's.
    fn quoted(&mut self) -> Option<String> {
        let rest = self.rest.trim_start();
        let inner = QUOTES
            .iter()
            .find_map(|quote| rest.strip_prefix(quote)?.split_once(quote));
        if let Some((text, rest)) = inner {
            self.rest = rest;
            return Some(text.to_owned());
        }
        if !rest.starts_with('"') {
            return None;
        }
        let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let text = texts.next()?.ok()?;
        self.rest = &rest[texts.byte_offset()..];
        Some(text)
    }

    fn gemma_value(&mut self, depth: usize) -> Option<Value> {
        if let Some(text) = self.quoted() {
            return Some(text.into());
        }
        match self.rest.trim_start().chars().next()? {
            '{' => self.object(depth),
            '[' => {
                let mut items = Vec::new();
                self.list(["[", "]"], depth, |reader, depth| {
                    reader.gemma_value(depth).map(|value| items.push(value))
                })?;
                Some(items.into())
            }
            // A quotation mark that is never closed.
            _ if QUOTES.iter().any(|quote| self.rest.trim_start().starts_with(quote)) => None,
            _ => self.until(&[',', '}', ']']).and_then(bare),
        }
    }
}

/// A value without quotation marks: a number, a word of JSON or Python, or a text that lost its marks.
fn bare(text: &str) -> Option<Value> {
    match text.trim() {
        "true" | "True" => Some(true.into()),
        "false" | "False" => Some(false.into()),
        "null" | "None" => Some(Value::Null),
        // Something nested that is not closed.
        text if text.contains(['{', '[', '"', '<']) => None,
        text => Some(text.parse::<Number>().map_or_else(|_| text.into(), Value::Number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn gemma(text: &str) -> Option<Value> {
        read(text.trim()).map(|reading| json!(reading.calls))
    }

    #[test]
    fn gemma_values_keep_their_types() {
        let text = r#"call:f{a:[1,-2.5,<|"|>x<|"|>],b:true,city:<|"|>Oslo, "N" {ü}<|"|>,e:{},l:[],n:null,o:{k:1e3,<|"|>q r<|"|>:false}}"#;
        assert_eq!(
            gemma(text),
            Some(
                json!([["f", {"a": [1, -2.5, "x"], "b": true, "city": "Oslo, \"N\" {ü}", "e": {}, "l": [], "n": null, "o": {"k": 1e3, "q r": false}}]])
            )
        );
        assert_eq!(gemma("call:now{}"), Some(json!([["now", {}]])));
        assert_eq!(
            gemma(" call:f{ a : 1 , b : Oslo }\n"),
            Some(json!([["f", {"a": 1, "b": "Oslo"}]]))
        );
        assert_eq!(gemma("call:f{a:,b:}"), Some(json!([["f", {"a": "", "b": ""}]])));
        assert_eq!(
            gemma("call:f{} call::g{}, :h{}"),
            Some(json!([["f", {}], ["g", {}], ["h", {}]]))
        );
        assert_eq!(gemma(r#"call:f{a:"x\"y"}"#), Some(json!([["f", {"a": "x\"y"}]])));
    }

    #[test]
    fn broken_gemma_calls_are_none() {
        for text in [
            "",
            "call:f",
            "call:f{",
            "call:{}",
            "call:f{a}",
            "call:f{a:1",
            "call:f{a:<|\"|>Oslo}",
            "call:f{a:1}}",
            "call:f{:1}",
            "f{a:1}",
            "call:f{a:1,}",
            "call:f{a:g{b:1}",
        ] {
            assert_eq!(gemma(text), None, "{text}");
        }
        assert_eq!(gemma(&format!("call:f{{a:{}", "[".repeat(100_000))), None);
    }
}
