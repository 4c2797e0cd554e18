//! Types of the fields of requests. Each checks itself, and describes itself as a JSON schema.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::{json, Value};

use crate::http::error_body::Refusal;
use crate::request::fields::Fields;

/// A whole number in this range; `5.0` is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Integer<const MIN: i64, const MAX: i64>(pub(crate) i64);

/// Whole numbers from 1.
pub(crate) type Positive = Integer<1, { i64::MAX }>;

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for Integer<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = || D::Error::custom("this is not a whole number");
        // An error of the deserializer itself says that the field is missing.
        let Value::Number(number) = Value::deserialize(deserializer)? else {
            return Err(wrong());
        };
        let is_whole = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
        let float = || number.as_f64().filter(is_whole).map(|number| number as i64);
        match number.as_i64().or_else(float) {
            None => Err(wrong()),
            Some(whole) if (MIN..=MAX).contains(&whole) => Ok(Self(whole)),
            Some(whole) if MAX < i64::from(u32::MAX) => {
                Err(D::Error::custom(format!("{whole} is not from {MIN} to {MAX}")))
            }
            Some(whole) => Err(D::Error::custom(format!("{whole} is not {MIN} or more"))),
        }
    }
}

impl<const MIN: i64, const MAX: i64> JsonSchema for Integer<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Integer{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({"type": "integer"});
        if MIN > i64::MIN {
            schema.insert("minimum".to_owned(), MIN.into());
        }
        if MAX < i64::from(u32::MAX) {
            schema.insert("maximum".to_owned(), MAX.into());
        }
        schema
    }
}

/// A number in this range, whose bounds are hundredths: a const parameter cannot be a float.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number<const MIN: i64, const MAX: i64>(pub(crate) f32);

/// The upper bound of a [`Number`] without one.
pub(crate) const UNBOUNDED: i64 = i64::MAX;

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for Number<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        let number = number
            .as_f64()
            .ok_or_else(|| D::Error::custom("this is not a number"))?;
        let (min, max) = (MIN as f64 / 100.0, MAX as f64 / 100.0);
        if MAX == UNBOUNDED && number >= min || (min..=max).contains(&number) {
            return Ok(Self(number as f32));
        }
        Err(D::Error::custom(match MAX {
            UNBOUNDED => format!("{number} is not {min} or more"),
            _ => format!("{number} is not from {min} to {max}"),
        }))
    }
}

impl<const MIN: i64, const MAX: i64> JsonSchema for Number<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Number{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({"type": "number", "minimum": MIN as f64 / 100.0});
        if MAX < UNBOUNDED {
            schema.insert("maximum".to_owned(), (MAX as f64 / 100.0).into());
        }
        schema
    }
}

/// A list of such elements, which are read one by one: what an element may hold depends on its type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct List<T> {
    pub(crate) len: usize,
    elements: PhantomData<T>,
}

impl<T> List<T> {
    /// The elements of this list, the field `name` of these, each with its place.
    ///
    /// # Errors
    /// If one is not an object.
    pub(crate) fn elements<'a>(&self, fields: &Fields<'a>, name: &str) -> Result<Vec<Fields<'a>>, Refusal> {
        let values = fields.value(name).and_then(Value::as_array).into_iter().flatten();
        let element = |(index, value)| Fields::of(value, fields.path(&format!("{name}[{index}]")));
        values.enumerate().map(element).collect()
    }
}

impl<'de, T> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self {
            len: Vec::<IgnoredAny>::deserialize(deserializer)?.len(),
            elements: PhantomData,
        })
    }
}

impl<T: JsonSchema> JsonSchema for List<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("ListOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "items": generator.subschema_for::<T>()})
    }
}

/// A text, or a list of such elements.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, bound = "", expecting = "this is neither a text nor a list")]
pub(crate) enum TextOrList<T> {
    Text(String),
    List(List<T>),
}

/// A value that is checked when it is used, because another field can make it meaningless.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent, bound = "")]
pub(crate) struct Unchecked<T> {
    #[schemars(with = "T")]
    value: Value,
    #[serde(skip)]
    kind: PhantomData<T>,
}

impl<T: DeserializeOwned> Unchecked<T> {
    /// The value, in the field `name` of these.
    ///
    /// # Errors
    /// If it is of another kind.
    pub(crate) fn check(&self, fields: &Fields, name: &str) -> Result<T, Refusal> {
        T::deserialize(&self.value).or_else(|error| fields.refuse(name, error))
    }
}

/// A text, token ids, or a list of either: a prompt of completions, or the input of embeddings.
pub(crate) fn text_or_ids(_: &mut SchemaGenerator) -> Schema {
    let ids = json!({"type": "array", "items": {"type": "integer", "minimum": 0}});
    let either = json!({"anyOf": [{"type": "string"}, ids]});
    json_schema!({"anyOf": [{"type": "string"}, ids, {"type": "array", "items": either}]})
}

/// Token ids, if all of these are some.
pub(crate) fn token_ids(values: &[Value]) -> Option<Vec<u32>> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    values.iter().map(id).collect()
}

/// A JSON schema that an answer follows.
pub(crate) fn object_or_boolean(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "boolean", "null"]})
}
