//! Which fields the translations of requests read, and as what: the description of the routes is made from this, so that it says
//! nothing that is not so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{json, Map, Value};

/// The fields that were read of example requests.
#[derive(Debug, Default)]
pub(crate) struct FieldLog(Mutex<Objects>);

/// By the object's place, without the numbers of lists: the whole body is empty, a tool is `tools[]`.
type Objects = BTreeMap<String, Object>;

#[derive(Debug, Default)]
struct Object {
    /// How often it was opened.
    visits: usize,
    fields: BTreeMap<String, Field>,
}

#[derive(Debug, Default)]
struct Field {
    schema: Map<String, Value>,
    /// The visits that could not do without it.
    required: BTreeSet<usize>,
}

impl FieldLog {
    /// Notes that the object at this place is read; the number tells this visit from others.
    pub(crate) fn visit(&self, path: &str) -> usize {
        let mut objects = self.lock();
        let object = objects.entry(general(path)).or_default();
        object.visits += 1;
        object.visits
    }

    /// Notes that a field was read, as a value of this schema.
    pub(crate) fn read(&self, path: &str, name: &str, visit: usize, schema: Value, required: bool) {
        let mut objects = self.lock();
        // `stop[0]` is named for its refusal; the list was noted.
        if name.contains('[') {
            return;
        }
        let field = objects.entry(general(path)).or_default().fields.entry(name.to_owned()).or_default();
        if let Value::Object(schema) = schema {
            join(&mut field.schema, schema);
        }
        if required {
            field.required.insert(visit);
        }
    }

    /// A JSON schema of all bodies that were read. Fields that nobody reads are allowed, because they are ignored.
    pub(crate) fn schema(&self) -> Value {
        let objects = self.lock();
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        describe(&objects, "", &mut schema);
        schema.into()
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        // Nothing that can panic runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds what is known of the object at this place.
fn describe(objects: &Objects, path: &str, schema: &mut Map<String, Value>) {
    let Some(object) = objects.get(path) else { return };
    let mut properties = Map::new();
    for (name, field) in &object.fields {
        let mut property = field.schema.clone();
        let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        describe(objects, &inner, &mut property);
        let element = format!("{inner}[]");
        if objects.contains_key(&element) {
            let mut items = json!({"type": "object"});
            if let Value::Object(items) = &mut items {
                describe(objects, &element, items);
            }
            fill_items(&mut property, items);
        }
        properties.insert(name.clone(), property.into());
    }
    schema.insert("properties".into(), properties.into());
    let needed = object.fields.iter().filter(|(_, field)| field.required.len() == object.visits);
    let needed: Vec<Value> = needed.map(|(name, _)| name.as_str().into()).collect();
    if !needed.is_empty() {
        schema.insert("required".into(), needed.into());
    }
}

/// Says what the elements of a list are, be it one of several things that a field may be.
fn fill_items(property: &mut Map<String, Value>, items: Value) {
    if let Some(Value::Array(choices)) = property.get_mut("anyOf") {
        for choice in choices.iter_mut().filter(|choice| choice["type"] == "array") {
            choice["items"] = items.clone();
        }
    } else {
        property.insert("items".into(), items);
    }
}

/// Joins two readings of one field: it may be what either of them takes.
fn join(known: &mut Map<String, Value>, mut new: Map<String, Value>) {
    if known.is_empty() || (new.contains_key("anyOf") && !known.contains_key("anyOf")) {
        *known = new;
        return;
    }
    for keyword in ["type", "enum"] {
        if let (Some(known), Some(new)) = (known.get_mut(keyword), new.remove(keyword)) {
            let mut choices = choices(known.take());
            choices.extend(self::choices(new));
            let mut seen = Vec::new();
            choices.retain(|choice| {
                !seen.contains(choice) && {
                    seen.push(choice.clone());
                    true
                }
            });
            *known = if let [one] = choices.as_slice() {
                one.clone()
            } else {
                choices.into()
            };
        }
    }
}

fn choices(value: Value) -> Vec<Value> {
    match value {
        Value::Array(choices) => choices,
        one => vec![one],
    }
}

/// `messages[3].content` is read as every message's is.
fn general(path: &str) -> String {
    let mut general = String::with_capacity(path.len());
    for part in path.split_inclusive(['[', ']']) {
        match part.strip_suffix(']') {
            Some(index) if index.bytes().all(|byte| byte.is_ascii_digit()) => general.push(']'),
            _ => general.push_str(part),
        }
    }
    general
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Fields;

    #[test]
    fn what_is_read_is_described() {
        let log = FieldLog::default();
        for body in [
            json!({"model": "a", "n": 1, "list": [{"id": "x", "kind": "a"}]}),
            json!({"model": "b", "list": [{"id": "x", "kind": "b", "more": 1}]}),
        ] {
            let fields = Fields::logged(&body, &log).unwrap();
            fields.required_text("model").unwrap();
            fields.integer("n", 1..=8).unwrap();
            for (index, value) in fields.list("list").unwrap().unwrap().iter().enumerate() {
                let element = fields.element("list", index, value).unwrap();
                element.required_text("id").unwrap();
                if element.word("kind", &[("a", 1), ("b", 2)]).unwrap() == Some(2) {
                    element.required_text("more").unwrap_err();
                }
            }
        }
        let element = json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "string"},
            "kind": {"type": ["string", "null"], "enum": ["a", "b", null]}, "more": {"type": "string"}}});
        let expected = json!({"type": "object", "required": ["model"], "properties": {
            "list": {"type": ["array", "null"], "items": element},
            "model": {"type": "string"},
            "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 8}}});
        assert_eq!(log.schema(), expected);
    }
}
