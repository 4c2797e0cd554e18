//! An object of a request, read as serde structs. `null` means unset everywhere, and each fault is refused with its
//! path.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::Value;

use crate::http::error_body::{Kind, Refusal};

type Result<T> = std::result::Result<T, Refusal>;

/// A JSON object in a request.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    object: &'a Value,
    /// Its path; empty for the body itself.
    path: String,
}

impl<'a> Fields<'a> {
    /// The object at this path.
    pub(crate) fn of(value: &'a Value, path: impl Into<String>) -> Result<Self> {
        let path = path.into();
        match value {
            Value::Object(_) => Ok(Self { object: value, path }),
            _ if path.is_empty() => Err(Refusal::new(Kind::BadRequest, "the body is not a JSON object")),
            _ => Err(Refusal::field(path, "this is not an object")),
        }
    }

    /// Its fields as a struct. Fields that the struct does not have are ignored.
    ///
    /// # Errors
    /// If a field is missing or of another kind; the refusal names it.
    pub(crate) fn read<T: Deserialize<'a>>(&self) -> Result<T> {
        serde_path_to_error::deserialize(self.object).map_err(|error| self.refusal(&error))
    }

    fn refusal(&self, error: &serde_path_to_error::Error<serde_json::Error>) -> Refusal {
        let message = error.inner().to_string();
        let place = match error.path().to_string().as_str() {
            "." => self.path.clone(),
            inner => self.path(inner),
        };
        if let Some(name) = message.strip_prefix("missing field ") {
            let place = Self { path: place, ..*self }.path(name.trim_matches('`'));
            return Refusal::field(place, REQUIRED);
        }
        Refusal::field(place, reason(&message))
    }

    /// The path of a field of this object.
    pub(crate) fn path(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    /// The path of this object.
    pub(crate) fn place(&self) -> &str {
        &self.path
    }

    /// This object, as it was sent.
    pub(crate) fn object(&self) -> &'a Value {
        self.object
    }

    /// Refuses a field that cannot be honored.
    pub(crate) fn refuse<T>(&self, name: &str, reason: impl std::fmt::Display) -> Result<T> {
        Err(Refusal::field(self.path(name), reason))
    }

    /// The value of a field that only some forms of the object need.
    pub(crate) fn require<T>(&self, name: &str, value: Option<T>) -> Result<T> {
        value.map_or_else(|| self.refuse(name, REQUIRED), Ok)
    }

    /// Refuses these fields if they are set, each with a hint.
    pub(crate) fn refuse_unsupported(&self, fields: &[(&str, &str)]) -> Result<()> {
        match fields.iter().find(|(name, _)| self.value(name).is_some()) {
            Some((name, hint)) => self.refuse(name, format!("this is not supported; {hint}")),
            None => Ok(()),
        }
    }

    /// A field that is set, as it was sent.
    pub(crate) fn value(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }
}

/// Structs that together are the body of a route. Each has its fields and ignores those of the others: serde's own `flatten` would
/// lose the place of a fault.
pub(crate) trait Body: Sized {
    /// Reads all of them.
    ///
    /// # Errors
    /// As [`Fields::read`].
    fn read(fields: &Fields) -> Result<Self>;

    /// The JSON schema of each.
    fn schemas(generator: &mut SchemaGenerator) -> Vec<Schema>;
}

macro_rules! body {
    ($($part:ident),+) => {
        impl<$($part: DeserializeOwned + JsonSchema),+> Body for ($($part,)+) {
            fn read(fields: &Fields) -> Result<Self> {
                Ok(($(fields.read::<$part>()?,)+))
            }

            fn schemas(generator: &mut SchemaGenerator) -> Vec<Schema> {
                vec![$($part::json_schema(generator)),+]
            }
        }
    };
}

body!(A);
body!(A, B);
body!(A, B, C);
body!(A, B, C, D);

const REQUIRED: &str = "this field is required";

/// An error of serde in the words of this API.
fn reason(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    if let Some(word) = found.strip_prefix("unknown variant ") {
        let known = expected
            .trim_start_matches("one of ")
            .replace(" or ", ", ")
            .replace('`', "");
        return format!("{:?} is none of {known}", word.trim_matches('`'));
    }
    match expected {
        _ if found == "invalid type: null" => REQUIRED.to_owned(),
        "a string" | "string or map" | "map with a single key" => "this is not a text".to_owned(),
        "a boolean" => "this is not true or false".to_owned(),
        "a sequence" => "this is not a list".to_owned(),
        "a JSON number" => "this is not a number".to_owned(),
        _ if expected.starts_with("struct ") || expected == "a map" => "this is not an object".to_owned(),
        _ => format!("this is {expected}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request::values::{Integer, Number, TextOrList};

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Body {
        a: Option<Integer<0, 9>>,
        b: Option<Integer<0, 9>>,
        c: Option<bool>,
        d: Option<Inner>,
        word: Option<Word>,
        stop: Option<TextOrList<String>>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        e: Option<Number<0, 200>>,
        f: String,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        One,
        Two,
        Three,
    }

    #[test]
    fn null_means_unset_and_what_is_wrong_is_named() {
        let read = |body: Value| Fields::of(&body, "").unwrap().read::<Body>();
        let body = read(json!({"a": null, "b": 5.0, "other": 1, "word": "two"})).unwrap();
        assert_eq!((body.a, body.b, body.word), (None, Some(Integer(5)), Some(Word::Two)));
        for (body, place, reason) in [
            (json!({"b": 12}), "b", "12 is not from 0 to 9"),
            (json!({"b": 0.5}), "b", "this is not a whole number"),
            (json!({"b": "x"}), "b", "this is not a whole number"),
            (json!({"c": "x"}), "c", "this is not true or false"),
            (json!({"d": {"e": 3, "f": ""}}), "d.e", "3 is not from 0 to 2"),
            (json!({"d": {"e": "x"}}), "d.e", "this is not a number"),
            (json!({"d": {}}), "d.f", "this field is required"),
            (json!({"d": {"f": null}}), "d.f", "this field is required"),
            (json!({"d": {"f": 1}}), "d.f", "this is not a text"),
            (json!({"d": 5}), "d", "this is not an object"),
            (json!({"word": "four"}), "word", "\"four\" is none of one, two, three"),
            (json!({"word": {"a": 1}}), "word", "\"a\" is none of one, two, three"),
            (json!({"word": 5}), "word", "this is not a text"),
            (json!({"stop": 5}), "stop", "this is neither a text nor a list"),
        ] {
            let refusal = read(body).unwrap_err();
            assert_eq!(refusal.param.as_deref(), Some(place));
            assert_eq!(refusal.message, format!("{place}: {reason}"));
        }
        let list = json!([]);
        assert!(Fields::of(&list, "").unwrap_err().message.contains("not a JSON object"));
        let inner = json!({});
        let inner = Fields::of(&inner, "list[0]").unwrap().read::<Inner>();
        assert_eq!(inner.unwrap_err().param.as_deref(), Some("list[0].f"));
    }
}
