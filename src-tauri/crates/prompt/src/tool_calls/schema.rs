//! The tools of a request: which names exist and which type each argument has.

use std::collections::HashMap;

use serde_json::{Number, Value};

use super::python;

/// The tools a model was offered. Without any list every name may be a tool's.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tools {
    properties: Option<HashMap<String, Value>>,
}

impl Tools {
    /// From the OpenAI form `{"type":"function","function":{"name",…,"parameters":{"properties":{…}}}}`, or what is in `function`.
    pub(crate) fn new(tools: &[Value]) -> Self {
        let named = tools.iter().filter_map(|tool| {
            let function = tool.get("function").unwrap_or(tool);
            let name = function.get("name")?.as_str()?;
            let properties = function.pointer("/parameters/properties").cloned().unwrap_or_default();
            Some((name.to_owned(), properties))
        });
        Self {
            properties: Some(named.collect()),
        }
    }

    /// Whether tools were offered.
    pub(crate) fn any(&self) -> bool {
        self.properties.as_ref().is_some_and(|tools| !tools.is_empty())
    }

    /// Whether a tool of this name is known to exist.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.properties.as_ref().is_some_and(|tools| tools.contains_key(name))
    }

    /// Whether there may be a tool of this name.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        self.properties.is_none() || self.has(name)
    }

    /// The name under which a tool was offered: Muse doubles one that has no namespace.
    pub(crate) fn offered<'a>(&self, name: &'a str) -> &'a str {
        match name.split_once('.') {
            Some((space, same)) if space == same && !self.has(name) && self.has(same) => same,
            _ => name,
        }
    }

    /// The schema of an argument, if there is one.
    pub(crate) fn schema(&self, tool: &str, argument: &str) -> Option<&Value> {
        self.properties.as_ref()?.get(tool)?.get(argument)
    }

    /// What an argument written as plain text means, see [`typed`].
    pub(crate) fn value(&self, tool: &str, argument: &str, text: &str) -> Value {
        typed(self.schema(tool, argument), text)
    }
}

/// What a value written as plain text means: what its schema says, or if there is none, what it looks like.
pub(crate) fn typed(schema: Option<&Value>, text: &str) -> Value {
    let mut types = Vec::new();
    if let Some(schema) = schema {
        collect(schema, &mut types, 0);
    }
    let word = text.trim();
    let is = |name: &str| types.contains(&name);
    let read = match word {
        "null" | "None" if is("null") || types.is_empty() => Some(Value::Null),
        "true" | "True" if is("boolean") || types.is_empty() => Some(true.into()),
        "false" | "False" if is("boolean") || types.is_empty() => Some(false.into()),
        _ if types.is_empty() => number(word),
        // A text of digits may be meant as one, a number never is.
        _ if is("string") && (is("integer") || is("number")) => number(word),
        _ if is("integer") || is("number") => padded_number(word),
        _ => None,
    };
    let nested = || (is("object") || is("array") || types.is_empty()).then(|| container(word)).flatten();
    read.or_else(nested).unwrap_or_else(|| text.into())
}

/// The types a schema allows, those of its alternatives included.
fn collect<'a>(schema: &'a Value, types: &mut Vec<&'a str>, depth: usize) {
    match schema.get("type") {
        Some(Value::String(one)) => types.push(plain(one)),
        Some(Value::Array(several)) => types.extend(several.iter().filter_map(Value::as_str).map(plain)),
        _ => {}
    }
    for name in ["anyOf", "oneOf", "allOf"] {
        let alternatives = schema.get(name).and_then(Value::as_array).filter(|_| depth < super::DEPTH);
        alternatives
            .into_iter()
            .flatten()
            .for_each(|alternative| collect(alternative, types, depth + 1));
    }
    // A list of choices that says no type.
    if types.is_empty() && schema.get("enum").is_some() {
        types.push("string");
    }
}

/// The name that JSON Schema has for a type; many tools are described with Python's.
fn plain(name: &str) -> &str {
    match name {
        "float" | "double" => "number",
        "int" | "long" => "integer",
        "str" => "string",
        "bool" => "boolean",
        "dict" => "object",
        "list" | "tuple" | "set" => "array",
        "NoneType" => "null",
        name => name,
    }
}

/// The one type that a schema allows.
pub(crate) fn only_type(schema: &Value) -> Option<&str> {
    schema.get("type").and_then(Value::as_str).map(plain)
}

fn number(text: &str) -> Option<Value> {
    text.parse::<Number>().ok().map(Value::Number)
}

/// A number that may begin with zeros, as in `07`, which JSON does not have.
pub(super) fn padded_number(text: &str) -> Option<Value> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let zeros = digits.len() - digits.trim_start_matches('0').len();
    let more = digits[zeros..].starts_with(|c: char| c.is_ascii_digit());
    number(&format!("{sign}{}", &digits[if more { zeros } else { zeros.saturating_sub(1) }..]))
}

/// A list or an object, as JSON or as Python prints it.
fn container(text: &str) -> Option<Value> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok().or_else(|| python::whole(text))
}
