//! Arguments written as plain text, read as their schemas say.

use serde_json::Value;

use super::call::DEPTH;
use super::number::{number, padded_number};
use super::python_value;

/// The value of a plain text: of the type in its schema, or without one, of the type that it looks like.
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
    let nested = || {
        (is("object") || is("array") || types.is_empty())
            .then(|| container(word))
            .flatten()
    };
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
        let alternatives = schema.get(name).and_then(Value::as_array).filter(|_| depth < DEPTH);
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

/// A list or an object, as JSON or as Python prints it.
fn container(text: &str) -> Option<Value> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok().or_else(|| python_value::whole(text))
}
