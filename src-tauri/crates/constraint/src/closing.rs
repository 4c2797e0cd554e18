//! Closes what a schema leaves open. JSON Schema allows any further property and numbers of any length; nobody who leaves
//! out `additionalProperties` means that, and a small model writes on until its context is full.

use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use serde_json::{json, Map, Value};

use crate::limits::merges;

/// The largest integer that every program reads exactly, of 16 digits.
const MOST: i64 = (1 << 53) - 1;

/// The same schema, whose objects have only the properties that they name, and whose integers have at most 16 digits,
/// unless it says otherwise. Schemas that are merged with others stay as they are: none of them knows all properties.
pub(crate) fn closed(schema: &Value) -> Value {
    let mut places = Places {
        root: schema,
        seen: HashSet::new(),
        alone: HashSet::new(),
        merged: HashSet::new(),
        is_clear: true,
    };
    places.visit(schema, String::new(), false);
    let mut closed = schema.clone();
    if !places.is_clear {
        return closed;
    }
    for place in places.alone.difference(&places.merged) {
        if let Some(Value::Object(keywords)) = closed.pointer_mut(place) {
            close_object(keywords);
            bound_integer(keywords);
        }
    }
    closed
}

/// The places of all schemas, as JSON pointers.
struct Places<'a> {
    root: &'a Value,
    seen: HashSet<(String, bool)>,
    /// Schemas that say alone what a value may be, at least once.
    alone: HashSet<String>,
    /// Schemas that are merged with others, at least once.
    merged: HashSet<String>,
    /// False if a reference leads to an unknown place.
    is_clear: bool,
}

impl<'a> Places<'a> {
    fn visit(&mut self, schema: &'a Value, place: String, merged: bool) {
        let Value::Object(keywords) = schema else { return };
        if !self.seen.insert((place.clone(), merged)) {
            return;
        }
        let merged = merged || merges(keywords);
        if merged {
            self.merged.insert(place.clone());
        } else {
            self.alone.insert(place.clone());
        }
        let inside = |keyword: &str| format!("{place}/{keyword}");
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("$ref", Value::String(target)) => self.follow(target, merged),
                ("$id" | "id" | "$anchor" | "$dynamicRef", Value::String(_)) if !place.is_empty() => {
                    self.is_clear = false;
                }
                ("properties" | "patternProperties", Value::Object(parts)) => {
                    for (name, part) in parts {
                        let name = name.replace('~', "~0").replace('/', "~1");
                        self.visit(part, format!("{}/{name}", inside(keyword)), merged);
                    }
                }
                ("allOf" | "anyOf" | "oneOf" | "items" | "prefixItems", Value::Array(parts)) => {
                    for (index, part) in parts.iter().enumerate() {
                        self.visit(part, format!("{}/{index}", inside(keyword)), merged);
                    }
                }
                ("items" | "additionalProperties" | "additionalItems", part) => {
                    self.visit(part, inside(keyword), merged);
                }
                _ => {}
            }
        }
    }

    fn follow(&mut self, target: &str, merged: bool) {
        let pointer = target
            .strip_prefix('#')
            .map(|pointer| percent_decode_str(pointer).decode_utf8_lossy());
        match pointer.and_then(|pointer| Some((self.root.pointer(&pointer)?, pointer.into_owned()))) {
            Some((schema, pointer)) => self.visit(schema, pointer, merged),
            None => self.is_clear = false,
        }
    }
}

fn close_object(keywords: &mut Map<String, Value>) {
    if keywords.contains_key("additionalProperties") || keywords.contains_key("patternProperties") {
        return;
    }
    let Some(named) = keywords
        .get("properties")
        .and_then(Value::as_object)
        .filter(|named| !named.is_empty())
    else {
        return;
    };
    let required = keywords.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten().filter_map(Value::as_str);
    let least = keywords.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
    // It wants more than it names.
    if required.any(|name| !named.contains_key(name)) || least > named.len() as u64 {
        return;
    }
    keywords.insert("additionalProperties".into(), false.into());
}

fn bound_integer(keywords: &mut Map<String, Value>) {
    let is = |kind: &str| match &keywords["type"] {
        Value::String(one) => one == kind,
        Value::Array(kinds) => kinds.iter().any(|one| one == kind),
        _ => false,
    };
    if !keywords.contains_key("type") || !is("integer") || is("number") {
        return;
    }
    if ["enum", "const", "multipleOf"]
        .iter()
        .any(|name| keywords.contains_key(*name))
    {
        return;
    }
    let bound = |names: [&str; 2]| names.iter().find_map(|name| keywords.get(*name)).map(Value::as_f64);
    let (least, most) = (
        bound(["minimum", "exclusiveMinimum"]),
        bound(["maximum", "exclusiveMaximum"]),
    );
    let limit = MOST as f64;
    if least.is_none() && most.is_none_or(|most| most.is_some_and(|most| most > -limit)) {
        keywords.insert("minimum".into(), json!(-MOST));
    }
    if most.is_none() && least.is_none_or(|least| least.is_some_and(|least| least < limit)) {
        keywords.insert("maximum".into(), json!(MOST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    fn is_closed(schema: &Value, place: &str) -> bool {
        closed(schema).pointer(place).unwrap().get("additionalProperties") == Some(&json!(false))
    }

    #[test]
    fn objects_that_stand_alone_are_closed_wherever_they_are() {
        let inner = object(json!({"b": {"type": "string"}}));
        let schema = object(
            json!({"a": inner, "list": {"type": "array", "items": inner}, "a/b": {"anyOf": [inner, {"type": "null"}]},
            "named": {"$ref": "#/$defs/Inner", "description": "d"}, "default": {"const": {"properties": {"x": 1}}}}),
        );
        let mut schema = schema;
        schema["$defs"] = json!({"Inner": {"$ref": "#/$defs/Deeper"}, "Deeper": inner});
        for place in [
            "",
            "/properties/a",
            "/properties/list/items",
            "/properties/a~1b/anyOf/0",
            "/$defs/Deeper",
        ] {
            assert!(is_closed(&schema, place), "{place}");
        }
        assert_eq!(
            closed(&schema)["properties"]["default"],
            schema["properties"]["default"]
        );
        assert_eq!(closed(&closed(&schema)), closed(&schema));
    }

    #[test]
    fn what_is_open_by_its_words_or_has_to_be_stays_open() {
        for schema in [
            json!({"type": "object"}),
            object(json!({})),
            json!({"properties": {"a": {}}, "additionalProperties": true}),
            json!({"properties": {"a": {}}, "patternProperties": {"^x": {}}}),
            json!({"properties": {"a": {}}, "required": ["b"]}),
            json!({"properties": {"a": {}}, "minProperties": 2}),
            json!({"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]}),
            json!({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}),
            json!({"$defs": {"base": {"properties": {"a": {}}}}, "properties": {"b": {}}, "$ref": "#/$defs/base"}),
            json!({"properties": {"a": {"$ref": "https://example.com/a"}}}),
        ] {
            assert_eq!(closed(&schema), schema);
        }
        // Closed where it stands alone, but not where another one adds to it.
        let base = json!({"$defs": {"base": {"properties": {"a": {}}}}, "properties": {"alone": {"$ref": "#/$defs/base"},
            "more": {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {}}}]}}});
        assert!(is_closed(&base, "") && !is_closed(&base, "/$defs/base"));
    }

    #[test]
    fn integers_end() {
        let of = |schema: Value| {
            let closed = closed(&schema);
            (closed.get("minimum").cloned(), closed.get("maximum").cloned())
        };
        let (least, most) = (Some(json!(-MOST)), Some(json!(MOST)));
        assert_eq!(MOST.to_string().len(), 16);
        assert_eq!(of(json!({"type": "integer"})), (least.clone(), most.clone()));
        assert_eq!(of(json!({"type": ["integer", "null"]})), (least.clone(), most.clone()));
        assert_eq!(of(json!({"type": "integer", "minimum": 0})), (Some(json!(0)), most));
        assert_eq!(of(json!({"type": "integer", "exclusiveMaximum": 9})), (least, None));
        assert_eq!(
            of(json!({"type": "integer", "minimum": 1e18})),
            (Some(json!(1e18)), None)
        );
        for other in [
            json!({"type": "number"}),
            json!({"type": ["integer", "number"]}),
            json!({"const": 5}),
            json!({"type": "integer", "multipleOf": 3}),
        ] {
            assert_eq!(closed(&other), other);
        }
    }
}
