//! From a published model to one of mlx-lm's: its tensors, which of them are quantized and how, and the files that hold
//! them. Nothing is read but headers and `config.json`; the engine moves the numbers.

mod builder;
mod experts;
mod recipe;
mod rules;
mod shards;
mod target;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::Value;

use crate::config::Family;
use crate::error::{Error, Result};
use crate::model::ModelConfig;

pub use recipe::Recipe;
pub(crate) use shards::shards;
pub use shards::Shard;
pub use target::{Change, Part, Piece, Target};

use builder::{sources, Builder};

/// A model to come.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// The weight files of the original.
    pub files: Vec<String>,
    /// The tensors.
    pub targets: Vec<Target>,
    /// The weight files.
    pub shards: Vec<Shard>,
    /// `model.safetensors.index.json`.
    pub index: Value,
    /// `config.json`.
    pub config: Value,
    /// Paths of matrices that no group divides, which stay as they are.
    pub undivided: Vec<String>,
}

impl Conversion {
    /// True if models of this type can be copied.
    pub fn is_possible(model_type: &str) -> bool {
        rules::are_known(model_type)
    }

    /// Plans the conversion of the model in a folder, as `mlx_lm.convert` has it. Vision encoders stay as they are,
    /// which mlx-lm leaves out.
    ///
    /// # Errors
    /// [`Error::AlreadyQuantized`], [`Error::Recipe`] if no group divides any matrix, and every fault of the folder's
    /// files.
    pub fn plan(dir: &Path, recipe: &Recipe) -> Result<Self> {
        let path = dir.join("config.json");
        let text = std::fs::read_to_string(&path).map_err(|source| Error::Unreadable { path, source })?;
        let parsed = ModelConfig::parse(&text)?;
        if matches!(parsed.family, Family::Encoder(_) | Family::Head(_)) || !Self::is_possible(&parsed.model_type) {
            return Err(Error::Unsupported(format!(
                "quantizing models of type `{}`",
                parsed.model_type
            )));
        }
        let config: Value = serde_json::from_str(&text).map_err(|error| Error::NotJson(error.to_string()))?;
        let builder = Builder::new(&parsed, &config)?;
        let (files, sources) = sources(dir)?;
        let (mut targets, towers) = builder.targets(sources)?;
        let quantized = builder.quantize(&mut targets, recipe)?;
        targets.extend(towers);
        let (shards, index) = shards::shards(&targets);
        Ok(Self {
            files,
            shards,
            index,
            config: builder.new_config(recipe, quantized.named),
            undivided: quantized.undivided,
            targets,
        })
    }

    /// Bytes of all new weight files.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.bytes).sum()
    }

    /// Bytes that are read of the original.
    pub fn source_bytes(&self) -> u64 {
        let pieces = self.targets.iter().flat_map(|target| &target.pieces);
        pieces.map(Piece::bytes).sum()
    }
}
