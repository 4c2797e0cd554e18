//! The tensors of a checkpoint, and the size of its vocabulary.

use serde_json::Value;

use crate::error::{Error, Result};

/// The end of the tokenizer's words, and the start of the control tokens of images, which `shapes.json` names too.
pub(crate) const WORDS: u32 = 1100;

/// A tensor of a checkpoint.
pub(crate) struct Entry {
    pub name: String,
    pub shape: Vec<u64>,
    pub kind: Kind,
}

/// The contents of a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Projections and tables, quantized if the shape is: the last axis are the inputs.
    Matrix,
    /// The same with a quarter of the outputs' size.
    Small,
    /// A matrix that checkpoints keep in 16 bits.
    Wide,
    /// That of a router, in 16 bits: its scores lie so far apart that the last of the chosen counts little, as a trained
    /// one's do. Else a rounding that chooses another would change what the model says.
    Router,
    /// Factors around 1.
    Factors,
    /// Small numbers around 0.
    Offsets,
    /// This number.
    Constant(f32),
}

/// Collects the tensors that a config asks for.
pub(crate) struct Tensors<'a> {
    pub config: &'a Value,
    /// The words for what the config is of.
    what: &'static str,
    pub entries: Vec<Entry>,
}

impl<'a> Tensors<'a> {
    pub fn new(config: &'a Value, what: &'static str) -> Self {
        let entries = Vec::new();
        Self { config, what, entries }
    }

    pub fn number(&self, field: &'static str) -> Result<u64> {
        let number = self.config[field].as_u64();
        number.ok_or_else(|| Error::UnsupportedConfig(format!("{} without `{field}`", self.what)))
    }

    pub fn numbers<const N: usize>(&self, fields: [&'static str; N]) -> Result<[u64; N]> {
        let mut numbers = [0; N];
        for (number, field) in numbers.iter_mut().zip(fields) {
            *number = self.number(field)?;
        }
        Ok(numbers)
    }

    pub fn add(&mut self, name: String, shape: &[u64], kind: Kind) {
        let shape = shape.to_vec();
        self.entries.push(Entry { name, shape, kind });
    }

    /// The weights at this path.
    pub fn weight(&mut self, path: &str, shape: &[u64], kind: Kind) {
        self.add(format!("{path}.weight"), shape, kind);
    }

    pub fn bias(&mut self, path: &str, shape: &[u64]) {
        self.add(format!("{path}.bias"), shape, Kind::Offsets);
    }

    /// The factors of a norm.
    pub fn norm(&mut self, path: &str, width: u64) {
        self.weight(path, &[width], Kind::Factors);
    }
}
