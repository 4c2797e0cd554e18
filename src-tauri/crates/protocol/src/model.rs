//! Models as the rooms speak of them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{Sampling, Thinking};

/// Where a model answers: in a folder of this computer, or behind an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelSource {
    /// Files on this computer, which a [`LocalEngine`](crate::LocalEngine) loads.
    Folder(FolderSource),
    /// A model that another program serves.
    Remote {
        /// The name of the [`Endpoint`](crate::Endpoint).
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
#[ts(export)]
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
#[ts(export)]
pub struct TokenCount {
    /// Tokens of the rendered conversation.
    pub tokens: u32,
    /// Whether that is a guess, because the model's tokenizer is not on this computer.
    pub estimated: bool,
}

/// How much of its model's context a chat takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ContextUse {
    /// Tokens of what the model would be asked.
    pub tokens: u32,
    /// Tokens that the context holds; `None` if that is not known.
    pub context: Option<u32>,
    /// Whether the tokens are a guess.
    pub estimated: bool,
}

/// What a chat can do about a model's reasoning, derived from the model's own template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
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
#[ts(export)]
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
#[ts(export)]
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
#[ts(export)]
pub enum ModelKind {
    /// It answers conversations.
    #[default]
    Chat,
    /// It makes vectors of texts, and writes nothing.
    Embedding,
}

/// A model on this computer, as the Models window lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct LocalModel {
    /// How it is called.
    pub reference: String,
    /// A short name for people.
    pub name: String,
    /// What it is for.
    pub kind: ModelKind,
    /// Whether it came with the app.
    pub built_in: bool,
    /// The folder, for people.
    pub path: String,
    /// The commit it was fetched at.
    pub revision: Option<String>,
    /// `model_type` of config.json.
    pub family: Option<String>,
    /// Such as `8 bit`.
    pub quantization: Option<String>,
    /// Bytes on disk.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Tokens its context holds.
    pub context: Option<u32>,
    /// What can be done about its reasoning; `None` if the model cannot be used.
    pub thinking: Option<ThinkingControl>,
    /// How it sets its thoughts apart; `None` if its template tells of none.
    pub thought: Option<ThoughtMarkers>,
    /// How its tokens are chosen if nothing is asked for: as its makers say, else so that nothing is drawn. Empty for models that cannot
    /// be used.
    #[serde(default)]
    pub sampling: Sampling,
    /// Whether it sees pictures: the tensors of its vision tower are there.
    #[serde(default)]
    pub sees: bool,
    /// Why it does not see although its files hold a part for that: a sentence for people. It can be used with text.
    #[serde(default)]
    pub vision_problem: Option<String>,
    /// Why it cannot be used; `None` if it can.
    pub problem: Option<String>,
    /// Whether the reason is files that are missing or cut short, so that repairing it or fetching it again helps.
    pub incomplete: bool,
    /// Whose folder it lies in.
    pub place: ModelPlace,
    /// When it last answered, in milliseconds since 1970; `None` if it never did.
    #[ts(type = "number | null")]
    pub last_used_at: Option<i64>,
    /// All commits of it that are here, the one that is used first; empty outside of the cache.
    pub revisions: Vec<LocalRevision>,
}

/// Whose folder a model lies in, which says what removing it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ModelPlace {
    /// It came with the app and stays.
    BuiltIn,
    /// The cache that programs for the hub share.
    Cache,
    /// Ponder's own folder, where imported models are copied to.
    Imported,
    /// A folder of the person's own, in which nothing is deleted unless that is asked for.
    OwnFolder,
}

/// A commit of a model that is here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct LocalRevision {
    /// The commit.
    pub commit: String,
    /// The branches and tags that pointed at it when they were last asked for, such as `main`.
    pub refs: Vec<String>,
    /// Bytes of its files, those that other commits share included.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Whether this is the commit that answers when the model is asked.
    pub used: bool,
}

/// A folder in which models are looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ModelFolderEntry {
    /// Where it is.
    pub path: String,
    /// Whether a person added it, and can take it off the list again.
    pub own: bool,
    /// How many models are in it.
    pub models: u32,
    /// Bytes of them.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Why nothing of it is listed, such as a disk that is not connected; `None` if all is well.
    pub problem: Option<String>,
}

/// Memory of the engine, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
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

/// What the engine of this computer holds at the moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct EngineStatus {
    /// The loaded models.
    pub loaded: Vec<ModelInfo>,
    /// The engine's memory.
    pub memory: MemoryFigures,
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
