//! An error of the API: one type, serialized in the dialect of the requested surface.

use openai_wire::InvalidParam;
use protocol::{Argument, Error, ErrorCode};
use serde_json::{json, Value};

/// The error format of a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    /// `{"error":{message,type,param,code}}`
    OpenAi,
    /// `{"type":"error","error":{type,message},"request_id"}`
    Anthropic,
    /// `{"error":"message"}`
    Ollama,
}

/// The kind of an error, which determines its status and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The request is malformed, or asks for something that cannot be honored.
    BadRequest,
    /// A key is missing or wrong.
    Unauthorized,
    /// The Host or Origin is not allowed.
    Forbidden,
    /// No such path, model or stored item.
    NotFound,
    /// The path takes another method.
    Method,
    /// The body did not come in time.
    Timeout,
    /// The body is too large.
    TooLarge,
    /// The body is not JSON, or compressed.
    MediaType,
    /// The queue is full.
    Busy,
    /// Not now: memory is short, or the app closes.
    Unavailable,
    /// The interface has such a path, and this server does not do it.
    Unsupported,
    /// The engine or the model failed.
    Internal,
}

/// True for errors after which a client should repeat the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// As the status says.
    ByStatus,
    /// After this many seconds.
    After(u64),
    /// Never: the request would fail again.
    Never,
}

/// Details of which each dialect's clients parse the message.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Worded {
    openai: String,
    anthropic: String,
}

/// An error of the API: one type, serialized in the dialect of the requested surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) kind: Kind,
    /// For the user of the client.
    pub(crate) message: String,
    /// The field, such as `messages[3].content[1]`.
    pub(crate) param: Option<String>,
    /// For the client's code, such as `model_not_found`.
    pub(crate) code: Option<&'static str>,
    pub(crate) retry: Retry,
    /// Messages whose wording clients parse.
    worded: Option<Box<Worded>>,
}

impl Refusal {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            param: None,
            code: None,
            retry: Retry::ByStatus,
            worded: None,
        }
    }

    /// A field that is malformed or cannot be honored.
    pub(crate) fn field(param: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        let param = param.into();
        Self {
            message: format!("{param}: {reason}"),
            param: Some(param),
            ..Self::new(Kind::BadRequest, "")
        }
    }

    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// The same about this field.
    pub(crate) fn at(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    fn never(mut self) -> Self {
        self.retry = Retry::Never;
        self
    }

    /// The HTTP status.
    pub(crate) fn status(&self, dialect: Dialect) -> u16 {
        self.status_and_type(dialect).0
    }

    /// The HTTP status and the type of the error in this dialect.
    fn status_and_type(&self, dialect: Dialect) -> (u16, &'static str) {
        let by_dialect = |openai, anthropic| match dialect {
            Dialect::OpenAi | Dialect::Ollama => openai,
            Dialect::Anthropic => anthropic,
        };
        match self.kind {
            Kind::BadRequest => (400, "invalid_request_error"),
            Kind::Unauthorized => (401, "authentication_error"),
            Kind::Forbidden => (403, "permission_error"),
            Kind::NotFound => (404, by_dialect("invalid_request_error", "not_found_error")),
            Kind::Method => (405, "invalid_request_error"),
            Kind::Timeout => (408, "invalid_request_error"),
            Kind::TooLarge => (413, by_dialect("invalid_request_error", "request_too_large")),
            Kind::MediaType => (415, "invalid_request_error"),
            Kind::Busy => (429, "rate_limit_error"),
            Kind::Unsupported => (501, "invalid_request_error"),
            Kind::Internal => (500, by_dialect("server_error", "api_error")),
            // Anthropic's clients do not know 503.
            Kind::Unavailable if dialect == Dialect::Anthropic => (529, "overloaded_error"),
            Kind::Unavailable => (503, "overloaded_error"),
        }
    }

    /// The code of OpenAI's Responses, whose clients know few.
    pub(crate) fn response_code(&self) -> &'static str {
        self.code.unwrap_or(match self.kind {
            Kind::Busy => "rate_limit_exceeded",
            Kind::Internal | Kind::Unavailable => "server_error",
            _ => "invalid_prompt",
        })
    }

    /// The body in this dialect.
    pub(crate) fn body(&self, dialect: Dialect, request_id: &str) -> Value {
        let ((_, kind), worded) = (self.status_and_type(dialect), self.worded.as_ref());
        match dialect {
            Dialect::OpenAi => {
                let message = worded.map_or(&self.message, |worded| &worded.openai);
                json!({"error": {"message": message, "type": kind, "param": self.param, "code": self.code}})
            }
            Dialect::Anthropic => {
                let message = worded.map_or(&self.message, |worded| &worded.anthropic);
                json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id})
            }
            Dialect::Ollama => json!({"error": self.message}),
        }
    }
}

/// The argument of this name, if it is a number.
pub(crate) fn number(error: &Error, name: &str) -> Option<u64> {
    match error.arguments.get(name) {
        Some(Argument::Number(number)) => Some(*number),
        _ => None,
    }
}

impl From<InvalidParam> for Refusal {
    fn from(error: InvalidParam) -> Self {
        Self::field(error.param, error.reason)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let number = |name: &str| number(&error, name);
        let message = error.message.clone();
        match error.code {
            ErrorCode::ContextFull => {
                let tokens = number("prompt").or(number("written")).zip(number("context"));
                let worded = tokens.map(|(prompt, context)| Worded {
                    // litellm and aider recognize a full context by the first words only, LangChain by the code in
                    // them.
                    openai: format!(
                        "This model's maximum context length is {context} tokens (context_length_exceeded): {message}"
                    ),
                    // Claude Code parses the figures of this wording and shortens its conversation.
                    anthropic: format!("prompt is too long: {prompt} tokens > {context} maximum"),
                });
                Self {
                    worded: worded.map(Box::new),
                    ..Self::new(Kind::BadRequest, message).code("context_length_exceeded")
                }
            }
            ErrorCode::BadRequest
            | ErrorCode::TemplateRefused
            | ErrorCode::ImageBroken
            | ErrorCode::FileBroken
            | ErrorCode::ImageNotSeen => Self::new(Kind::BadRequest, message),
            ErrorCode::ModelNotFound => Self::new(Kind::NotFound, message).code("model_not_found"),
            ErrorCode::NotFound => Self::new(Kind::NotFound, message),
            ErrorCode::Busy => Self {
                retry: Retry::After(number("retry_after").unwrap_or(1).clamp(1, 60)),
                ..Self::new(Kind::Busy, message)
            },
            ErrorCode::MemoryShort => Self::new(Kind::Unavailable, message).never(),
            ErrorCode::EngineGone | ErrorCode::Stopped => Self::new(Kind::Unavailable, message),
            ErrorCode::ModelBroken
            | ErrorCode::ModelUnsupported
            | ErrorCode::Gated
            | ErrorCode::KeyRefused
            | ErrorCode::Offline => Self::new(Kind::Internal, message).never(),
            ErrorCode::Engine
            | ErrorCode::Network
            | ErrorCode::Storage
            | ErrorCode::HistoryDamaged
            | ErrorCode::Keychain
            | ErrorCode::DiskFull
            | ErrorCode::Corrupt => Self::new(Kind::Internal, message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflow_is_told_in_the_words_that_each_client_acts_on() {
        let error = Error::new(ErrorCode::ContextFull, "too long")
            .with("prompt", 9000u32)
            .with("context", 8192u32);
        let refusal = Refusal::from(error);
        assert_eq!(
            (refusal.status(Dialect::OpenAi), refusal.status(Dialect::Anthropic)),
            (400, 400)
        );
        let openai = &refusal.body(Dialect::OpenAi, "r")["error"];
        assert_eq!(openai["code"], "context_length_exceeded");
        assert_eq!(
            openai["message"],
            "This model's maximum context length is 8192 tokens (context_length_exceeded): too long"
        );
        assert_eq!(
            refusal.body(Dialect::Anthropic, "r"),
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9000 tokens > 8192 maximum"},
                "request_id": "r"})
        );
    }

    #[test]
    fn a_full_queue_says_when_to_come_back() {
        let refusal = Refusal::from(Error::new(ErrorCode::Busy, "busy").with("retry_after", 7u32));
        assert_eq!((refusal.status(Dialect::OpenAi), refusal.retry), (429, Retry::After(7)));
        assert_eq!(refusal.body(Dialect::OpenAi, "r")["error"]["type"], "rate_limit_error");
    }

    #[test]
    fn what_will_repeat_is_not_asked_again() {
        for code in [
            ErrorCode::ModelBroken,
            ErrorCode::ModelUnsupported,
            ErrorCode::MemoryShort,
        ] {
            let refusal = Refusal::from(Error::new(code, "no"));
            assert!(
                refusal.status(Dialect::OpenAi) >= 500 && refusal.retry == Retry::Never,
                "{code:?}"
            );
        }
        let closing = Refusal::from(Error::new(ErrorCode::EngineGone, "closing"));
        assert_eq!(
            (closing.status(Dialect::OpenAi), closing.status(Dialect::Anthropic)),
            (503, 529)
        );
    }
}
