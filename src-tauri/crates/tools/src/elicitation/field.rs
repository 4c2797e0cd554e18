//! One field of a form.

use serde_json::Value;

use crate::configuration::Variable;
use crate::visible::visible;

/// Values of a choice at most.
const MOST_CHOICES: usize = 200;

/// Characters of a title or a value at most.
const LONGEST_TITLE: usize = 300;

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name, as the server knows it.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Its description; empty if the server gives none.
    pub description: String,
    /// True if it must have a value.
    pub required: bool,
    /// True if it looks like a password, a key or the like, which a server must not ask for in a form.
    pub looks_secret: bool,
    /// Its values.
    pub input: Input,
}

/// The values that a field takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A text.
    Text {
        /// The form that it has to have.
        format: Option<TextFormat>,
        /// Characters at least.
        min: Option<u64>,
        /// Characters at most.
        max: Option<u64>,
        /// The value to begin with.
        default: Option<String>,
    },
    /// A number.
    Number(Number),
    /// Yes or no.
    Boolean {
        /// The value to begin with.
        default: Option<bool>,
    },
    /// One of these.
    One {
        /// The values.
        choices: Vec<Choice>,
        /// The value to begin with.
        default: Option<String>,
    },
    /// Some of these.
    Some {
        /// The values.
        choices: Vec<Choice>,
        /// Values at least.
        min: Option<u64>,
        /// Values at most.
        max: Option<u64>,
        /// The values to begin with.
        default: Vec<String>,
    },
}

/// A number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Number {
    /// True if it has to be a whole one.
    pub whole: bool,
    /// The least.
    pub min: Option<serde_json::Number>,
    /// The greatest.
    pub max: Option<serde_json::Number>,
    /// The value to begin with.
    pub default: Option<serde_json::Number>,
}

/// A form that a text has to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// `name@example.org`.
    Email,
    /// An address with its scheme.
    Uri,
    /// `2026-11-28`.
    Date,
    /// `2026-11-28T12:00:00Z`.
    DateTime,
}

/// A value of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// As the server knows it.
    pub value: String,
    /// As it is shown. No two of a field look alike.
    pub title: String,
}

impl Field {
    /// Reads the schema of a field.
    pub(super) fn read(name: &str, schema: &Value, required: bool) -> Result<Self, String> {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let title = text("title").filter(|title| !title.trim().is_empty()).unwrap_or(name);
        if title.chars().count() > LONGEST_TITLE || name.chars().count() > LONGEST_TITLE {
            return Err(format!("the name of a field has at most {LONGEST_TITLE} characters"));
        }
        let input = Input::read(schema).map_err(|why| format!("the field {name}: {why}"))?;
        let is_text = matches!(input, Input::Text { .. });
        Ok(Self {
            looks_secret: is_text && [name, title].into_iter().any(Variable::is_named_like_a_secret),
            name: name.to_owned(),
            title: visible(title),
            description: visible(text("description").unwrap_or_default()),
            required,
            input,
        })
    }
}

impl Input {
    fn read(schema: &Value) -> Result<Self, String> {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let default = schema.get("default");
        let text_default = || default.and_then(Value::as_str).map(str::to_owned);
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => {
                if let Some(choices) = choices(schema)? {
                    let default = text_default().filter(|value| choices.iter().any(|choice| choice.value == *value));
                    return Ok(Self::One { choices, default });
                }
                Ok(Self::Text {
                    format: match schema.get("format").and_then(Value::as_str) {
                        Some("email") => Some(TextFormat::Email),
                        Some("uri") => Some(TextFormat::Uri),
                        Some("date") => Some(TextFormat::Date),
                        Some("date-time") => Some(TextFormat::DateTime),
                        // The server checks what is of a form that nobody here knows.
                        _ => None,
                    },
                    min: count("minLength"),
                    max: count("maxLength"),
                    default: text_default(),
                })
            }
            Some(kind @ ("number" | "integer")) => {
                let number = |key: &str| schema.get(key).and_then(Value::as_number).cloned();
                Ok(Self::Number(Number {
                    whole: kind == "integer",
                    min: number("minimum"),
                    max: number("maximum"),
                    default: number("default"),
                }))
            }
            Some("boolean") => Ok(Self::Boolean {
                default: default.and_then(Value::as_bool),
            }),
            Some("array") => {
                let items = schema.get("items").ok_or("a list says what is in it")?;
                let choices = choices(items)?.ok_or("a list has values to choose from")?;
                let chosen = default.and_then(Value::as_array).into_iter().flatten();
                let chosen = chosen.filter_map(Value::as_str);
                let chosen = chosen.filter(|value| choices.iter().any(|choice| choice.value == *value));
                let default = chosen.map(str::to_owned).collect();
                Ok(Self::Some {
                    min: count("minItems"),
                    max: count("maxItems"),
                    choices,
                    default,
                })
            }
            _ => Err("a field is a text, a number, yes or no, or a choice of texts".to_owned()),
        }
    }
}

/// The values of a choice, in each of the three ways in which the versions of the protocol write it.
fn choices(schema: &Value) -> Result<Option<Vec<Choice>>, String> {
    let listed = |key: &str| schema.get(key).and_then(Value::as_array);
    let choices: Vec<(Option<&str>, Option<&str>)> = if let Some(values) = listed("enum") {
        let names = listed("enumNames");
        let titles = values
            .iter()
            .enumerate()
            .map(|(place, _)| names.and_then(|names| names.get(place)?.as_str()));
        values.iter().map(Value::as_str).zip(titles).collect()
    } else if let Some(values) = listed("oneOf").or_else(|| listed("anyOf")) {
        let text = |value: &'_ Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        return distinct(values.iter().map(|value| (text(value, "const"), text(value, "title")))).map(Some);
    } else {
        return Ok(None);
    };
    let owned = |text: Option<&str>| text.map(str::to_owned);
    distinct(choices.into_iter().map(|(value, title)| (owned(value), owned(title)))).map(Some)
}

/// The choices with titles that differ: one that looks like another stands with its value.
fn distinct(choices: impl Iterator<Item = (Option<String>, Option<String>)>) -> Result<Vec<Choice>, String> {
    let mut read: Vec<Choice> = Vec::new();
    for (value, title) in choices {
        let value = value.ok_or("a choice is between texts")?;
        let shown = visible(
            title
                .as_deref()
                .filter(|title| !title.trim().is_empty())
                .unwrap_or(&value),
        );
        let title = match read.iter().any(|other| other.title == shown) {
            true => format!("{shown} ({})", visible(&value)),
            false => shown,
        };
        let alike = read.iter().any(|other| other.title == title || other.value == value);
        if alike || title.chars().count() > LONGEST_TITLE || read.len() == MOST_CHOICES {
            return Err(format!(
                "a choice has at most {MOST_CHOICES} values, which differ and are short"
            ));
        }
        read.push(Choice { value, title });
    }
    match read.is_empty() {
        true => Err("a choice has values".to_owned()),
        false => Ok(read),
    }
}
