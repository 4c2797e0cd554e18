//! The Models window: models on the hub, whether they fit, downloads, and requests over the network.
//!
//! Times are milliseconds since 1970 (UTC) unless a field says otherwise; sizes are bytes.

use protocol::{Error, ModelKind, ThinkingControl};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How well a model fits this computer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum FitVerdict {
    /// With memory to spare for other programs.
    Comfortable,
    /// It runs if little else does.
    Tight,
    /// Not on this computer, or not at this context.
    WillNotFit,
}

/// The estimate behind the verdict: the memory that a model needs at a context, and the memory that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct MemoryFit {
    /// The verdict.
    pub word: FitVerdict,
    /// The context of the estimate, in tokens.
    pub context: u32,
    /// The model's own maximum, in tokens.
    pub most_context: u32,
    /// The largest comfortable context, in tokens; `None` if there is none.
    pub comfortable_context: Option<u32>,
    /// The weights in memory, in bytes.
    #[ts(type = "number")]
    pub weights: u64,
    /// The KV cache and states of a conversation that fills the context, in bytes. They are counted twice: for the
    /// running answer, and as the prefix cache of the next.
    #[ts(type = "number")]
    pub kv: u64,
    /// Temporary memory of prefill, in bytes.
    #[ts(type = "number")]
    pub working: u64,
    /// The sum of the three, in bytes.
    #[ts(type = "number")]
    pub needed: u64,
    /// Free memory at the moment, in bytes.
    #[ts(type = "number")]
    pub free: u64,
    /// All memory that a model may use on this computer, in bytes.
    #[ts(type = "number")]
    pub total: u64,
    /// The measured peak of earlier runs on this computer, in bytes; `None` before the first.
    #[ts(type = "number | null")]
    pub measured: Option<u64>,
}

/// The memory of this computer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct MachineMemory {
    /// The part that models may use, in bytes.
    #[ts(type = "number")]
    pub total: u64,
    /// Free memory at the moment, in bytes.
    #[ts(type = "number")]
    pub free: u64,
}

/// A model on the hub. The search fills in what it can; `describe` adds the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HubModel {
    /// Its id, `owner/name`.
    pub id: String,
    /// A short name for people.
    pub name: String,
    /// The owner.
    pub author: String,
    /// Its kind, derived from its tags, its name and its files.
    #[serde(default)]
    pub kind: ModelKind,
    /// Downloads of the last 30 days, as the hub counts them.
    #[ts(type = "number")]
    pub downloads: u64,
    /// The number of likes.
    #[ts(type = "number")]
    pub likes: u64,
    /// The time of the last change.
    #[ts(type = "number | null")]
    pub updated_at: Option<i64>,
    /// Bytes of the files that would be downloaded.
    #[ts(type = "number | null")]
    pub bytes: Option<u64>,
    /// The quantization, such as `4 bit`.
    pub quantization: Option<String>,
    /// The size of its context in tokens.
    pub context: Option<u32>,
    /// The license as the author names it, such as `apache-2.0`.
    pub licence: Option<String>,
    /// `model_type` of config.json.
    pub family: Option<String>,
    /// True if its terms must be accepted on the hub first.
    pub gated: bool,
    /// Its reasoning controls; `None` until it is described, and if its template could not be read.
    pub thinking: Option<ThinkingControl>,
    /// The reason why it will not run here; `None` if it will, and until it is described.
    pub problem: Option<Error>,
    /// True if its files and config were read; until then `problem` is empty.
    pub described: bool,
    /// The commit that was read.
    pub commit: Option<String>,
    /// The requested revision, if an address names one other than `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub revision: Option<String>,
    /// How well it fits this computer, at the default context.
    pub fit: Option<MemoryFit>,
    /// True if it is complete on this computer.
    pub here: bool,
    /// The reason why it is recommended as a first model; `None` in a search.
    pub note: Option<ModelNote>,
    /// The time of the request, if this comes from the cache because the hub cannot be reached.
    #[ts(type = "number | null")]
    pub cached_at: Option<i64>,
}

/// The strength of a model that is recommended as a first one. Windows have a sentence for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ModelNote {
    /// Very small and very fast, for trying things out.
    Tiny,
    /// Small and fast, for short responses and simple tasks.
    Small,
    /// An all-rounder without thinking.
    Direct,
    /// An all-rounder that can think.
    AllRounder,
    /// Careful responses, also in German, with optional thinking.
    Careful,
    /// Fast for its size and strong at reasoning, with effort levels.
    Reasoning,
    /// Broad knowledge, and fast for its size.
    Broad,
    /// Thorough but slow, for hard problems.
    Thorough,
    /// Large but fast, and good with long texts.
    LongTexts,
    /// One of the strongest open models, for computers with a lot of memory.
    Strongest,
}

/// The order of search results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Sort {
    /// Most downloads of the last 30 days first.
    #[default]
    Downloads,
    /// Newest change first.
    Updated,
    /// Most likes first.
    Likes,
    /// Smallest first, among the models of a page whose size is known; such a page is longer than usual.
    Size,
}

/// A search on the hub.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct SearchQuery {
    /// Words, an id, or the address of a model's page. Empty for everything.
    pub text: String,
    /// The order.
    pub sort: Sort,
    /// Only models that fit this computer.
    pub fits_only: bool,
    /// Only models that think.
    pub thinks_only: bool,
    /// Only models by this owner.
    pub author: Option<String>,
    /// Only models with this quantization, such as `4 bit`.
    pub quantization: Option<String>,
    /// The end of the previous page; `None` for the first.
    pub cursor: Option<String>,
}

/// A page of search results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct SearchPage {
    /// The models, in order.
    pub models: Vec<HubModel>,
    /// The cursor of the next page; `None` at the end.
    pub cursor: Option<String>,
    /// The number of models of the hub's page that the filters removed.
    pub left_out: u32,
    /// The time of the request, if this page comes from the cache because the hub cannot be reached.
    #[ts(type = "number | null")]
    pub cached_at: Option<i64>,
    /// The reason why the hub cannot be reached, if the page comes from the cache.
    pub cached_because: Option<Error>,
}

/// The state of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DownloadState {
    /// It waits for other downloads.
    Queued,
    /// Its file list is being requested.
    Listing,
    /// Bytes arrive.
    Running,
    /// Files on disk are being read and compared.
    Verifying,
    /// The user paused it; it resumes where it stopped.
    Paused,
    /// A temporary failure; it resumes by itself.
    Waiting,
    /// All files are verified and in place.
    Done,
    /// A failure that needs the user.
    Failed,
}

impl DownloadState {
    /// True if bytes are transferred or verified now.
    #[must_use]
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Listing | Self::Running | Self::Verifying)
    }
}

/// One file of a download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DownloadFile {
    /// Its path in the repository.
    pub path: String,
    /// Its size, in bytes.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Bytes on disk.
    #[ts(type = "number")]
    pub done: u64,
    /// Its state.
    pub state: DownloadState,
}

/// A model that is being downloaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Download {
    /// The model's id.
    pub id: String,
    /// The requested revision, such as `main`.
    pub revision: String,
    /// The commit of that revision; `None` until the file list is there.
    pub commit: Option<String>,
    /// Its state.
    pub state: DownloadState,
    /// Its files, in the order of the repository.
    pub files: Vec<DownloadFile>,
    /// Total bytes on disk.
    #[ts(type = "number")]
    pub done: u64,
    /// Total bytes of all files; 0 until the file list is there.
    #[ts(type = "number")]
    pub total: u64,
    /// Bytes per second over the last seconds; 0 if nothing arrives.
    pub bytes_per_second: f64,
    /// Seconds left at this speed; `None` if that is unknown.
    pub seconds_left: Option<f64>,
    /// The time at which it resumes by itself, if it waits.
    #[ts(type = "number | null")]
    pub retry_at: Option<i64>,
    /// The failure, if it waits or failed.
    pub error: Option<Error>,
}

/// The progress of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct VerifyProgress {
    /// The file being read.
    pub path: String,
    /// Total bytes read.
    #[ts(type = "number")]
    pub done: u64,
    /// Total bytes to read.
    #[ts(type = "number")]
    pub total: u64,
}

/// The kind of a fault of a model's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum FileFault {
    /// It is missing.
    Missing,
    /// It ends too early.
    CutShort,
    /// Its content is another, or it is longer than it should be.
    Changed,
    /// The system does not let it be read.
    Unreadable,
    /// It is no file of its kind, such as a config that is no JSON, or larger than any.
    Invalid,
}

/// A file that differs from the hub's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct WrongFile {
    /// Its path in the repository.
    pub path: String,
    /// The difference, for which windows have words.
    pub fault: FileFault,
    /// The difference in English, for the command line and for details.
    pub message: String,
}

/// The result of verifying all files of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Verification {
    /// The model.
    pub reference: String,
    /// The commit to which the files were compared.
    pub commit: Option<String>,
    /// The number of files compared.
    pub files: u32,
    /// Bytes read.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Files that are wrong or missing; empty if all is well.
    pub wrong: Vec<WrongFile>,
    /// Files without anything to compare them to.
    pub unknown: Vec<String>,
}

/// The consequences of removing a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Removal {
    /// The model.
    pub reference: String,
    /// Bytes that would be freed.
    #[ts(type = "number")]
    pub bytes_freed: u64,
    /// Bytes that stay because another commit or model uses them.
    #[ts(type = "number")]
    pub shared_bytes: u64,
    /// True if the engine has it loaded.
    pub loaded: bool,
    /// True if it is being downloaded.
    pub downloading: bool,
    /// The number of chats that it answered last; they stay readable.
    pub chats: u32,
    /// The titles of the newest of them, [`Self::TITLES`] at most; empty for a chat without a title.
    pub chat_titles: Vec<String>,
    /// The reason why it cannot be removed; `None` if it can.
    pub refused: Option<Error>,
}

impl Removal {
    /// The largest number of chat titles.
    pub const TITLES: usize = 12;
}

/// A newer commit of a local model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Update {
    /// The model.
    pub reference: String,
    /// The local commit.
    pub current: String,
    /// The newest commit on the hub.
    pub newest: String,
    /// Paths of the files that differ.
    pub files: Vec<String>,
    /// Bytes to download.
    #[ts(type = "number")]
    pub bytes: u64,
}

/// The purpose of an outbound request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Purpose {
    /// Search for models.
    Search,
    /// Metadata of one model: its commit, its config.
    ModelInfo,
    /// The file list of a model.
    FileList,
    /// A model card.
    Card,
    /// Download of a model's files.
    Download,
    /// Comparison of local files to the hub.
    Verify,
    /// Check for a newer commit.
    Update,
    /// An answer by an endpoint, or the list of its models.
    Inference,
    /// Check for a newer version of Ponder, or its download.
    AppUpdate,
    /// A server of tools: its messages, and signing in to it.
    ToolServer,
    /// A page of the web that a model asked for.
    WebPage,
    /// A search of the web that a model asked for.
    WebSearch,
}

/// A request that went over the network, or was blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct OutboundRequest {
    /// A number that grows across restarts.
    #[ts(type = "number")]
    pub number: u64,
    /// The start time.
    #[ts(type = "number")]
    pub at: i64,
    /// The host, with the port if that is not the scheme's default.
    pub host: String,
    /// Its purpose.
    pub purpose: Purpose,
    /// `GET`, `HEAD`, `POST` or `DELETE`.
    pub method: String,
    /// The status of the response; `None` until there is one.
    pub status: Option<u16>,
    /// Bytes of the request: line, headers and body, as HTTP/1.1 writes them.
    #[ts(type = "number")]
    pub sent: u64,
    /// Bytes of the response body received.
    #[ts(type = "number")]
    pub received: u64,
    /// Duration in milliseconds, up to its last record if it still runs.
    #[ts(type = "number")]
    pub milliseconds: u64,
    /// The failure; `None` if it succeeded or still runs.
    pub failure: Option<Error>,
    /// True if it has ended.
    pub over: bool,
}

/// The source of the hub's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum TokenSource {
    /// There is none.
    None,
    /// The environment variable HF_TOKEN.
    Environment,
    /// The system's keychain.
    Keychain,
    /// The token file of Hugging Face's own programs.
    File,
}

/// The network settings of this app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct NetSettings {
    /// True if no connection is opened.
    pub offline: bool,
    /// True if the environment (HF_HUB_OFFLINE) forces that; the switch has no effect then.
    pub forced_by_env: bool,
    /// The hub's address.
    pub endpoint: String,
    /// The source of the token.
    pub token: TokenSource,
    /// The reason why the keychain cannot be used, an error with that code; `None` if it can.
    pub keychain_problem: Option<Error>,
}
