//! Models as the rooms speak of them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::Thinking;

/// Where a model answers: in a folder of this computer, or behind an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelSource {
    /// Files on this computer, which a [`LocalEngine`](crate::LocalEngine) loads.
    Folder(FolderSource),
    /// A model that another program serves.
    Remote {
        /// The name of the endpoint.
        endpoint: String,
        /// How the endpoint calls the model.
        name: String,
    },
}

impl ModelSource {
    /// What the reference of a remote model begins with. No hub id or built-in model holds a colon.
    pub const REMOTE_PREFIX: &str = "endpoint:";

    /// How the model is called in chats and on the command line: a folder's own reference, or `endpoint:ENDPOINT/NAME`.
    pub fn reference(&self) -> String {
        match self {
            Self::Folder(folder) => folder.reference.clone(),
            Self::Remote { endpoint, name } => format!("{}{endpoint}/{name}", Self::REMOTE_PREFIX),
        }
    }

    /// The remote model that a reference means; `None` if the reference is of another form. Endpoints have no slash in their
    /// names, models may have several.
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

/// A model that can be loaded: a name for people and history, and the folder its files are in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FolderSource {
    /// How it is called: `pebble`, a hub id such as `mlx-community/Qwen3-4B-4bit`, or a folder's path.
    pub reference: String,
    /// The folder with config.json and the weights.
    pub path: PathBuf,
    /// The commit it was fetched at; `None` for folders.
    pub revision: Option<String>,
}

/// What an engine can do with a model, so that nothing else is offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Capabilities {
    /// An answer that ended early can be continued, by its tokens or its words.
    pub continue_answer: bool,
    /// A thought can be ended early, by *Answer now* or a budget.
    pub end_thinking: bool,
    /// The beginning of the next prompt can be read before it is asked.
    pub prefetch: bool,
    /// The model's memory on this computer is known and can be freed.
    pub memory: bool,
    /// Log probabilities of tokens can be had.
    pub logprobs: bool,
    /// The model sees pictures that a request carries.
    pub images: bool,
    /// Why it does not, although its files hold a part for that: a sentence for people.
    #[serde(default)]
    pub vision_problem: Option<String>,
    /// The model may be given tools to call.
    pub tools: bool,
    /// Keys and values can be kept in few bits.
    pub kv_bits: bool,
    /// What is said is sent to another computer.
    pub leaves_computer: bool,
    /// What can be done about the model's reasoning, if that is not told with a model of this computer.
    pub thinking: Option<ThinkingControl>,
}

impl Capabilities {
    /// Why the model does not see, for a sentence that says that it does not: `, because …`; empty if it reads text alone.
    #[must_use]
    pub fn because_blind(&self) -> String {
        let because = |problem: &String| format!(", because its vision part cannot be read ({problem})");
        self.vision_problem.as_ref().map(because).unwrap_or_default()
    }
}

/// How many tokens a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TokenCount {
    /// Tokens of the rendered conversation.
    pub tokens: u32,
    /// Whether that is a guess, because the model's tokenizer is not on this computer.
    pub estimated: bool,
}

/// What a chat can do about a model's reasoning, derived from the model's own template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ThinkingControl {
    /// It can be switched.
    Switch {
        /// Whether it thinks when nothing is said.
        default_on: bool,
    },
    /// It has effort levels.
    Levels {
        /// Those that make a difference, least effort first.
        levels: Vec<Thinking>,
        /// The one it takes when nothing is said, or off; `None` if that is none of them.
        default: Option<Thinking>,
        /// Whether it can be switched off as well.
        off: bool,
    },
    /// It thinks as it likes; nothing switches it.
    Always,
    /// It never does.
    Never,
    /// It thinks when the conversation asks for it, in a system prompt or in words such as `/think`.
    ByRequest {
        /// Whether it thinks when nothing is said.
        default_on: bool,
    },
}

/// How a model sets a thought apart from its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ThoughtMarkers {
    /// What opens it.
    pub open: String,
    /// What closes it.
    pub close: String,
    /// Whether the prompt opens it already, so that the model's first words are thought.
    pub opened_by_prompt: bool,
}

/// A loaded model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelInfo {
    /// How it is called.
    pub reference: String,
    /// The commit or content hash of its files.
    pub revision: String,
    /// `model_type` of config.json.
    pub family: String,
    /// Such as `8 bit, groups of 64`, or `bfloat16`.
    pub quantization: String,
    /// Whether quantised weights were widened at load, because the device multiplies plain ones faster.
    pub dequantised: bool,
    /// Kinds of products with packed numbers that MLX computes wrongly on this device; their weights were dequantised.
    pub wrong_products: Vec<String>,
    /// How many parameters it has.
    #[ts(type = "number")]
    pub parameters: u64,
    /// Bytes of the resident weights.
    #[ts(type = "number")]
    pub resident_bytes: u64,
    /// Tokens its context holds.
    pub context: u32,
    /// What can be done about its reasoning.
    pub thinking: ThinkingControl,
    /// SHA-256 of the chat template, hexadecimal.
    pub template_hash: String,
    /// The device that computes: `cpu`, `metal`, `cuda`.
    pub device: String,
    /// Milliseconds the load took.
    pub load_ms: f64,
    /// Whether it sees pictures: the tensors of its vision tower are there.
    pub sees: bool,
}

/// What a model is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// It answers conversations.
    #[default]
    Chat,
    /// It makes vectors of texts, and writes nothing.
    Embedding,
}

/// Memory of the engine, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct MemoryFigures {
    /// Held by arrays.
    #[ts(type = "number")]
    pub active: u64,
    /// The most that was ever held since the last load.
    #[ts(type = "number")]
    pub peak: u64,
    /// Kept for reuse.
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
