//! Errors between a conversation and its token ids.

use std::path::PathBuf;

use protocol::{ErrorCode, Reason};

/// An error of this room. Messages name the file or the template, never a word of a chat.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the model cannot be read.
    #[error("{} cannot be read ({source}); the model's folder is incomplete, repair it or fetch it again", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file of the model is not the JSON it should be.
    #[error("{} is not valid JSON ({source}); the file is broken, repair the model or fetch it again", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The parse error.
        source: serde_json::Error,
    },
    /// tokenizer.json does not make a tokenizer.
    #[error("the tokenizer cannot be used ({0}); tokenizer.json is broken or of a kind this version does not know")]
    Tokenizer(String),
    /// A text that the tokenizer's normalizer would make longer than any prompt.
    #[error("a text of {bytes} bytes can become too long for this model's tokenizer; nothing was sent to the model, send shorter texts")]
    TextTooLong {
        /// Bytes of the text.
        bytes: usize,
    },
    /// The tokenizer spells its tokens in a way that cannot be streamed.
    #[error("the tokenizer's decoder `{0}` is not known to this version; the model cannot be used with it")]
    UnknownDecoder(String),
    /// A base model without a chat template.
    #[error("the model has no chat template, so it cannot hold a conversation; choose an instruction-tuned one")]
    NoTemplate,
    /// The chat template does not parse.
    #[error("the model's chat template does not parse: {0}")]
    TemplateSyntax(String),
    /// The chat template called `raise_exception`.
    #[error("the model's chat template refused this conversation: {0}")]
    TemplateRefused(String),
    /// The chat template failed on these messages.
    #[error("the model's chat template failed on this conversation: {0}")]
    TemplateFailed(String),
    /// The chat template was stopped because it did not end, or built more text than any model reads.
    #[error(
        "the model's chat template ran for too long, or wrote too much, and was stopped; nothing was sent to the model"
    )]
    TemplateEndless,
    /// The rendering was ended because nobody waits for it.
    #[error("it was stopped before the prompt was complete; nothing was sent to the model")]
    TemplateCancelled,
    /// A gap is to be filled, by a model that has no tokens for that.
    #[error("this model was not made to fill a gap between two texts; send only what stands before it, or choose a model for code")]
    NoFillIn,
    /// Images are to be shown to a model that has no tokens for them.
    #[error("this model has no way to be shown images; choose one that sees, or leave the images out")]
    NoImages,
    /// The tokenizer splits what takes an image's features.
    #[error("the tokenizer does not know the token `{0}` that images need; the model's files do not belong together, fetch it again")]
    NoImageToken(String),
    /// The chat template wrote another number of placeholders than there are images.
    #[error("the conversation holds {images} images and the model's chat template wrote {placeholders} places for them; nothing was sent to the model")]
    ImageCount {
        /// Images that are to be shown.
        images: usize,
        /// Places that the template wrote.
        placeholders: usize,
    },
    /// More images than such models take.
    #[error("the conversation holds {images} images, and this model can be shown {most}; leave some out, or choose another model")]
    TooManyImages {
        /// Images that are to be shown.
        images: usize,
        /// The most that can be.
        most: usize,
    },
    /// A thought is to be continued, of a model that has none.
    #[error("this answer began with a thought, and the model has no way to tell one; nothing was lost, choose the model that began it")]
    NoThoughts,
}

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::File { .. } | Error::Json { .. } | Error::Tokenizer(_) => ErrorCode::ModelBroken,
            Error::UnknownDecoder(_) | Error::NoTemplate | Error::TemplateSyntax(_) => ErrorCode::ModelUnsupported,
            Error::NoThoughts | Error::NoFillIn | Error::TextTooLong { .. } | Error::TooManyImages { .. } => {
                ErrorCode::BadRequest
            }
            Error::TemplateCancelled => ErrorCode::Stopped,
            Error::NoImages => ErrorCode::ImageNotSeen,
            Error::NoImageToken(_) => ErrorCode::ModelBroken,
            Error::TemplateRefused(_)
            | Error::TemplateFailed(_)
            | Error::TemplateEndless
            | Error::ImageCount { .. } => ErrorCode::TemplateRefused,
        };
        let message = protocol::Error::new(code, error.to_string());
        match error {
            Error::File { path, source } => message
                .with("path", path.display().to_string())
                .with("reason", source.to_string()),
            Error::Json { path, source } => message
                .with("path", path.display().to_string())
                .with("reason", source.to_string()),
            Error::UnknownDecoder(decoder) => message.with("decoder", decoder),
            Error::Tokenizer(reason)
            | Error::TemplateSyntax(reason)
            | Error::TemplateRefused(reason)
            | Error::TemplateFailed(reason) => message.with("reason", reason),
            Error::NoImageToken(token) => message.with("token", token),
            Error::ImageCount { images, placeholders } => message
                .narrowed(Reason::ImagesRefused)
                .with("images", images)
                .with("placeholders", placeholders),
            Error::TooManyImages { images, most } => message
                .narrowed(Reason::TooManyImages)
                .with("images", images)
                .with("most", most),
            Error::NoTemplate => message.narrowed(Reason::NoChatTemplate),
            Error::NoThoughts => message.narrowed(Reason::ContinueThinking),
            Error::TemplateEndless
            | Error::TemplateCancelled
            | Error::TextTooLong { .. }
            | Error::NoFillIn
            | Error::NoImages => message,
        }
    }
}
