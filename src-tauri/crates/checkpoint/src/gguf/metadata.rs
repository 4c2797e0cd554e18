//! The metadata of one architecture.

use serde_json::{json, Value as Json};

use super::file::{GgufFile, Stored, Value};
use crate::error::{Error, Result};

/// The metadata of an architecture.
pub struct Metadata<'a> {
    file: &'a GgufFile,
    name: &'static str,
    /// True if layers may have different sizes: those of the first count then.
    hybrid: bool,
}

impl<'a> Metadata<'a> {
    /// That of a file of this architecture.
    pub fn new(file: &'a GgufFile, name: &'static str, hybrid: bool) -> Self {
        Self { file, name, hybrid }
    }

    /// A value, by its key without the architecture's name.
    pub fn value(&self, key: &str) -> Option<&'a Value> {
        self.file.value(&format!("{}.{key}", self.name))
    }

    /// A whole number that is not negative, of all layers or of the first.
    pub fn count(&self, key: &str) -> Result<Option<u64>> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Integers(counts)) if self.hybrid => {
                Ok(counts.first().and_then(|count| u64::try_from(*count).ok()))
            }
            Some(value) => match value.count() {
                Some(count) => Ok(Some(count)),
                None => Err(Error::Unsupported(format!(
                    "layers of different sizes (`{}.{key}`)",
                    self.name
                ))),
            },
        }
    }

    /// The same, which is there and not 0.
    pub fn required(&self, key: &str) -> Result<u64> {
        let found = self.count(key)?.filter(|count| *count > 0);
        found.ok_or_else(|| self.file.broken(format!("it lacks `{}.{key}`", self.name)))
    }

    /// A number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.value(key).and_then(Value::number)
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&'a Stored> {
        self.file.tensor(name)
    }

    /// The numbers of a short tensor.
    pub fn small(&self, tensor: &Stored) -> Result<Vec<f32>> {
        self.file.small(tensor)
    }

    /// A fault of the file.
    pub fn broken(&self, reason: &str) -> Error {
        self.file.broken(reason)
    }

    /// A value as JSON.
    pub fn json(&self, key: &str) -> Result<Option<Json>> {
        Ok(match self.value(key) {
            None => None,
            Some(Value::Float(_) | Value::Double(_)) => self.number(key).map(Json::from),
            Some(Value::Flag(flag)) => Some(json!(flag)),
            Some(Value::Text(text)) => Some(json!(text)),
            Some(_) => self.count(key)?.map(Json::from),
        })
    }
}
