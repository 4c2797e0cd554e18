//! The contract with an engine: messages, requests, events, notices, errors, and the traits [`Engine`] and
//! [`LocalEngine`]. Nothing here does input or output, and every other room may depend on it.
//!
//! The crate `api`, which windows use, exports the TypeScript of these types.

mod call_body;
mod chat_texts;
mod citation_marks;
mod document_search;
mod embedding;
mod engine;
mod error;
mod error_code;
mod event;
mod excerpt;
pub mod fake;
mod fence;
mod image;
mod image_bytes;
mod json_shape;
pub mod limits;
mod mailbox;
mod message;
mod model;
mod notice;
mod options;
mod passage_source;
mod passages;
mod reason;
mod request;
mod result_limit;
mod router;
mod toolbox;

pub use call_body::CallBody;
pub use chat_texts::{ChatText, ChatTexts, OWN_CHATS};
pub use citation_marks::{citation_marks, CitationMark};
pub use document_search::{DocumentCollection, DocumentSearch};
pub use embedding::{EmbeddingInput, EmbeddingRequest, Embeddings};
pub use engine::{
    AnswerNowFlag, CancelFlag, CancelOnDrop, ComputeDevice, Engine, EngineActivity, JobHandle, LocalEngine, MemoryGuard,
};
pub use error::{Error, Result};
pub use error_code::ErrorCode;
pub use event::{
    Done, EndedBy, EngineEvent, FinishReason, LoadEvent, SpeculationUsage, Stage, Timing, TokenLogprobs, TopLogprob,
    Usage,
};
pub use excerpt::{Excerpt, ExcerptUnit};
pub use fence::fenced;
pub use image::ImageDetail;
pub use image_bytes::ImageBytes;
pub use json_shape::{json_values, JsonExcess};
pub use mailbox::{mailbox, Coalesce, Receiver, Sender};
pub use message::{Content, Message, Role, ToolCall};
pub use model::{
    Capabilities, FolderSource, MemoryFigures, ModelInfo, ModelKind, ModelSource, ProcessorUse, ThinkingControl,
    ThoughtMarkers, TokenCount,
};
pub use notice::{Argument, Arguments, Notice, NoticeCode};
pub use options::{KvBits, Sampling, SamplingOption, Thinking, SAMPLING_OPTIONS};
pub use passage_source::{PassageRequest, PassageSource, ReadDocuments, ReadingCost, ReadingRequest};
pub use passages::{Coverage, QuotedPassage};
pub use reason::Reason;
pub use request::{AnswerPrefix, Priority, RawPrompt, Request};
pub use result_limit::{cut_result, most_of_result};
pub use router::EngineRouter;
pub use toolbox::{
    CallEnd, CallOrigin, CallProgress, CallRequest, CallResult, OfferedTool, StoreStart, TellProgress, ToolRef,
    Toolbox, DOCUMENT_TOOLS, OWN_SERVER, SEARCH_CHATS, SUGGEST_NOTE,
};
