//! A form that a server wants to be filled in, and the check of its values.

use serde_json::{Map, Value};
use url::Url;

use super::field::{Choice, Field, Input, Number, TextFormat};

/// Fields of a form at most.
const MOST_FIELDS: usize = 50;

/// Bytes of a text at most, whatever the server takes.
const LONGEST_TEXT: usize = 64 << 10;

/// The greatest whole number that every program with JSON reads as it is written.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A form: fields without an order within, as the protocol restricts it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Form {
    /// Its fields, in the server's order.
    pub fields: Vec<Field>,
}

/// The fault in the value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// It has none, and must.
    Missing,
    /// It is of another kind, or none of the choices.
    WrongKind,
    /// It has too few characters or values, or is too small.
    TooLittle,
    /// It has too many characters or values, or is too large.
    TooMuch,
    /// It does not have the form of an email address, a date or the like.
    BadFormat,
}

impl Form {
    /// Reads the restricted schema of a form.
    ///
    /// # Errors
    /// A sentence for the server.
    pub(super) fn read(schema: &Value) -> Result<Self, String> {
        let object = schema.get("type").and_then(Value::as_str) == Some("object");
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties
            .filter(|_| object)
            .ok_or("the schema of a form is a flat object")?;
        if properties.len() > MOST_FIELDS {
            return Err(format!("a form has at most {MOST_FIELDS} fields"));
        }
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            let mut names = required.into_iter().flatten();
            names.any(|other| other.as_str() == Some(name))
        };
        let fields = properties
            .iter()
            .map(|(name, schema)| Field::read(name, schema, is_required(name)));
        Ok(Self {
            fields: fields.collect::<Result<_, _>>()?,
        })
    }

    /// The content of a reply out of the values that a person sent: those of the fields and no others.
    ///
    /// # Errors
    /// The faults, by the names of the fields.
    pub fn content(&self, values: &Map<String, Value>) -> Result<Value, Vec<(String, Problem)>> {
        let (mut content, mut problems) = (Map::new(), Vec::new());
        for field in &self.fields {
            let checked = match values.get(&field.name).filter(|value| !value.is_null()) {
                None if field.required => Err(Problem::Missing),
                None => continue,
                Some(value) => field.input.check(value).map(|()| value),
            };
            match checked {
                Ok(value) => drop(content.insert(field.name.clone(), value.clone())),
                Err(problem) => problems.push((field.name.clone(), problem)),
            }
        }
        match problems.is_empty() {
            true => Ok(content.into()),
            false => Err(problems),
        }
    }
}

impl Input {
    fn check(&self, value: &Value) -> Result<(), Problem> {
        let is_one = |choices: &[Choice], value: &Value| choices.iter().any(|choice| value == &choice.value);
        match self {
            Self::Text { format, min, max, .. } => {
                let text = value.as_str().ok_or(Problem::WrongKind)?;
                if text.len() > LONGEST_TEXT {
                    return Err(Problem::TooMuch);
                }
                within(text.chars().count(), *min, *max)?;
                match format.is_none_or(|format| format.has(text)) {
                    true => Ok(()),
                    false => Err(Problem::BadFormat),
                }
            }
            Self::Number(number) => number.check(value),
            Self::Boolean { .. } => value.as_bool().map(drop).ok_or(Problem::WrongKind),
            Self::One { choices, .. } => match is_one(choices, value) {
                true => Ok(()),
                false => Err(Problem::WrongKind),
            },
            Self::Some { choices, min, max, .. } => {
                let chosen = value.as_array().ok_or(Problem::WrongKind)?;
                let twice = |place: usize| chosen[..place].contains(&chosen[place]);
                let valid = |(place, value): (usize, &Value)| is_one(choices, value) && !twice(place);
                match chosen.iter().enumerate().all(valid) {
                    true => within(chosen.len(), *min, *max),
                    false => Err(Problem::WrongKind),
                }
            }
        }
    }
}

impl Number {
    fn check(&self, value: &Value) -> Result<(), Problem> {
        let number = value.as_number().ok_or(Problem::WrongKind)?;
        let as_float = number.as_f64().ok_or(Problem::WrongKind)?;
        // A whole number that only fits a float has been rounded.
        if number.is_f64() && as_float.abs() > EXACT {
            return Err(Problem::TooMuch);
        }
        if self.whole && number.is_f64() && as_float.fract() != 0.0 {
            return Err(Problem::WrongKind);
        }
        if self.min.as_ref().is_some_and(|min| less(number, min)) {
            return Err(Problem::TooLittle);
        }
        match self.max.as_ref().is_some_and(|max| less(max, number)) {
            true => Err(Problem::TooMuch),
            false => Ok(()),
        }
    }
}

fn less(one: &serde_json::Number, other: &serde_json::Number) -> bool {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => one < other,
        _ => one.as_f64() < other.as_f64(),
    }
}

fn within(count: usize, min: Option<u64>, max: Option<u64>) -> Result<(), Problem> {
    let count = count as u64;
    if min.is_some_and(|min| count < min) {
        return Err(Problem::TooLittle);
    }
    match max.is_some_and(|max| count > max) {
        true => Err(Problem::TooMuch),
        false => Ok(()),
    }
}

impl TextFormat {
    fn has(self, text: &str) -> bool {
        match self {
            Self::Email => is_email(text),
            Self::Uri => Url::parse(text).is_ok(),
            Self::Date => text.parse::<jiff::civil::Date>().is_ok() && text.len() == "2026-11-28".len(),
            Self::DateTime => text.parse::<jiff::Timestamp>().is_ok(),
        }
    }
}

/// True for what could be an email address; only its host knows.
fn is_email(text: &str) -> bool {
    let plain = |part: &str| {
        let odd = |character: char| character.is_whitespace() || character.is_control() || character == '@';
        !part.is_empty() && !part.contains(odd)
    };
    text.split_once('@')
        .is_some_and(|(name, host)| plain(name) && plain(host))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(properties: &Value, required: &[&str]) -> Form {
        Form::read(&json!({ "type": "object", "properties": properties, "required": required })).unwrap()
    }

    /// The fault in a value of the field `it`.
    fn problem(schema: &Value, value: &Value) -> Option<Problem> {
        let values = Map::from_iter([("it".to_owned(), value.clone())]);
        let content = form(&json!({ "it": schema }), &[]).content(&values);
        match content {
            Ok(content) => {
                assert_eq!(content, json!({ "it": value }));
                None
            }
            Err(problems) => Some(problems[0].1),
        }
    }

    #[test]
    fn values_are_checked_by_their_fields() {
        use Problem::{BadFormat, TooLittle, TooMuch, WrongKind};
        let text = json!({ "type": "string", "minLength": 2, "maxLength": 4 });
        let whole = json!({ "type": "integer", "minimum": 1, "maximum": 9 });
        let one = json!({ "type": "string", "enum": ["a", "b"] });
        let titled = json!({ "type": "string", "oneOf": [{ "const": "a", "title": "First" }] });
        let some = json!({ "type": "array", "minItems": 1, "maxItems": 2, "items": { "type": "string", "enum": ["a", "b", "c"] } });
        let any = json!({ "type": "array", "items": { "anyOf": [{ "const": "a", "title": "First" }] } });
        for (schema, value, expected) in [
            (&text, json!("tea"), None),
            (&text, json!("äöü"), None),
            (&text, json!("t"), Some(TooLittle)),
            (&text, json!("coffee"), Some(TooMuch)),
            (&text, json!(5), Some(WrongKind)),
            (&whole, json!(1), None),
            (&whole, json!(0), Some(TooLittle)),
            (&whole, json!(10), Some(TooMuch)),
            (&whole, json!(1.5), Some(WrongKind)),
            (&whole, json!("1"), Some(WrongKind)),
            (
                &json!({ "type": "integer" }),
                json!(12_345_678_901_234_567_890_u64),
                None,
            ),
            (&json!({ "type": "number" }), json!(1.5), None),
            (&json!({ "type": "number" }), json!(1e40), Some(TooMuch)),
            (&json!({ "type": "boolean" }), json!(false), None),
            (&json!({ "type": "boolean" }), json!("yes"), Some(WrongKind)),
            (&one, json!("b"), None),
            (&one, json!("c"), Some(WrongKind)),
            (&titled, json!("a"), None),
            (&titled, json!("First"), Some(WrongKind)),
            (&some, json!(["a", "c"]), None),
            (&some, json!([]), Some(TooLittle)),
            (&some, json!(["a", "b", "c"]), Some(TooMuch)),
            (&some, json!(["a", "a"]), Some(WrongKind)),
            (&some, json!("a"), Some(WrongKind)),
            (&any, json!(["a"]), None),
            (
                &json!({ "type": "string", "format": "email" }),
                json!("ada@example.org"),
                None,
            ),
            (
                &json!({ "type": "string", "format": "email" }),
                json!("ada"),
                Some(BadFormat),
            ),
            (
                &json!({ "type": "string", "format": "uri" }),
                json!("https://example.org"),
                None,
            ),
            (
                &json!({ "type": "string", "format": "uri" }),
                json!("example"),
                Some(BadFormat),
            ),
            (
                &json!({ "type": "string", "format": "date" }),
                json!("2026-11-28"),
                None,
            ),
            (
                &json!({ "type": "string", "format": "date" }),
                json!("2026-11-31"),
                Some(BadFormat),
            ),
            (
                &json!({ "type": "string", "format": "date-time" }),
                json!("2026-11-28T12:00:00Z"),
                None,
            ),
            (
                &json!({ "type": "string", "format": "date-time" }),
                json!("noon"),
                Some(BadFormat),
            ),
            (&json!({ "type": "string", "format": "no-such" }), json!("x"), None),
        ] {
            assert_eq!(problem(schema, &value), expected, "{schema} {value}");
        }
        assert_eq!(
            problem(&json!({ "type": "string" }), &json!("x".repeat(70_000))),
            Some(TooMuch)
        );
    }

    #[test]
    fn only_the_fields_of_a_form_are_sent() {
        let form = form(
            &json!({ "z": { "type": "string" }, "a": { "type": "boolean" } }),
            &["z"],
        );
        let names: Vec<&str> = form.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["z", "a"]);
        let values = |value: Value| value.as_object().cloned().unwrap();
        assert_eq!(
            form.content(&values(json!({ "z": "1", "a": null, "more": "secret" }))),
            Ok(json!({ "z": "1" }))
        );
        assert_eq!(
            form.content(&values(json!({ "a": 5 }))),
            Err(vec![
                ("z".to_owned(), Problem::Missing),
                ("a".to_owned(), Problem::WrongKind)
            ])
        );
    }

    #[test]
    fn a_field_that_looks_like_a_secret_is_known() {
        let form = form(
            &json!({
                "password": { "type": "string" },
                "x": { "type": "string", "title": "Your API key" },
                "city": { "type": "string" },
                "keyed": { "type": "boolean" }
            }),
            &[],
        );
        let secret: Vec<bool> = form.fields.iter().map(|field| field.looks_secret).collect();
        assert_eq!(secret, [true, true, false, false]);
    }

    #[test]
    fn choices_that_look_alike_are_told_apart_by_their_values() {
        let alike =
            json!({ "type": "string", "oneOf": [{ "const": "yes", "title": "OK" }, { "const": "no", "title": "OK" }] });
        let form = form(&json!({ "it": alike }), &[]);
        let Input::One { choices, .. } = &form.fields[0].input else {
            panic!("no choice")
        };
        let titles: Vec<&str> = choices.iter().map(|choice| choice.title.as_str()).collect();
        assert_eq!(titles, ["OK", "OK (no)"]);
    }

    #[test]
    fn a_hostile_schema_is_refused_with_a_reason() {
        let many: Map<String, Value> = (0..51)
            .map(|number| (number.to_string(), json!({ "type": "string" })))
            .collect();
        let choices: Vec<String> = (0..201).map(|number| number.to_string()).collect();
        for properties in [
            json!(many),
            json!({ "a": {} }),
            json!({ "a": true }),
            json!({ "a": { "type": "object", "properties": {} } }),
            json!({ "a": { "type": ["string", "null"] } }),
            json!({ "a": { "type": "array", "items": { "type": "string" } } }),
            json!({ "a": { "type": "array" } }),
            json!({ "a": { "type": "string", "enum": [] } }),
            json!({ "a": { "type": "string", "enum": ["x", "x"] } }),
            json!({ "a": { "type": "string", "enum": [1] } }),
            json!({ "a": { "type": "string", "enum": choices } }),
            json!({ "a": { "type": "string", "title": "x".repeat(301) } }),
            json!({ "x".repeat(301): { "type": "string" } }),
            json!([]),
        ] {
            let schema = json!({ "type": "object", "properties": properties });
            assert!(!Form::read(&schema).unwrap_err().is_empty());
        }
        for schema in [json!(null), json!({ "type": "array" }), json!({ "properties": {} })] {
            assert!(Form::read(&schema).is_err(), "{schema}");
        }
    }
}
