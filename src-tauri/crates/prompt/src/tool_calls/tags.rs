//! Kimi K3's calls: `tool="NAME" index="1"<|sep|>`, then `<|open|>argument key="KEY" type="string"<|sep|>…<|close|>argument<|sep|>` for each argument
//! or `<|open|>json type="object"<|sep|>{…}<|close|>json<|sep|>` for all.

use serde_json::{Map, Value};

use super::ParsedCalls;

pub(super) fn read(text: &str) -> Option<ParsedCalls> {
    let (head, mut rest) = text.strip_prefix("tool=")?.split_once("<|sep|>")?;
    let name = head.strip_prefix('"')?.split_once('"')?.0;
    let mut arguments = Map::new();
    while let Some(tag) = rest.trim_start().strip_prefix("<|open|>") {
        let (tag, inner) = tag.split_once("<|sep|>")?;
        let element = if tag.starts_with("json") { "json" } else { "argument" };
        let (value, after) = inner.split_once(&format!("<|close|>{element}<|sep|>"))?;
        if element == "json" {
            arguments.extend(serde_json::from_str::<Map<String, Value>>(value).ok()?);
        } else {
            let attribute = |name: &str| tag.split_once(&format!("{name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
            let (key, _) = attribute("key")?;
            let typed = match attribute("type") {
                Some(("string", _)) | None => value.into(),
                Some(_) => serde_json::from_str(value).ok()?,
            };
            arguments.insert(key.to_owned(), typed);
        }
        rest = after;
    }
    (!name.is_empty()).then(|| ParsedCalls {
        calls: vec![(name.to_owned(), arguments.into())],
        end: text.len() - rest.len(),
    })
}
