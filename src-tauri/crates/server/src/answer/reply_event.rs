//! Events of an answer for clients: the same for every surface, streamed or not.

use protocol::{QuotedPassage, Timing, TokenLogprobs, ToolCall};

use crate::figures::tokens::Tokens;

/// A piece of an answer, or its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ReplyEvent {
    /// More of the thought.
    Thinking(String),
    /// More of the answer.
    Text {
        text: String,
        /// The log probabilities of its tokens, if requested.
        logprobs: Vec<TokenLogprobs>,
    },
    /// A complete call.
    Call(ToolCall),
    /// A call that the end of the answer cut.
    CutCall(CutCall),
    /// A search of the user's documents, which the server runs itself.
    Search(SearchEvent),
    /// The end.
    End(End),
}

impl ReplyEvent {
    /// More of the answer, without log probabilities.
    #[cfg(test)]
    pub(crate) fn text(text: &str) -> Self {
        Self::Text {
            text: text.to_owned(),
            logprobs: Vec::new(),
        }
    }
}

/// The beginning of a call that the token limit cut, as OpenAI's and Anthropic's own servers report it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CutCall {
    pub(crate) name: String,
    /// The beginning of a JSON object, never all of it.
    pub(crate) arguments: String,
}

/// The beginning or the end of a search. They follow each other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SearchEvent {
    /// It begins.
    Begun {
        /// The id of its item.
        id: String,
        /// The words of the model.
        query: String,
    },
    /// It found these passages.
    Found(Vec<QuotedPassage>),
    /// It failed, of which the model is told.
    Failed,
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) reason: StopCause,
    pub(crate) usage: Tokens,
    /// Times and rates, as the engine measured them.
    pub(crate) timing: Timing,
}

impl End {
    /// True if a limit cut the answer.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self.reason, StopCause::TokenLimit | StopCause::Context)
    }
}

/// The cause of an answer's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// A stop token.
    Stop,
    /// One of the request's stop texts.
    StopText(String),
    /// The request's token limit.
    TokenLimit,
    /// The context is full.
    Context,
    /// Tools were called.
    ToolCalls,
}

/// The parts of an answer that a client receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplyFilter {
    /// Thinking is reported. If the client switched it off, stray thinking is dropped.
    pub(crate) thoughts: bool,
    /// More than one call may be made.
    pub(crate) parallel_calls: bool,
}
