//! The words that cross a boundary between rooms: messages, requests, events, errors, the trait [`Engine`] and what the
//! windows are shown. Nothing here does input or output, and every other room may lean on this one.
//!
//! Types marked `#[ts(export)]` are written to `ui/src/bindings` by `cargo test -p protocol`.

mod app_update;
mod appearance;
mod chat_settings;
mod command;
mod conversation;
mod data_use;
mod desktop;
mod document;
mod embedding;
mod endpoint;
mod engine;
mod error;
mod event;
pub mod fake;
mod finding;
mod hub;
mod image;
mod image_bytes;
pub mod limits;
mod local_server;
mod mailbox;
mod message;
mod model;
mod model_users;
mod notice;
pub mod openai;
mod picture;
mod power;
mod request;
mod router;
mod settings;
mod window;

pub use app_update::{AppRelease, AppUpdate};
pub use appearance::{Appearance, CodeTheme, Density, ReadingWidth, Theme, ThoughtDisplay};
pub use chat_settings::{ChatSettings, Preset};
pub use command::Command;
pub use conversation::{
    AnswerBody, AnswerEvent, AnswerState, ChatList, ChatSummary, ChatView, DeleteScope, Folder, HistoryState, MemoryCut, Part, Position,
    RepairedHistory, Role, RunningAnswer, ScrollPlace, StoredMessage, TrashedChat, Turn, TurnWithTwoAnswers,
};
pub use data_use::{DataUse, HistoryBackup};
pub use desktop::{Absence, Arrival, Desktop, ImportPreview, QuitChoice, Unfinished};
pub use document::{Excerpt, ExcerptUnit, FileText};
pub use embedding::{EmbeddingInput, EmbeddingRequest, Embeddings};
pub use endpoint::{Endpoint, EndpointAddress, EndpointInfo, EndpointModels, KeySource, RemoteModel};
pub use engine::{AnswerNowFlag, CancelFlag, CancelOnDrop, Engine, EngineActivity, JobHandle, LocalEngine, MemoryGuard, ModelShelf};
pub use error::{Error, ErrorCode, Result};
pub use event::{Done, EndedBy, EngineEvent, FinishReason, LoadEvent, SpeculationUsage, Stage, Timing, TokenLogprobs, TopLogprob, Usage};
pub use finding::{ExportFormat, HistoryHit, HistoryHits, HistoryQuery, ImportReport};
pub use hub::{
    Download, DownloadFile, DownloadState, FitVerdict, HubModel, MachineMemory, MemoryFit, NetSettings, OutboundRequest, Purpose, Removal,
    SearchPage, SearchQuery, Sort, TokenSource, Update, Verification, VerifyProgress, WrongFile,
};
pub use image::ImageDetail;
pub use image_bytes::ImageBytes;
pub use local_server::{ClientSetup, InboundClient, PortHolder, ServerFigures, ServerSettings, ServerState, ServerStatus};
pub use mailbox::{mailbox, Coalesce, Receiver, Sender};
pub use message::{Content, Message, ToolCall};
pub use model::{
    Capabilities, ContextUse, EngineStatus, FolderSource, LocalModel, LocalRevision, MemoryFigures, ModelFolderEntry, ModelInfo, ModelKind,
    ModelPlace, ModelSource, ThinkingControl, ThoughtMarkers, TokenCount,
};
pub use model_users::{ModelUsage, ModelUsers};
pub use notice::{Argument, Arguments, Notice, NoticeCode};
pub use picture::AddedPicture;
pub use power::{MemoryRelease, Slowdown};
pub use request::{AnswerPrefix, KvBits, Priority, RawPrompt, Request, Sampling, Thinking};
pub use router::EngineRouter;
pub use settings::{ChatWindowState, EngineSettings, Settings, Snippet};
pub use window::WindowName;
