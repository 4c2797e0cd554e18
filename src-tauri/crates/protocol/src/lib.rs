//! The words that cross a boundary between rooms: messages, requests, events, errors, the trait [`Engine`] and what the
//! windows are shown. Nothing here does input or output, and every other room may lean on this one.
//!
//! Types marked `#[ts(export)]` are written to `ui/src/bindings` by `cargo test -p protocol`.

mod conversation;
mod engine;
mod error;
mod event;
pub mod fake;
mod hub;
mod mailbox;
mod message;
mod model;
pub mod openai;
mod request;

pub use conversation::{
    AnswerBody, AnswerEvent, AnswerState, ChatSettings, ChatSummary, ChatView, Part, PartKind, Role, RunningAnswer, StoredMessage, Turn,
};
pub use engine::{AnswerNowFlag, CancelFlag, Engine, Job, MemoryGuard, ModelShelf};
pub use error::{Code, Error, Result};
pub use event::{Channel, Done, EndedBy, EngineEvent, LoadEvent, Notice, Stage, Stop, Timing, Usage};
pub use hub::{
    Download, DownloadFile, DownloadState, Fit, Fits, HubModel, MachineMemory, NetSettings, OutboundRequest, Purpose, Removal, SearchPage,
    SearchQuery, Sort, TokenSource, Update, Verification, VerifyProgress, WrongFile,
};
pub use mailbox::{mailbox, Merge, Receiver, Sender};
pub use message::{Content, Message, ToolCall};
pub use model::{
    EngineStatus, LocalModel, LocalRevision, MemoryFigures, ModelFolderEntry, ModelInfo, ModelPlace, ModelSource, ThinkingControl,
    ThoughtMarkers,
};
pub use request::{Begun, KvBits, Request, Sampling, Thinking};
