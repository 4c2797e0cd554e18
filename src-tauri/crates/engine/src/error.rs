//! Errors of the engine.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use protocol::{ErrorCode, Reason};

/// An error of the engine. It becomes a [`protocol::Error`] when it leaves the worker.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `config.json` or the files next to it say that the model will not run.
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::Error),
    /// The tokenizer or the chat template cannot be used, or refused.
    #[error(transparent)]
    Prompt(#[from] prompt::Error),
    /// An image cannot be read.
    #[error(transparent)]
    Media(#[from] media::Error),
    /// The JSON schema cannot be honoured, or was left.
    #[error(transparent)]
    Constraint(#[from] constraint::Error),
    /// A file of weights is missing or unreadable.
    #[error("cannot read {file}: {reason}; the model's folder is incomplete, fetch or repair it")]
    Unreadable {
        /// The file's name.
        file: String,
        /// The reason that the system gave.
        reason: String,
    },
    /// A file of weights is broken.
    #[error("{file} is broken: {reason}; fetch or repair the model")]
    BrokenFile {
        /// The file's name.
        file: String,
        /// The fault.
        reason: String,
    },
    /// The weights lack a tensor.
    #[error("the weights lack `{0}`; the model's folder is incomplete or belongs to another config.json, fetch or repair it")]
    MissingTensor(String),
    /// A tensor does not fit `config.json`.
    #[error("`{name}` has the shape {found:?} where config.json asks for {expected}; fetch or repair the model")]
    WrongShape {
        /// The tensor.
        name: String,
        /// The shape that the config asks for.
        expected: String,
        /// The shape that the file holds.
        found: Vec<i32>,
    },
    /// A feature of the model that is not supported yet.
    #[error("this model needs {0}, which is not supported yet")]
    Unsupported(String),
    /// MLX multiplies quantized numbers of a kind wrongly here, and there is no memory for the numbers themselves.
    #[error(
        "this device multiplies {0} wrongly, and there is not enough memory to dequantise them; a smaller model, or one in another \
         quantisation, will run"
    )]
    WrongProducts(String),
    /// A draft model has other tokens than the model.
    #[error("it has other tokens than the model; choose a smaller model of the same family")]
    OtherTokens,
    /// A draft model has no room.
    #[error("there is no memory for it next to the model")]
    NoRoomBeside,
    /// A quantized copy would take the place of something.
    #[error("{} exists already; nothing was written and nothing there was changed. Choose another folder", .0.display())]
    TargetExists(PathBuf),
    /// A quantized copy does not fit on the disk.
    #[error(
        "the disk of {} has {:.1} GB free and the quantized model needs {:.1} GB; nothing was written. Free space or choose \
         another disk", path.display(), *free as f64 / 1e9, *needed as f64 / 1e9
    )]
    DiskFull {
        /// The folder.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A quantized copy could not be written.
    #[error(
        "cannot write {}: {source}; the original is as it was and nothing of the copy is left. Free space or choose another \
         folder", path.display()
    )]
    NotWritten {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A person stopped it.
    #[error("it was stopped; nothing of it is left")]
    Stopped,
    /// The job was cancelled; it is no failure, and no listener sees it.
    #[error("it was cancelled")]
    Cancelled,
    /// As many requests wait as may.
    #[error("{waiting} requests wait for an answer already; try again in about {retry_after} seconds")]
    Busy {
        /// How many wait.
        waiting: usize,
        /// Seconds after which trying again may help.
        retry_after: u32,
    },
    /// The host's watch over the memory refused.
    #[error(transparent)]
    MemoryShort(protocol::Error),
    /// The request makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// A conversation was sent to an embedding model.
    #[error("this model makes embeddings and writes no answers; choose one that chats")]
    NotForChat,
    /// An answer was asked of a head.
    #[error("this drafts the responses of another model and writes none alone; choose the model that it belongs to")]
    DraftsAlone,
    /// A head was given to a model whose states none reads.
    #[error("no draft reads the states of such a model")]
    NoHead,
    /// Embeddings were asked of a model that chats.
    #[error("this model makes no embeddings; choose an embedding model, such as one with a `modules.json`")]
    NotForEmbeddings,
    /// Scores were asked of a model that is no reranker.
    #[error("this model scores no texts; choose a reranker, such as a BERT with one label")]
    NotForRanking,
    /// An input holds nothing.
    #[error("there is nothing in it to embed")]
    EmptyInput {
        /// Which.
        index: usize,
    },
    /// An input is longer than the model reads.
    #[error(
        "it has {tokens} tokens and this embedding model reads at most {most}; nothing was cut off, send shorter texts"
    )]
    InputTooLong {
        /// Which.
        index: usize,
        /// Its tokens.
        tokens: usize,
        /// Tokens that the model reads.
        most: u32,
    },
    /// The inputs of a request are too much for one.
    #[error("the inputs have more than {most} tokens together; send several requests")]
    TooManyTokens {
        /// The most tokens of a request.
        most: usize,
    },
    /// An input holds an id that is none.
    #[error("there is no token {id}: the model knows {vocabulary}")]
    UnknownToken {
        /// Which input.
        index: usize,
        /// The id.
        id: u32,
        /// Tokens of the vocabulary.
        vocabulary: u32,
    },
    /// Vectors cannot be cut to this length.
    #[error("{wanted} numbers were asked for, and this model's vectors have {width} and are not made to be cut so")]
    Dimensions {
        /// The requested length.
        wanted: u32,
        /// The length of the model's vectors.
        width: u32,
    },
    /// The model is in no folder of this computer.
    #[error("{0} is served by another program, and this engine only answers with models of this computer")]
    NotAFolder(String),
    /// An image was sent to a model without a vision encoder.
    #[error("this model reads text alone and cannot look at images; choose one that sees")]
    NoVision,
    /// The conversation does not fit.
    #[error(
        "the conversation has {prompt} tokens and the model's context holds {context}, so no answer fits; nothing was dropped: \
         shorten the last message or begin a new chat"
    )]
    ContextFull {
        /// Tokens of the rendered conversation.
        prompt: usize,
        /// Tokens the context holds.
        context: u32,
    },
    /// The conversation is so much too long that its tokens need not be counted.
    #[error(
        "the conversation has at least {least} tokens and the model's context holds {context}, so no answer fits; nothing was \
         dropped: shorten the last message or begin a new chat"
    )]
    FarTooLong {
        /// Fewer tokens than this it cannot have.
        least: usize,
        /// Tokens the context holds.
        context: u32,
    },
    /// An answer that is to go on has filled the context.
    #[error(
        "the conversation and this answer have {written} tokens and the model's context holds {context}, so the answer cannot go on; \
         nothing was dropped: send a shorter message or begin a new chat"
    )]
    AnswerFull {
        /// Tokens of both.
        written: usize,
        /// Tokens the context holds.
        context: u32,
    },
    /// MLX refused or failed.
    #[error("the computation failed: {0}; what was shown so far is kept, please try again")]
    Mlx(String),
    /// A defect of this program.
    #[error("the engine stopped at a defect of its own: {0}; what was shown so far is kept, please try again")]
    Panicked(String),
    /// The worker is gone.
    #[error("the engine's thread is gone; restart the app")]
    WorkerGone,
}

impl Error {
    /// A file or folder of a copy that could not be written.
    pub fn not_written(path: &Path, source: std::io::Error) -> Self {
        let path = path.to_owned();
        Self::NotWritten { path, source }
    }
}

/// A result of the engine.
pub type Result<T> = std::result::Result<T, Error>;

/// Turns a panic into an error.
pub fn catch_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Error::Panicked(text.unwrap_or_else(|| "no reason given".into())))
    })
}

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::Checkpoint(error) => return error.into(),
            Error::Prompt(error) => return error.into(),
            Error::Constraint(error) => return error.into(),
            Error::MemoryShort(error) => return error,
            Error::Media(error) => return error.into(),
            Error::NoVision => ErrorCode::ImageNotSeen,
            Error::Unreadable { .. }
            | Error::BrokenFile { .. }
            | Error::MissingTensor(_)
            | Error::WrongShape { .. } => ErrorCode::ModelBroken,
            Error::NotAFolder(_) => ErrorCode::ModelNotFound,
            Error::Unsupported(_) | Error::WrongProducts(_) => ErrorCode::ModelUnsupported,
            Error::DiskFull { .. } => ErrorCode::DiskFull,
            Error::NotWritten { ref source, .. } => match source.kind() {
                std::io::ErrorKind::StorageFull => ErrorCode::DiskFull,
                _ => ErrorCode::Storage,
            },
            Error::Stopped => ErrorCode::Stopped,
            Error::BadRequest(_)
            | Error::TargetExists(_)
            | Error::OtherTokens
            | Error::NoRoomBeside
            | Error::NotForChat
            | Error::DraftsAlone
            | Error::NoHead
            | Error::NotForEmbeddings
            | Error::NotForRanking
            | Error::EmptyInput { .. }
            | Error::TooManyTokens { .. }
            | Error::UnknownToken { .. }
            | Error::Dimensions { .. } => ErrorCode::BadRequest,
            Error::InputTooLong { .. }
            | Error::ContextFull { .. }
            | Error::FarTooLong { .. }
            | Error::AnswerFull { .. } => ErrorCode::ContextFull,
            Error::Mlx(_) | Error::Panicked(_) => ErrorCode::Engine,
            Error::Busy { .. } => ErrorCode::Busy,
            Error::Cancelled | Error::WorkerGone => ErrorCode::EngineGone,
        };
        let message = Self::new(code, error.to_string());
        match error {
            Error::Unreadable { file, reason } | Error::BrokenFile { file, reason } => {
                message.with("file", file).with("reason", reason)
            }
            Error::MissingTensor(tensor) => message.with("tensor", tensor),
            Error::WrongShape { name, .. } => message.with("tensor", name),
            Error::NotAFolder(model) => message.with("model", model),
            Error::TargetExists(path) => message.with("path", path.display().to_string()),
            Error::DiskFull { path, needed, free } => message
                .narrowed(Reason::DiskSpace)
                .with("path", path.display().to_string())
                .with("needed", needed)
                .with("free", free),
            Error::NotWritten { path, source } => message
                .with("path", path.display().to_string())
                .with("reason", source.to_string()),
            Error::Unsupported(feature) => message.with("feature", feature),
            Error::WrongProducts(products) => message.narrowed(Reason::DeviceQuantization).with("feature", products),
            Error::NotForChat | Error::DraftsAlone => message.narrowed(Reason::NotAChatModel),
            Error::ContextFull { prompt, context } | Error::FarTooLong { least: prompt, context } => {
                message.with("prompt", prompt).with("context", context)
            }
            Error::AnswerFull { written, context } => message
                .narrowed(Reason::ResponseFull)
                .with("written", written)
                .with("context", context),
            Error::EmptyInput { index } | Error::UnknownToken { index, .. } => message.with("input", index),
            Error::InputTooLong { index, tokens, most } => message
                .with("input", index)
                .with("prompt", tokens)
                .with("context", most),
            Error::Dimensions { wanted, .. } => message.with("dimensions", wanted),
            Error::TooManyTokens { most } => message.with("tokens", most),
            Error::Busy { retry_after, .. } => message.narrowed(Reason::QueueFull).with("retry_after", retry_after),
            Error::Mlx(reason) => message.narrowed(Reason::ModelFailed).with("reason", reason),
            Error::Panicked(reason) => message.narrowed(Reason::PonderFault).with("reason", reason),
            _ => message,
        }
    }
}

impl From<mlx::Error> for Error {
    fn from(error: mlx::Error) -> Self {
        match error {
            mlx::Error::Failed(reason) => Self::Mlx(reason),
            mlx::Error::Unsupported(feature) => Self::Unsupported(feature),
        }
    }
}
