//! The models window's words: what is on the hub, whether it fits, what is being fetched, what went over the network.
//!
//! Times are milliseconds since 1970 (UTC) unless a field says otherwise; sizes are bytes.

use protocol::{Error, ModelKind, ThinkingControl};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Whether a model fits this computer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum FitVerdict {
    /// With room to spare for other programs.
    Comfortable,
    /// It runs when little else does.
    Tight,
    /// Not on this computer, or not at this context.
    WillNotFit,
}

/// The sum behind the word: what a model needs at a context, and what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct MemoryFit {
    /// The verdict.
    pub word: FitVerdict,
    /// The context it was reckoned at, in tokens.
    pub context: u32,
    /// The most the model itself can take, in tokens.
    pub most_context: u32,
    /// The most at which it is still comfortable, in tokens; `None` if it never is.
    pub comfortable_context: Option<u32>,
    /// The weights as they lie in memory, in bytes.
    #[ts(type = "number")]
    pub weights: u64,
    /// The keys, values and states of a conversation that fills the context, in bytes. They are there twice: for the answer
    /// that runs, and kept for the next.
    #[ts(type = "number")]
    pub kv: u64,
    /// What reading the prompt takes beside them for a moment, in bytes.
    #[ts(type = "number")]
    pub working: u64,
    /// The three together, in bytes.
    #[ts(type = "number")]
    pub needed: u64,
    /// Memory free at the moment, in bytes.
    #[ts(type = "number")]
    pub free: u64,
    /// All memory that a model may use on this computer, in bytes.
    #[ts(type = "number")]
    pub total: u64,
    /// The most it really took when it was loaded here, in bytes; `None` before that.
    #[ts(type = "number | null")]
    pub measured: Option<u64>,
}

/// The memory of this computer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct MachineMemory {
    /// What models may use of it, in bytes.
    #[ts(type = "number")]
    pub total: u64,
    /// Free at the moment, in bytes.
    #[ts(type = "number")]
    pub free: u64,
}

/// A model as the hub describes it. The search fills what it can; the rest comes with `describe`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HubModel {
    /// Its id, `owner/name`.
    pub id: String,
    /// A short name for people.
    pub name: String,
    /// The owner.
    pub author: String,
    /// What it is for, as far as its tags, its name and its files tell.
    #[serde(default)]
    pub kind: ModelKind,
    /// Downloads of the last 30 days, as the hub counts.
    #[ts(type = "number")]
    pub downloads: u64,
    /// How many people like it.
    #[ts(type = "number")]
    pub likes: u64,
    /// When it was last changed.
    #[ts(type = "number | null")]
    pub updated_at: Option<i64>,
    /// Bytes of the files that would be fetched.
    #[ts(type = "number | null")]
    pub bytes: Option<u64>,
    /// Such as `4 bit`.
    pub quantization: Option<String>,
    /// Tokens its context holds.
    pub context: Option<u32>,
    /// The licence as the author names it, such as `apache-2.0`.
    pub licence: Option<String>,
    /// `model_type` of config.json.
    pub family: Option<String>,
    /// Whether its terms must be accepted on the hub first.
    pub gated: bool,
    /// What can be done about its reasoning; `None` before it is described, and if its template could not be read.
    pub thinking: Option<ThinkingControl>,
    /// Why it will not run here; `None` if it will, and before it is described.
    pub problem: Option<String>,
    /// Whether its files and config were looked at; before that, `problem` says nothing.
    pub described: bool,
    /// The commit that was looked at.
    pub commit: Option<String>,
    /// The revision that was asked for, if an address names another than `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub revision: Option<String>,
    /// Whether it fits this computer, at the default context.
    pub fit: Option<MemoryFit>,
    /// Whether it is complete on this computer.
    pub here: bool,
    /// Why it is in the list of good first models; `None` in a search.
    pub note: Option<String>,
    /// When this was asked of the hub, if it comes from the cache because the hub cannot be reached.
    #[ts(type = "number | null")]
    pub cached_at: Option<i64>,
}

/// In which order a search answers.
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
    /// Smallest first, among those of a page whose size is known; a page is longer than usual.
    Size,
}

/// What to look for on the hub.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct SearchQuery {
    /// Words, an id, or an address of a model's page. Empty for everything.
    pub text: String,
    /// The order.
    pub sort: Sort,
    /// Only models that fit this computer.
    pub fits_only: bool,
    /// Only models that think.
    pub thinks_only: bool,
    /// Only models of this owner.
    pub author: Option<String>,
    /// Only models whose quantisation is called so, such as `4 bit`.
    pub quantization: Option<String>,
    /// Where the page before ended; `None` for the first.
    pub cursor: Option<String>,
}

/// A page of what a search found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct SearchPage {
    /// The models, in order.
    pub models: Vec<HubModel>,
    /// What to ask for the next page with; `None` at the end.
    pub cursor: Option<String>,
    /// How many of the hub's page the filters left out.
    pub left_out: u32,
    /// When this page was asked of the hub, if it comes from the cache because the hub cannot be reached.
    #[ts(type = "number | null")]
    pub cached_at: Option<i64>,
    /// Why the hub cannot be reached, if the page comes from the cache.
    pub cached_because: Option<Error>,
}

/// Where a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DownloadState {
    /// It waits for others.
    Queued,
    /// Its file list is being asked for.
    Listing,
    /// Bytes arrive.
    Running,
    /// What is on disk is being read and compared.
    Verifying,
    /// A person stopped it; it resumes where it was.
    Paused,
    /// Something went wrong that passes; it resumes by itself.
    Waiting,
    /// All files are right and in their place.
    Done,
    /// Something went wrong that a person must look at.
    Failed,
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
    /// Where it is.
    pub state: DownloadState,
}

/// A model being fetched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Download {
    /// The model's id.
    pub id: String,
    /// The revision that was asked for, such as `main`.
    pub revision: String,
    /// The commit it stands for; `None` before the file list is there.
    pub commit: Option<String>,
    /// Where it is.
    pub state: DownloadState,
    /// Its files, in the order of the repository.
    pub files: Vec<DownloadFile>,
    /// Bytes on disk, in all.
    #[ts(type = "number")]
    pub done: u64,
    /// Bytes of all files; 0 before the file list is there.
    #[ts(type = "number")]
    pub total: u64,
    /// Bytes a second over the last seconds; 0 if nothing arrives.
    pub bytes_per_second: f64,
    /// Seconds that are left at this speed; `None` if nobody can say.
    pub seconds_left: Option<f64>,
    /// When it resumes by itself, if it waits.
    #[ts(type = "number | null")]
    pub retry_at: Option<i64>,
    /// What went wrong, if it waits or failed.
    pub error: Option<Error>,
}

/// How far a verification is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct VerifyProgress {
    /// The file being read.
    pub path: String,
    /// Bytes read, in all.
    #[ts(type = "number")]
    pub done: u64,
    /// Bytes to read, in all.
    #[ts(type = "number")]
    pub total: u64,
}

/// A file that is not what the hub has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct WrongFile {
    /// Its path in the repository.
    pub path: String,
    /// What is wrong with it, for a person.
    pub reason: String,
}

/// What reading all files of a model again found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Verification {
    /// The model.
    pub reference: String,
    /// The commit that was compared with.
    pub commit: Option<String>,
    /// How many files were compared.
    pub files: u32,
    /// Bytes that were read.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Files that are wrong or missing; empty if all is well.
    pub wrong: Vec<WrongFile>,
    /// Files that nothing is known about to compare with.
    pub unknown: Vec<String>,
}

/// What removing a model would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Removal {
    /// The model.
    pub reference: String,
    /// Bytes that would be freed.
    #[ts(type = "number")]
    pub bytes_freed: u64,
    /// Bytes that stay, because another commit or model uses them.
    #[ts(type = "number")]
    pub shared_bytes: u64,
    /// Whether the engine holds it at the moment.
    pub loaded: bool,
    /// Whether it is being fetched.
    pub downloading: bool,
    /// How many chats were last answered by it; they stay readable.
    pub chats: u32,
    /// What the newest of them are called, [`Self::TITLES`] at most; a chat without a title has an empty one.
    pub chat_titles: Vec<String>,
    /// Why it cannot be removed; `None` if it can.
    pub refused: Option<String>,
}

impl Removal {
    /// So many chats are named.
    pub const TITLES: usize = 12;
}

/// A newer commit of a model that is here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Update {
    /// The model.
    pub reference: String,
    /// The commit that is here.
    pub current: String,
    /// The newest on the hub.
    pub newest: String,
    /// Paths of the files that differ.
    pub files: Vec<String>,
    /// Bytes that must be fetched.
    #[ts(type = "number")]
    pub bytes: u64,
}

/// What an outbound request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Purpose {
    /// Looking for models.
    Search,
    /// What the hub says about one model: its commit, its config.
    ModelInfo,
    /// The list of a model's files.
    FileList,
    /// A model's card.
    Card,
    /// Fetching a model's files.
    Download,
    /// Comparing what is here with the hub.
    Verify,
    /// Asking for a newer commit.
    Update,
    /// An answer by a server of models, or the list of its models.
    Inference,
    /// Looking for a newer version of Ponder, or fetching it.
    AppUpdate,
}

/// One request that went over the network, or was kept from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct OutboundRequest {
    /// Counts up, over the years.
    #[ts(type = "number")]
    pub number: u64,
    /// When it began.
    #[ts(type = "number")]
    pub at: i64,
    /// The host, and the port if it is not the scheme's own.
    pub host: String,
    /// What for.
    pub purpose: Purpose,
    /// `GET`, `HEAD` or `POST`.
    pub method: String,
    /// The answer's status; `None` while there is none, and if there never was one.
    pub status: Option<u16>,
    /// Bytes of the request: its line, its headers and its body, as HTTP/1.1 writes them.
    #[ts(type = "number")]
    pub sent: u64,
    /// Bytes of the answer's body that arrived.
    #[ts(type = "number")]
    pub received: u64,
    /// Milliseconds it took, or has taken until it was last written down.
    #[ts(type = "number")]
    pub milliseconds: u64,
    /// Why it failed, for a person; `None` if it did not, or still runs.
    pub failure: Option<String>,
    /// Whether it is over.
    pub over: bool,
}

/// Where the token for the hub comes from.
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
    /// The file where Hugging Face's own programs keep it.
    File,
}

/// How this app uses the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct NetSettings {
    /// Whether no connection is opened.
    pub offline: bool,
    /// Whether the environment (HF_HUB_OFFLINE) forces that, so that the switch does nothing.
    pub forced_by_env: bool,
    /// The hub's address.
    pub endpoint: String,
    /// Where the token comes from.
    pub token: TokenSource,
    /// Why the keychain cannot be used, an error of that code; `None` if it can.
    pub keychain_problem: Option<Error>,
}
