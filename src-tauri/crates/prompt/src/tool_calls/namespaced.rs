//! MiniMax-M3's calls: `<invoke name="NAME">` whose arguments are elements named after them, nested as the value is, each tag after
//! the marker `]<]minimax[>[` that nobody types by chance. `<item>` elements make a list.

use serde_json::{Map, Value};

use super::{Call, ParsedCalls, Tools, DEPTH};

/// Stands before each tag.
const SPACE: &str = "]<]minimax[>[";

/// Whether the text begins with a call of this form.
pub(super) fn begins(text: &str) -> bool {
    text.starts_with(SPACE)
}

/// One call or several.
pub(super) fn read(text: &str, tools: &Tools) -> Option<ParsedCalls> {
    let (mut calls, mut rest) = (Vec::new(), text);
    while let Some(after) = rest.trim_start().strip_prefix(SPACE) {
        let (call, after) = call(after, tools)?;
        calls.push(call);
        rest = after;
    }
    (!calls.is_empty()).then_some(ParsedCalls {
        calls,
        end: text.len() - rest.len(),
    })
}

fn call<'a>(text: &'a str, tools: &Tools) -> Option<(Call, &'a str)> {
    let (name, inner) = text.strip_prefix("<invoke name=\"")?.split_once("\">")?;
    let (fields, rest) = fields(inner, "invoke", 0)?;
    let arguments: Option<Map<String, Value>> = fields
        .into_iter()
        .map(|(key, node)| {
            let value = node.value(tools.schema(name, key))?;
            Some((key.to_owned(), value))
        })
        .collect();
    (!name.is_empty()).then_some(((name.to_owned(), arguments?.into()), rest))
}

/// What an element holds.
enum Node<'a> {
    Text(&'a str),
    Fields(Vec<(&'a str, Node<'a>)>),
}

impl Node<'_> {
    /// The value, with the types that the schema asks for.
    fn value(self, schema: Option<&Value>) -> Option<Value> {
        let kind = schema.and_then(|schema| schema.get("type")).and_then(Value::as_str);
        match self {
            // An empty list or object has no elements to tell it from a text.
            Node::Text("") if kind == Some("array") => Some(Value::Array(Vec::new())),
            Node::Text("") if kind == Some("object") => Some(Map::new().into()),
            Node::Text(text) => Some(super::schema::typed(schema, text)),
            Node::Fields(fields) if kind != Some("object") && fields.iter().all(|(key, _)| *key == "item") => {
                let items = schema.and_then(|schema| schema.get("items"));
                fields
                    .into_iter()
                    .map(|(_, node)| node.value(items))
                    .collect::<Option<Vec<_>>>()
                    .map(Value::Array)
            }
            Node::Fields(fields) => {
                let properties = schema.and_then(|schema| schema.get("properties"));
                let value = |(key, node): (&str, Node<'_>)| {
                    let schema = properties.and_then(|properties| properties.get(key));
                    Some((key.to_owned(), node.value(schema)?))
                };
                fields.into_iter().map(value).collect::<Option<Map<_, _>>>().map(Value::Object)
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
        let nested = inner.trim_start().strip_prefix(SPACE).is_some_and(|tag| !tag.starts_with("</"));
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
        let tools = Tools::new(
            &[json!({"type": "function", "function": {"name": "f", "parameters": {"properties": {
            "s": {"type": "string"}, "i": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}},
            "o": {"type": "object", "properties": {"item": {"type": "boolean"}}}}}}})],
        );
        read(&text.replace('§', SPACE), &tools).map(|reading| json!([reading.calls, reading.end]))
    }

    fn written(text: &str) -> usize {
        text.replace('§', SPACE).len()
    }

    #[test]
    fn arguments_are_elements_of_their_names() {
        let text = "§<invoke name=\"f\">§<s>12§</s>§<i>-12§</i>§<l>§<item>1§</item>§<item>b c§</item>§</l>§<o>§<item>true§</item>§</o>§</invoke>\n§<invoke name=\"g\">§<a>§<k>1§</k>§</a>§</invoke>";
        let read = json!([["f", {"s": "12", "i": -12, "l": ["1", "b c"], "o": {"item": true}}], ["g", {"a": {"k": 1}}]]);
        assert_eq!(calls(text), Some(json!([read, written(text)])));
        let empty = "§<invoke name=\"f\">§<s>§</s>§<l>§</l>§<o>§</o>§</invoke>";
        assert_eq!(calls(empty), Some(json!([[["f", {"s": "", "l": [], "o": {}}]], written(empty)])));
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
