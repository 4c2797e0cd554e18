//! The fields of a request, read by name. `null` means unset everywhere, and whatever is wrong is refused with the name of its place.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::refusal::Refusal;

type Result<T> = std::result::Result<T, Refusal>;

/// A JSON object somewhere in a request.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    /// Where it stands; empty for the whole body.
    path: String,
}

impl<'a> Fields<'a> {
    /// The object at this place.
    pub(crate) fn of(value: &'a Value, path: impl Into<String>) -> Result<Self> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            _ if path.is_empty() => Err(Refusal::new(crate::refusal::Kind::BadRequest, "the body is not a JSON object")),
            _ => Err(Refusal::field(path, "this is not an object")),
        }
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

    /// A field that is set.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// The names of the fields that are set.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.map.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_str())
    }

    /// A text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>> {
        self.read(name, "a text", Value::as_str)
    }

    /// A text that must be there.
    pub(crate) fn required_text(&self, name: &str) -> Result<&'a str> {
        self.text(name)?.map_or_else(|| self.refuse(name, "this field is required"), Ok)
    }

    /// True or false.
    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.read(name, "true or false", Value::as_bool)
    }

    /// A list.
    pub(crate) fn list(&self, name: &str) -> Result<Option<&'a [Value]>> {
        self.read(name, "a list", |value| value.as_array().map(Vec::as_slice))
    }

    /// A list that must be there and hold something.
    pub(crate) fn required_list(&self, name: &str) -> Result<&'a [Value]> {
        match self.list(name)? {
            Some([]) => self.refuse(name, "this list is empty, and at least one is needed"),
            Some(list) => Ok(list),
            None => self.refuse(name, "this field is required"),
        }
    }

    /// An object.
    pub(crate) fn object(&self, name: &str) -> Result<Option<Fields<'a>>> {
        self.get(name).map(|value| Fields::of(value, self.path(name))).transpose()
    }

    /// A number in this range.
    pub(crate) fn number(&self, name: &str, range: RangeInclusive<f64>) -> Result<Option<f32>> {
        let number = self.read(name, "a number", Value::as_f64)?;
        match number {
            Some(number) if !range.contains(&number) => {
                let (from, to) = range.into_inner();
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
        match self.read(name, "a whole number", whole)? {
            Some(number) if !range.contains(&number) => {
                let (from, to) = range.into_inner();
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

    fn read<T>(&self, name: &str, what: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => match read(value) {
                None => self.refuse(name, format!("this is not {what}")),
                some => Ok(some),
            },
        }
    }
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
