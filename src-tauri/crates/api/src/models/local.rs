//! Models on this computer, as the windows list them, and the shelf that finds them.

use protocol::{
    ImageDetail, MemoryFigures, ModelInfo, ModelKind, ModelSource, Result, Sampling, ThinkingControl, ThoughtMarkers,
};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

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

/// What the engine of this computer holds at the moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct EngineStatus {
    /// The loaded models.
    pub loaded: Vec<ModelInfo>,
    /// The engine's memory.
    pub memory: MemoryFigures,
}

/// Finds the model that a reference means. Lies between chat and the model folder, so that neither knows the other.
pub trait ModelShelf: Send + Sync + 'static {
    /// The model of this reference; errors: `ModelNotFound`, `ModelBroken`.
    fn resolve(&self, reference: &str) -> Result<ModelSource>;

    /// Notes that the model of this reference answers, for the list of models; who keeps no such list does nothing.
    fn used(&self, _reference: &str) {}

    /// The models on this computer, those that cannot be used among them; who keeps no such list has none. Reads files.
    fn list(&self) -> Vec<LocalModel> {
        Vec::new()
    }

    /// Tokens that pictures of these sizes (width, height) take under a model, marks between them left out, in the same order; `None` if
    /// nobody here knows, as of a model without a description of its pictures. Reads files, and none of the pictures.
    fn image_tokens(&self, _model: &ModelSource, _sizes: &[(u32, u32)], _detail: ImageDetail) -> Option<Vec<u32>> {
        None
    }
}
