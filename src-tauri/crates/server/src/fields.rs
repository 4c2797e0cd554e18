//! The fields of a request, read by name. `null` means unset everywhere, and whatever is wrong is refused with the name of its place.

use std::ops::RangeInclusive;

use serde_json::{json, Map, Value};

use crate::field_log::FieldLog;
use crate::refusal::Refusal;

type Result<T> = std::result::Result<T, Refusal>;

/// A JSON object somewhere in a request.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    /// Where it stands; empty for the whole body.
    path: String,
    /// Where it is noted what is read, and the number of this reading.
    log: Option<(&'a FieldLog, usize)>,
}

impl<'a> Fields<'a> {
    /// The object at this place.
    pub(crate) fn of(value: &'a Value, path: impl Into<String>) -> Result<Self> {
        Self::noted(value, path.into(), None)
    }

    /// A whole body, of which it is noted what is read.
    pub(crate) fn logged(value: &'a Value, log: &'a FieldLog) -> Result<Self> {
        Self::noted(value, String::new(), Some(log))
    }

    fn noted(value: &'a Value, path: String, log: Option<&'a FieldLog>) -> Result<Self> {
        match value {
            Value::Object(map) => {
                let log = log.map(|log| (log, log.visit(&path)));
                Ok(Self { map, path, log })
            }
            _ if path.is_empty() => Err(Refusal::new(crate::refusal::Kind::BadRequest, "the body is not a JSON object")),
            _ => Err(Refusal::field(path, "this is not an object")),
        }
    }

    /// The object at this place of the list `name`.
    pub(crate) fn element(&self, name: &str, index: usize, value: &'a Value) -> Result<Self> {
        Self::noted(value, self.path(&format!("{name}[{index}]")), self.log.map(|(log, _)| log))
    }

    /// The name of a field's place.
    pub(crate) fn path(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    /// The place of this object.
    pub(crate) fn place(&self) -> &str {
        &self.path
    }

    /// What cannot be honoured, with its place.
    pub(crate) fn refuse<T>(&self, name: &str, reason: impl std::fmt::Display) -> Result<T> {
        Err(Refusal::field(self.path(name), reason))
    }

    /// A field that is set, whatever it is.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.get_as(name, || json!({}))
    }

    /// A field that is set, which the caller reads as this schema says.
    pub(crate) fn get_as(&self, name: &str, schema: impl FnOnce() -> Value) -> Option<&'a Value> {
        self.note(name, schema, false);
        self.value(name)
    }

    /// A field that is set, a text or a list of what this schema says.
    pub(crate) fn text_or_list(&self, name: &str, items: impl FnOnce() -> Value) -> Option<&'a Value> {
        self.get_as(name, || {
            let list = json!({"type": "array", "items": items()});
            json!({"anyOf": [{"type": "string"}, list, {"type": "null"}]})
        })
    }

    /// A field that is always set, as [`Fields::get_as`].
    pub(crate) fn required_as(&self, name: &str, schema: impl FnOnce() -> Value) -> Result<&'a Value> {
        self.note(name, schema, true);
        self.value(name).map_or_else(|| self.refuse(name, "this field is required"), Ok)
    }

    /// Refuses a field that is set, with a hint.
    pub(crate) fn unsupported(&self, name: &str, hint: &str) -> Result<()> {
        let schema = || json!({"type": "null", "description": format!("Refused: {hint}.")});
        self.note(name, schema, false);
        match self.value(name) {
            Some(_) => self.refuse(name, format!("this is not supported; {hint}")),
            None => Ok(()),
        }
    }

    /// A field that is set, to be repeated to the client.
    pub(crate) fn as_sent(&self, name: &str) -> Option<&'a Value> {
        self.value(name)
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn note(&self, name: &str, schema: impl FnOnce() -> Value, required: bool) {
        if let Some((log, visit)) = self.log {
            log.read(&self.path, name, visit, schema(), required);
        }
    }

    /// The names of the fields that are set.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.map.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_str())
    }

    /// A text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>> {
        self.read(name, "a text", || kind("string"), Value::as_str)
    }

    /// A text that must be there.
    pub(crate) fn required_text(&self, name: &str) -> Result<&'a str> {
        self.note(name, || json!({"type": "string"}), true);
        let text = self.text_of(name)?;
        text.map_or_else(|| self.refuse(name, "this field is required"), Ok)
    }

    fn text_of(&self, name: &str) -> Result<Option<&'a str>> {
        match self.value(name).map(Value::as_str) {
            Some(None) => self.refuse(name, "this is not a text"),
            text => Ok(text.flatten()),
        }
    }

    /// What one of these words stands for.
    pub(crate) fn word<T: Clone>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let known = || words.iter().map(|(word, _)| Value::from(*word)).chain([Value::Null]);
        let schema = || json!({"type": ["string", "null"], "enum": known().collect::<Vec<_>>()});
        self.note(name, schema, false);
        self.meaning(name, words)
    }

    /// As [`Fields::word`], of a field that must be there.
    pub(crate) fn required_word<T: Clone>(&self, name: &str, words: &[(&str, T)]) -> Result<T> {
        let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>();
        self.note(name, || json!({"type": "string", "enum": known()}), true);
        self.meaning(name, words)?
            .map_or_else(|| self.refuse(name, "this field is required"), Ok)
    }

    fn meaning<T: Clone>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some(said) = self.text_of(name)? else { return Ok(None) };
        match words.iter().find(|(word, _)| *word == said) {
            Some((_, meaning)) => Ok(Some(meaning.clone())),
            None => {
                let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                self.refuse(name, format!("{said:?} is none of {}", known.join(", ")))
            }
        }
    }

    /// True or false.
    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.read(name, "true or false", || kind("boolean"), Value::as_bool)
    }

    /// A list.
    pub(crate) fn list(&self, name: &str) -> Result<Option<&'a [Value]>> {
        self.read(name, "a list", || kind("array"), |value| value.as_array().map(Vec::as_slice))
    }

    /// A list that must be there and hold something.
    pub(crate) fn required_list(&self, name: &str) -> Result<&'a [Value]> {
        let list = self.required_as(name, || json!({"type": "array", "minItems": 1}))?;
        match list.as_array().map(Vec::as_slice) {
            Some([]) => self.refuse(name, "this list is empty, and at least one is needed"),
            Some(list) => Ok(list),
            None => self.refuse(name, "this is not a list"),
        }
    }

    /// An object.
    pub(crate) fn object(&self, name: &str) -> Result<Option<Fields<'a>>> {
        let value = self.get_as(name, || kind("object"));
        let log = self.log.map(|(log, _)| log);
        value.map(|value| Fields::noted(value, self.path(name), log)).transpose()
    }

    /// A number in this range.
    pub(crate) fn number(&self, name: &str, range: RangeInclusive<f64>) -> Result<Option<f32>> {
        let (from, to) = range.clone().into_inner();
        let schema = || {
            let mut schema = kind("number");
            schema["minimum"] = from.into();
            if to < f64::MAX {
                schema["maximum"] = to.into();
            }
            schema
        };
        match self.read(name, "a number", schema, Value::as_f64)? {
            Some(number) if !range.contains(&number) => {
                let range = if to < f64::MAX {
                    format!("from {from} to {to}")
                } else {
                    format!("{from} or more")
                };
                self.refuse(name, format!("{number} is not {range}"))
            }
            number => Ok(number.map(|number| number as f32)),
        }
    }

    /// A whole number in this range; `5.0` is one.
    pub(crate) fn integer(&self, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>> {
        let whole = |value: &Value| {
            let float = || value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15);
            value.as_i64().or_else(|| float().map(|number| number as i64))
        };
        let (from, to) = range.clone().into_inner();
        let schema = || {
            let mut schema = kind("integer");
            if from > i64::MIN {
                schema["minimum"] = from.into();
            }
            if to < i64::from(u32::MAX) {
                schema["maximum"] = to.into();
            }
            schema
        };
        match self.read(name, "a whole number", schema, whole)? {
            Some(number) if !range.contains(&number) => {
                let range = if to < i64::from(u32::MAX) {
                    format!("from {from} to {to}")
                } else {
                    format!("{from} or more")
                };
                self.refuse(name, format!("{number} is not {range}"))
            }
            number => Ok(number),
        }
    }

    fn read<T>(&self, name: &str, what: &str, schema: impl FnOnce() -> Value, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>> {
        match self.get_as(name, schema) {
            None => Ok(None),
            Some(value) => match read(value) {
                None => self.refuse(name, format!("this is not {what}")),
                some => Ok(some),
            },
        }
    }
}

/// The schema of a field that may be unset.
fn kind(name: &str) -> Value {
    json!({"type": [name, "null"]})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_means_unset_and_what_is_wrong_is_named() {
        let body = json!({"a": null, "b": 5.0, "c": "x", "d": {"e": 3}});
        let fields = Fields::of(&body, "").unwrap();
        assert_eq!(fields.integer("a", 0..=9), Ok(None));
        assert_eq!(fields.integer("b", 0..=9), Ok(Some(5)));
        assert_eq!(fields.names().collect::<Vec<_>>(), ["b", "c", "d"]);
        let wrong = |refusal: Refusal| (refusal.param.unwrap(), refusal.message);
        assert_eq!(
            wrong(fields.integer("b", 0..=4).unwrap_err()),
            ("b".into(), "b: 5 is not from 0 to 4".into())
        );
        assert_eq!(
            wrong(fields.boolean("c").unwrap_err()),
            ("c".into(), "c: this is not true or false".into())
        );
        let inner = fields.object("d").unwrap().unwrap();
        assert_eq!(
            wrong(inner.number("e", 0.0..=2.0).unwrap_err()),
            ("d.e".into(), "d.e: 3 is not from 0 to 2".into())
        );
        assert_eq!(
            wrong(inner.required_text("f").unwrap_err()),
            ("d.f".into(), "d.f: this field is required".into())
        );
        assert!(Fields::of(&json!([]), "").unwrap_err().message.contains("not a JSON object"));
    }
}
