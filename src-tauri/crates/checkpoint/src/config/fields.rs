//! Typed reading of JSON objects as `config.json` files have them: `null` means absent, and floats that JSON cannot
//! write come as `{"__float__": "Infinity"}`.

use serde_json::{Map, Value};

use super::limits::{check_names, check_nonzero};
use crate::error::{unusable, Error};

/// One JSON object of a config.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

/// A number that a config may hold.
pub(crate) trait Number: Sized {
    fn from_f64(value: f64) -> Option<Self>;
}

impl Number for u32 {
    fn from_f64(value: f64) -> Option<Self> {
        (value >= 0.0 && value <= f64::from(u32::MAX) && value.fract() == 0.0).then_some(value as u32)
    }
}

impl Number for f32 {
    fn from_f64(value: f64) -> Option<Self> {
        Some(value as f32)
    }
}

impl Number for f64 {
    fn from_f64(value: f64) -> Option<Self> {
        Some(value)
    }
}

/// A number, or one that JSON cannot write, in its tag.
fn float(value: &Value) -> Option<f64> {
    let tagged = || value.get("__float__")?.as_str()?.parse().ok();
    value.as_f64().or_else(tagged)
}

impl<'a> Fields<'a> {
    pub(crate) fn new(object: &'a Map<String, Value>) -> Self {
        Self(object)
    }

    fn get(self, field: &str) -> Option<&'a Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    /// The objects among its fields.
    pub(crate) fn objects(self) -> impl Iterator<Item = Fields<'a>> {
        self.0.values().filter_map(Value::as_object).map(Fields)
    }

    /// The object in a field whose own name is this number, whatever zeros stand before it.
    pub(crate) fn entry(self, field: &'static str, number: usize) -> Result<Option<Fields<'a>>, Error> {
        let mut fields = self.object(field)?.into_iter().flat_map(|table| table.0);
        match fields.find(|(name, _)| name.parse() == Ok(number)) {
            None => Ok(None),
            Some((_, Value::Object(entry))) => Ok(Some(Fields(entry))),
            Some(_) => Err(Error::invalid(field, "it holds something that is not an object")),
        }
    }

    /// A list of objects.
    pub(crate) fn object_list(self, field: &'static str) -> Result<Option<Vec<Fields<'a>>>, Error> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let items = value.as_array();
        let objects = items.and_then(|items| items.iter().map(|item| item.as_object().map(Fields)).collect());
        objects
            .map(Some)
            .ok_or_else(|| Error::invalid(field, "it is not a list of objects"))
    }

    /// How many fields there are.
    pub(crate) fn count(self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn has(self, field: &str) -> bool {
        self.get(field).is_some()
    }

    /// True if the field is there and `null`, for the few where that is not the same as absent.
    pub(crate) fn says_null(self, field: &str) -> bool {
        self.0.get(field).is_some_and(Value::is_null)
    }

    pub(crate) fn number<T: Number>(self, field: &'static str) -> Result<Option<T>, Error> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let number = float(value).and_then(T::from_f64);
        number
            .map(Some)
            .ok_or_else(|| Error::invalid(field, format!("{value} is not a number that fits")))
    }

    /// The first of several fields that is there.
    pub(crate) fn first<T: Number>(self, fields: &[&'static str]) -> Result<Option<T>, Error> {
        let found = fields.iter().find(|field| self.has(field));
        found.map_or(Ok(None), |field| self.number(field))
    }

    pub(crate) fn required(self, field: &'static str) -> Result<u32, Error> {
        match self.number(field)? {
            Some(number) => check_nonzero(field, number).map(|()| number),
            None => Err(Error::MissingField(field)),
        }
    }

    /// A number that some configs have under a name of their own.
    pub(crate) fn either(self, own: &'static str, usual: &'static str) -> Result<u32, Error> {
        self.required(if self.has(own) { own } else { usual })
    }

    pub(crate) fn flag(self, field: &'static str) -> Result<Option<bool>, Error> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => unusable(field, format!("{other} is not true or false")),
        }
    }

    pub(crate) fn text(self, field: &'static str) -> Result<Option<String>, Error> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => unusable(field, format!("{other} is not a text")),
        }
    }

    pub(crate) fn texts(self, field: &'static str) -> Result<Option<Vec<&'a str>>, Error> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let texts = value
            .as_array()
            .and_then(|items| items.iter().map(Value::as_str).collect());
        texts
            .map(Some)
            .ok_or_else(|| Error::invalid(field, "it is not a list of texts"))
    }

    /// One value for each layer, by the names in `layer_types`; `None` if the config has no such list.
    pub(crate) fn layer_types<T: Copy>(self, layers: u32, kinds: &[(&str, T)]) -> Result<Option<Vec<T>>, Error> {
        self.kinds("layer_types", layers, kinds)
    }

    /// The same by the names in another field.
    pub(crate) fn kinds<T: Copy>(
        self,
        field: &'static str,
        layers: u32,
        kinds: &[(&str, T)],
    ) -> Result<Option<Vec<T>>, Error> {
        let Some(names) = self.texts(field)? else {
            return Ok(None);
        };
        check_names(field, names.len(), layers as usize)?;
        let kind = |name| match kinds.iter().find(|(known, _)| *known == name) {
            Some((_, kind)) => Ok(*kind),
            None => Err(Error::Unsupported(format!("layers of type `{name}`"))),
        };
        names.into_iter().map(kind).collect::<Result<_, _>>().map(Some)
    }

    /// A list of numbers, or one number as a list of one.
    pub(crate) fn numbers(self, field: &'static str) -> Result<Option<Vec<f32>>, Error> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let numbers = match value {
            Value::Array(items) => items
                .iter()
                .map(|item| item.as_f64().map(|number| number as f32))
                .collect(),
            one => one.as_f64().map(|number| vec![number as f32]),
        };
        numbers
            .map(Some)
            .ok_or_else(|| Error::invalid(field, "it is not a list of numbers"))
    }

    /// A list of pairs of numbers.
    pub(crate) fn pairs(self, field: &'static str) -> Result<Option<Vec<[f32; 2]>>, Error> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let pair = |item: &Value| match item.as_array()?.as_slice() {
            [first, second] => Some([first.as_f64()? as f32, second.as_f64()? as f32]),
            _ => None,
        };
        let pairs = value.as_array().and_then(|items| items.iter().map(pair).collect());
        pairs
            .map(Some)
            .ok_or_else(|| Error::invalid(field, "it is not a list of pairs of numbers"))
    }

    /// A number for each layer: a list, whose numbers beyond the layers are left out, or one number for all.
    pub(crate) fn by_layer<T: Number + Copy>(self, field: &'static str, layers: u32) -> Result<Option<Vec<T>>, Error> {
        let layers = layers as usize;
        match self.get(field) {
            None => Ok(None),
            Some(Value::Array(items)) if items.len() < layers => check_names(field, items.len(), layers).map(|()| None),
            Some(Value::Array(items)) => {
                let numbers = items
                    .iter()
                    .take(layers)
                    .map(|item| item.as_f64().and_then(T::from_f64));
                let numbers: Option<Vec<T>> = numbers.collect();
                let reason = "it is not a list of numbers that fit";
                numbers.map(Some).ok_or_else(|| Error::invalid(field, reason))
            }
            Some(_) => Ok(self.number(field)?.map(|number| vec![number; layers])),
        }
    }

    /// True or false for each layer, which some files write as 1 and 0.
    pub(crate) fn flags(self, field: &'static str, layers: u32) -> Result<Option<Vec<bool>>, Error> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        check_names(field, items.len(), layers as usize)?;
        let flags = items.iter().map(|item| match item {
            Value::Bool(flag) => Some(*flag),
            other => other.as_u64().filter(|number| *number < 2).map(|number| number == 1),
        });
        let reason = "it is not a list of true and false";
        let flags: Option<Vec<bool>> = flags.collect();
        flags.map(Some).ok_or_else(|| Error::invalid(field, reason))
    }

    /// These fields alone, those of them that are there.
    pub(crate) fn only(self, fields: &[&str]) -> Map<String, Value> {
        let kept = self.0.iter().filter(|(name, _)| fields.contains(&name.as_str()));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// All fields but one.
    pub(crate) fn without(self, field: &str) -> Map<String, Value> {
        let mut fields = self.0.clone();
        fields.remove(field);
        fields
    }

    /// Two numbers, of which the second may be infinite.
    pub(crate) fn range(self, field: &'static str) -> Result<Option<(f32, f32)>, Error> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let numbers: Option<Vec<f64>> = value.as_array().and_then(|items| items.iter().map(float).collect());
        match numbers.as_deref() {
            Some(&[low, high]) if low.is_finite() && low <= high => Ok(Some((low as f32, high as f32))),
            _ => unusable(field, format!("{value} is not a range of numbers")),
        }
    }

    pub(crate) fn object(self, field: &'static str) -> Result<Option<Fields<'a>>, Error> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(Fields(object))),
            Some(_) => unusable(field, "it is not an object"),
        }
    }
}
