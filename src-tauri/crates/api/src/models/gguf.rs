//! GGUF files of other programs, and the models made of them.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A model that another program has on this computer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct GgufModel {
    /// Its reference: `ollama:NAME:TAG`, `lmstudio:` and its path there, or the path of a file.
    pub reference: String,
    /// A short name for the user.
    pub name: String,
    /// Bytes of all its files.
    #[ts(type = "number")]
    pub bytes: u64,
    /// True if a model was made of it already.
    pub imported: bool,
    /// The reason why it cannot be imported, in English.
    pub problem: Option<String>,
}

/// A model that was made of a GGUF file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct GgufImport {
    /// The reference of the new model.
    pub reference: String,
    /// Bytes of the new weights.
    #[ts(type = "number")]
    pub bytes: u64,
    /// The mean error of its weights by their mean size, of those in a format that MLX does not have; 0 if all are
    /// exact.
    pub loss: f64,
    /// True if a vision part was left out.
    pub text_only: bool,
}
