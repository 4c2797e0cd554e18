//! Models and their features.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{Error, Thinking};

/// The place where a model runs: a folder of this computer, or an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelSource {
    /// Files on this computer, loaded by a [`LocalEngine`](crate::LocalEngine).
    Folder(FolderSource),
    /// A model that another program serves.
    Remote {
        /// The name of the endpoint.
        endpoint: String,
        /// The model's name at the endpoint.
        name: String,
    },
}

impl ModelSource {
    /// The prefix of a remote model's reference. No hub id or built-in model has a colon.
    pub const REMOTE_PREFIX: &str = "endpoint:";

    /// The model's name in chats and on the command line: a folder's own reference, or `endpoint:ENDPOINT/NAME`.
    pub fn reference(&self) -> String {
        match self {
            Self::Folder(folder) => folder.reference.clone(),
            Self::Remote { endpoint, name } => format!("{}{endpoint}/{name}", Self::REMOTE_PREFIX),
        }
    }

    /// The remote model of a reference; `None` if the reference has another form. Names of endpoints have no slash,
    /// those of models may have several.
    pub fn remote(reference: &str) -> Option<Self> {
        let (endpoint, name) = reference.strip_prefix(Self::REMOTE_PREFIX)?.split_once('/')?;
        (!endpoint.is_empty() && !name.is_empty()).then(|| Self::Remote {
            endpoint: endpoint.into(),
            name: name.into(),
        })
    }

    /// The folder of a model on this computer.
    pub fn folder(&self) -> Option<&FolderSource> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Remote { .. } => None,
        }
    }
}

impl From<FolderSource> for ModelSource {
    fn from(folder: FolderSource) -> Self {
        Self::Folder(folder)
    }
}

/// A local model: its name for users and the history, and the folder of its files.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FolderSource {
    /// Its reference: `pebble`, a hub id such as `mlx-community/Qwen3-4B-4bit`, or a folder's path.
    pub reference: String,
    /// The folder with config.json and the weights.
    pub path: PathBuf,
    /// The commit of its files; `None` for folders.
    pub revision: Option<String>,
    /// The folder of the adapter that is added to it.
    #[serde(default)]
    pub adapter: Option<PathBuf>,
}

/// The features of an engine for one model, so that nothing else is offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Capabilities {
    /// An answer that ended early can be continued, by its tokens or its text.
    pub continue_answer: bool,
    /// A thought can be ended early, by *Answer now* or a budget.
    pub end_thinking: bool,
    /// The beginning of the next prompt can be prefilled in advance.
    pub prefetch: bool,
    /// The model's memory on this computer is known and can be freed.
    pub memory: bool,
    /// Log probabilities of tokens are available.
    pub logprobs: bool,
    /// The model sees images in a request.
    pub images: bool,
    /// The reason why it does not, although its files have a vision encoder.
    #[serde(default)]
    pub vision_problem: Option<Error>,
    /// The model supports tools.
    pub tools: bool,
    /// The KV cache can be quantized.
    pub kv_bits: bool,
    /// Requests are sent to another computer.
    pub leaves_computer: bool,
    /// The model's reasoning controls, if they are not reported with a local model.
    pub thinking: Option<ThinkingControl>,
}

impl Capabilities {
    /// The reason why the model lacks vision, as the end of a sentence: `, because …`; empty if it is a text model.
    #[must_use]
    pub fn because_blind(&self) -> String {
        let because = |problem: &Error| format!(", because its vision part cannot be read ({})", problem.cause());
        self.vision_problem.as_ref().map(because).unwrap_or_default()
    }
}

/// The number of tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TokenCount {
    /// Tokens of the rendered conversation.
    pub tokens: u32,
    /// True if that is an estimate, because the model's tokenizer is not on this computer.
    pub estimated: bool,
}

/// A model's reasoning controls, derived from its own template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ThinkingControl {
    /// It can be switched.
    Switch {
        /// True if it thinks by default.
        default_on: bool,
    },
    /// It has effort levels.
    Levels {
        /// The distinct levels, least effort first.
        levels: Vec<Thinking>,
        /// The default, possibly off; `None` if it is none of them.
        default: Option<Thinking>,
        /// True if it can be switched off as well.
        off: bool,
    },
    /// It thinks as it likes; nothing controls it.
    Always,
    /// It never thinks.
    Never,
    /// It thinks if the conversation asks for it, in a system prompt or with words such as `/think`.
    ByRequest {
        /// True if it thinks by default.
        default_on: bool,
    },
}

/// The markers that separate a model's thought from its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ThoughtMarkers {
    /// The opening marker.
    pub open: String,
    /// The closing marker.
    pub close: String,
    /// True if the prompt ends with the opening marker, so that the model starts with its thought.
    pub opened_by_prompt: bool,
}

/// A loaded model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelInfo {
    /// Its reference.
    pub reference: String,
    /// The commit or content hash of its files.
    pub revision: String,
    /// `model_type` of config.json.
    pub family: String,
    /// The quantization, such as `8 bit, groups of 64`, or `bfloat16`.
    pub quantization: String,
    /// Kinds of quantized products that MLX computes wrongly on this device; their weights were dequantized.
    pub wrong_products: Vec<String>,
    /// The number of parameters.
    #[ts(type = "number")]
    pub parameters: u64,
    /// Bytes of the resident weights.
    #[ts(type = "number")]
    pub resident_bytes: u64,
    /// The size of its context in tokens.
    pub context: u32,
    /// Its reasoning controls.
    pub thinking: ThinkingControl,
    /// SHA-256 of the chat template, hexadecimal.
    pub template_hash: String,
    /// The device that computes: `cpu`, `metal`, `cuda`.
    pub device: String,
    /// How it computes, if that is the processor.
    #[serde(default)]
    pub processor: Option<ProcessorUse>,
    /// Milliseconds that loading took.
    pub load_ms: f64,
    /// True if it supports vision: the tensors of its vision encoder are there.
    pub supports_vision: bool,
}

/// How a processor computes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ProcessorUse {
    /// Its instructions, such as `AVX2`.
    pub instructions: String,
    /// How many threads take part.
    pub threads: u32,
    /// Bits of the rows that quantized matrices are multiplied with.
    pub activation_bits: u8,
}

/// The kind of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// It answers conversations.
    #[default]
    Chat,
    /// It computes vectors of texts, and generates nothing.
    Embedding,
    /// It scores how well a text answers a question (a cross-encoder), and generates nothing.
    Reranker,
    /// It drafts the answers of another model, whose states it reads, and does nothing alone.
    Draft,
}

/// Memory of the engine, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct MemoryFigures {
    /// Bytes held by arrays.
    #[ts(type = "number")]
    pub active: u64,
    /// The largest number of bytes held since the last load.
    #[ts(type = "number")]
    pub peak: u64,
    /// Bytes kept for reuse.
    #[ts(type = "number")]
    pub cache: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_reference_names_the_endpoint_and_the_model() {
        let source = ModelSource::remote("endpoint:lab/mlx-community/Qwen3-4B-4bit");
        let expected = ModelSource::Remote {
            endpoint: "lab".into(),
            name: "mlx-community/Qwen3-4B-4bit".into(),
        };
        assert_eq!(source.as_ref(), Some(&expected));
        assert_eq!(expected.reference(), "endpoint:lab/mlx-community/Qwen3-4B-4bit");
        for other in [
            "pebble",
            "mlx-community/Qwen3-4B-4bit",
            "endpoint:",
            "endpoint:lab",
            "endpoint:lab/",
            "endpoint:/a",
            "/models/endpoint:a/b",
        ] {
            assert_eq!(ModelSource::remote(other), None, "{other}");
        }
    }
}
