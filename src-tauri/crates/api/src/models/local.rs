//! Local models, as the windows list them, and the shelf that finds them.

use protocol::{
    Error, ImageDetail, MemoryFigures, ModelInfo, ModelKind, ModelSource, Result, Sampling, ThinkingControl,
    ThoughtMarkers,
};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A model on this computer, as the Models window lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct LocalModel {
    /// Its reference.
    pub reference: String,
    /// A short name for the user.
    pub name: String,
    /// Its kind.
    pub kind: ModelKind,
    /// True if it came with the app.
    pub built_in: bool,
    /// Its folder, as a text for the user.
    pub path: String,
    /// The commit of its files.
    pub revision: Option<String>,
    /// `model_type` of config.json.
    pub family: Option<String>,
    /// The quantization, such as `8 bit`.
    pub quantization: Option<String>,
    /// Bytes on disk.
    #[ts(type = "number")]
    pub bytes: u64,
    /// The size of its context in tokens.
    pub context: Option<u32>,
    /// Its reasoning controls; `None` if the model cannot be used.
    pub thinking: Option<ThinkingControl>,
    /// Its thought markers; `None` if its template has none.
    pub thought: Option<ThoughtMarkers>,
    /// The default sampling in chats. Empty for models that cannot be used.
    #[serde(default)]
    pub sampling: Sampling,
    /// True if its makers set a temperature; otherwise the default sampling is Ponder's.
    #[serde(default)]
    pub sampling_by_makers: bool,
    /// True if it supports vision: the tensors of its vision encoder are there.
    #[serde(default)]
    pub supports_vision: bool,
    /// The reason why it does not support vision although its files have an encoder. Text works.
    #[serde(default)]
    pub vision_problem: Option<Error>,
    /// The reason why it cannot be used; `None` if it can.
    pub problem: Option<Error>,
    /// True if that is because files are missing or truncated, so that a repair or a new download helps.
    pub incomplete: bool,
    /// The place of its folder.
    pub place: ModelPlace,
    /// The time of its last answer, in milliseconds since 1970; `None` if there is none.
    #[ts(type = "number | null")]
    pub last_used_at: Option<i64>,
    /// All of its local commits, the active one first; empty outside the cache.
    pub revisions: Vec<LocalRevision>,
    /// True if a quantized copy of it can be made.
    #[serde(default)]
    pub quantizable: bool,
    /// The reference of the model that it is an adapter of; `None` for a model.
    #[serde(default)]
    pub adapter_of: Option<String>,
}

/// The place of a model's folder, which decides how it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ModelPlace {
    /// It came with the app and stays.
    BuiltIn,
    /// The cache that all programs for the hub share.
    Cache,
    /// Ponder's own folder for imported models.
    Imported,
    /// The user's own folder, in which nothing is deleted unless requested.
    OwnFolder,
}

/// A local commit of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct LocalRevision {
    /// The commit.
    pub commit: String,
    /// The branches and tags that pointed at it at the last request, such as `main`.
    pub refs: Vec<String>,
    /// Bytes of its files, those shared with other commits included.
    #[ts(type = "number")]
    pub bytes: u64,
    /// True if this is the commit that answers.
    pub used: bool,
}

/// A folder that is searched for models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ModelFolderEntry {
    /// Its path.
    pub path: String,
    /// True if the user added it and can remove it from the list.
    pub own: bool,
    /// The number of models in it.
    pub models: u32,
    /// Bytes of those models.
    #[ts(type = "number")]
    pub bytes: u64,
    /// The reason why none of its models is listed, such as a disconnected disk; `None` if all is well.
    pub problem: Option<Error>,
}

/// The state of this computer's engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct EngineStatus {
    /// The loaded models.
    pub loaded: Vec<ModelInfo>,
    /// The engine's memory.
    pub memory: MemoryFigures,
    /// True if there is a graphics card with a memory of its own, so that there is a choice of the device.
    pub has_card: bool,
}

/// Finds the model of a reference. It stands between chat and the model folder, so that neither knows the other.
pub trait ModelShelf: Send + Sync + 'static {
    /// The model of this reference; errors: `ModelNotFound`, `ModelBroken`.
    fn resolve(&self, reference: &str) -> Result<ModelSource>;

    /// Records that the model of this reference answers, for the list of models. The default does nothing.
    fn used(&self, _reference: &str) {}

    /// The models on this computer, unusable ones included; empty by default. Reads files.
    fn list(&self) -> Vec<LocalModel> {
        Vec::new()
    }

    /// Image tokens under a model for images of these sizes (width, height), separators not included, in the same
    /// order; `None` if that is unknown. Reads files, but none of the images.
    fn image_tokens(&self, _model: &ModelSource, _sizes: &[(u32, u32)], _detail: ImageDetail) -> Option<Vec<u32>> {
        None
    }
}
