//! Why a model's files cannot be used.

use std::path::PathBuf;

use protocol::{ErrorCode, Reason};

/// An error of this room. Messages name the file or the field, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or the folder is missing or unreadable.
    #[error("cannot read {}: {source}; the model's folder is incomplete, fetch or repair it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// `config.json` holds something else than a JSON object.
    #[error("config.json is not a JSON object ({0}); the model's folder is broken, fetch it again")]
    NotJson(String),
    /// The family is not known.
    #[error("models of type `{model_type}` are not supported; the supported types are {}", known.join(", "))]
    UnknownFamily {
        /// The `model_type` of config.json.
        model_type: String,
        /// Every type that is supported.
        known: &'static [&'static str],
    },
    /// A model that is known and cannot be run.
    #[error("this is {model}, which Ponder does not run yet; {instead}")]
    NotYet {
        /// Its name.
        model: &'static str,
        /// Models that do the same.
        instead: &'static str,
    },
    /// A model for another purpose.
    #[error("this is {model}, which {work}; Ponder runs models that write text or embed it")]
    OtherWork {
        /// Its name.
        model: &'static str,
        /// The purpose, as a verb and its object.
        work: &'static str,
    },
    /// A value that every model of the family has is missing.
    #[error("config.json lacks `{0}`; the model's folder is broken, fetch it again")]
    MissingField(&'static str),
    /// A value makes no sense.
    #[error("config.json has an unusable `{field}`: {reason}")]
    InvalidField {
        /// The field.
        field: &'static str,
        /// The reason.
        reason: String,
    },
    /// A feature that is known and not supported yet.
    #[error("this model needs {0}, which is not supported yet")]
    Unsupported(String),
    /// It can only be run by code that comes with it.
    #[error(
        "this model needs code that comes with it ({0}), and such code is never run; look for a version of it without"
    )]
    CustomCode(String),
    /// It was trained for something else than answering.
    #[error("this model is a `{0}`, which does not write answers; look for one that chats")]
    NotGenerative(String),
    /// An adapter cannot be added to the model.
    #[error("the adapter cannot be used: {0}. The model itself is unchanged; choose another adapter or none")]
    Adapter(String),
    /// The weights are in files of another kind.
    #[error("the weights of this model are `{0}` files; look for a version of it in safetensors files, such as those of mlx-community")]
    WeightFormat(&'static str),
    /// The tokenizer is in a file of another kind.
    #[error("the tokenizer of this model is in `{0}` alone; look for a version of it with a tokenizer.json")]
    TokenizerFormat(&'static str),
    /// A file that every model needs is not there.
    #[error("the model has no {0}; if its folder is incomplete, fetch or repair it")]
    MissingFile(&'static str),
    /// A file that says how embeddings are made cannot be used.
    #[error("{file} is broken: {reason}; the model's folder is broken, fetch it again")]
    InvalidModule {
        /// The file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// The file of the image processor cannot be used.
    #[error(
        "the model's image processor has an unusable `{field}`: {reason}; the model's folder is broken, fetch it again"
    )]
    InvalidProcessor {
        /// The field.
        field: &'static str,
        /// The reason.
        reason: String,
    },
    /// The image processor is not known.
    #[error("this model prepares images by `{0}`, which is not supported yet")]
    UnknownProcessor(String),
    /// The weights have a tower, and what the files say of it cannot be used, for this reason.
    #[error("this model's vision part cannot be read: {0}; it can be used with text")]
    Vision(String),
    /// An image has no room for a patch.
    #[error("an image of {width}×{height} pixels is too narrow for this model: the longer side may be at most 200 times the shorter one; cut a part out of it")]
    TooNarrow {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// The index of the weights is not one.
    #[error("model.safetensors.index.json {0}; fetch or repair the model")]
    InvalidIndex(String),
    /// A weight file ends too early.
    #[error("{file} is cut short: {reason}; fetch or repair the model")]
    Truncated {
        /// Its name.
        file: String,
        /// The missing part.
        reason: String,
    },
    /// A weight file is not what its name says.
    #[error("{file} is broken: {reason}; fetch or repair the model")]
    NotSafetensors {
        /// Its name.
        file: String,
        /// The reason.
        reason: String,
    },
    /// A GGUF file is broken.
    #[error("{file} is no sound GGUF file: {reason}; download it again")]
    NotGguf {
        /// Its name.
        file: String,
        /// The reason.
        reason: String,
    },
    /// A model that is to be quantized is quantized.
    #[error(
        "this model is quantized already ({0}); quantize the original, whose weights are float32, float16 or bfloat16"
    )]
    AlreadyQuantized(String),
    /// A model cannot be quantized in this way.
    #[error("cannot quantize in this way: {0}")]
    Recipe(String),
    /// The weights lack something.
    #[error("the weights lack {0}; fetch or repair the model")]
    Incomplete(String),
    /// A draft was asked for a model that it does not belong to.
    #[error(
        "it drafts for another model: for {wanted}; this one is {found}. Choose the draft that belongs to the model"
    )]
    OtherModel {
        /// The model that it belongs to.
        wanted: String,
        /// The model that it was to draft for.
        found: String,
    },
    /// A base model.
    #[error("the model has no chat template, so it cannot hold a conversation; choose an instruction-tuned one")]
    NoTemplate,
}

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A value of config.json that makes no sense.
    pub(crate) fn invalid(field: &'static str, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::InvalidField { field, reason }
    }
}

/// Refuses a value of config.json that makes no sense.
pub(crate) fn unusable<T>(field: &'static str, reason: impl Into<String>) -> Result<T> {
    Err(Error::invalid(field, reason))
}

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::UnknownFamily { .. }
            | Error::NotYet { .. }
            | Error::OtherWork { .. }
            | Error::Unsupported(_)
            | Error::CustomCode(_)
            | Error::NotGenerative(_)
            | Error::UnknownProcessor(_)
            | Error::Adapter(_)
            | Error::WeightFormat(_)
            | Error::TokenizerFormat(_)
            | Error::AlreadyQuantized(_)
            | Error::NoTemplate => ErrorCode::ModelUnsupported,
            Error::Unreadable { .. }
            | Error::NotJson(_)
            | Error::MissingField(_)
            | Error::InvalidField { .. }
            | Error::InvalidIndex(_)
            | Error::InvalidModule { .. }
            | Error::InvalidProcessor { .. }
            | Error::Truncated { .. }
            | Error::NotSafetensors { .. }
            | Error::NotGguf { .. }
            | Error::Incomplete(_)
            | Error::MissingFile(_) => ErrorCode::ModelBroken,
            Error::Vision(_) => ErrorCode::ImageNotSeen,
            Error::TooNarrow { .. } | Error::Recipe(_) | Error::OtherModel { .. } => ErrorCode::BadRequest,
        };
        let message = Self::new(code, error.to_string());
        match error {
            Error::Unreadable { path, source } => message
                .with("path", path.display().to_string())
                .with("reason", source.to_string()),
            Error::NotJson(reason) | Error::InvalidIndex(reason) => message.with("reason", reason),
            Error::Vision(reason) => message.narrowed(Reason::ModelVision).with("reason", reason),
            Error::Truncated { file, reason }
            | Error::NotSafetensors { file, reason }
            | Error::NotGguf { file, reason }
            | Error::InvalidModule { file, reason } => message.with("file", file).with("reason", reason),
            Error::UnknownFamily { model_type, .. } => message.narrowed(Reason::ModelFamily).with("family", model_type),
            Error::NotYet { model, instead } => message
                .narrowed(Reason::ModelFamily)
                .with("family", model)
                .with("instead", instead),
            Error::OtherWork { model, work } => message
                .narrowed(Reason::ModelTask)
                .with("task", model)
                .with("work", work),
            Error::MissingField(field) => message.with("field", field),
            Error::InvalidField { field, reason } => message
                .narrowed(Reason::ModelConfig)
                .with("field", field)
                .with("reason", reason),
            Error::InvalidProcessor { field, reason } => message.with("field", field).with("reason", reason),
            Error::Adapter(reason) => message.with("reason", reason),
            Error::UnknownProcessor(processor) => message.with("processor", processor),
            Error::TooNarrow { width, height } => message
                .narrowed(Reason::ImageTooNarrow)
                .with("width", width)
                .with("height", height),
            Error::Unsupported(feature) => message.with("feature", feature),
            Error::CustomCode(code) => message.narrowed(Reason::ModelCode).with("code", code),
            Error::NotGenerative(task) => message.narrowed(Reason::ModelTask).with("task", task),
            Error::WeightFormat(format) => message.narrowed(Reason::ModelFormat).with("format", format),
            Error::TokenizerFormat(file) => message.narrowed(Reason::ModelFormat).with("file", file),
            Error::MissingFile(file) => message.with("file", file),
            Error::AlreadyQuantized(_) | Error::Recipe(_) | Error::Incomplete(_) | Error::OtherModel { .. } => message,
            Error::NoTemplate => message.narrowed(Reason::NoChatTemplate),
        }
    }
}
