//! The events of an engine's jobs.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::mailbox::Coalesce;
use crate::{Content, Error, ModelInfo, Notice};

/// The work before the first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The weights are read and made resident; counted in bytes.
    Load,
    /// The GPU kernels are compiled and their results checked, once on a computer; not counted.
    Kernels,
    /// Images of the prompt go through the vision encoder; counted in images.
    EncodeImages,
    /// The prompt is prefilled; counted in tokens.
    Prefill,
}

/// The reason for the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model ended its turn, or a stop text appeared.
    Stop,
    /// The token limit or the end of the context was reached, or the answer repeated itself (notice `repetition`).
    Length,
    /// The model called a tool and waits for its result.
    ToolCalls,
    /// The job was canceled.
    Cancelled,
}

/// The rule that ended an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum EndedBy {
    /// The model wrote a token of its stop set.
    StopToken {
        /// Its id.
        token: u32,
        /// Its text.
        text: String,
        /// The sources that name it as a stop, such as `generation_config.eos_token_id`.
        sources: Vec<String>,
    },
    /// One of the request's stop texts appeared.
    StopText {
        /// The text.
        text: String,
    },
    /// The requested maximum of tokens.
    TokenLimit,
    /// The context is full.
    Context,
    /// The answer repeated itself.
    Repetition,
    /// The endpoint ended it; it does not report the rule.
    Endpoint {
        /// The endpoint's `finish_reason`.
        reason: String,
    },
    /// The job was canceled.
    Cancelled,
}

/// Token counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Usage {
    /// Tokens of the rendered conversation.
    pub prompt_tokens: u32,
    /// The tokens of the prompt and of a continued answer that were in the KV cache.
    pub cached_tokens: u32,
    /// The tokens of both that were prefilled before the first new token.
    pub prefilled_tokens: u32,
    /// Tokens of the whole answer, including its prefix and the end of its thought, without the stop token.
    pub completion_tokens: u32,
    /// The reasoning tokens among them; `None` if the engine was not told.
    pub thinking_tokens: Option<u32>,
    /// The figures of speculative decoding; `None` if nothing was drafted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub speculation: Option<SpeculationUsage>,
}

/// Tokens of speculative decoding: drafted, then verified by the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct SpeculationUsage {
    /// Drafted tokens.
    pub draft_tokens: u32,
    /// The drafted tokens that became part of the answer (`accepted_prediction_tokens` of OpenAI's usage).
    pub accepted_draft_tokens: u32,
    /// Passes of the model that yielded tokens. Without drafts, each token takes one.
    pub decode_steps: u32,
}

/// Times and rates of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Timing {
    /// Milliseconds to load the model; 0 if it was loaded.
    pub load_ms: f64,
    /// Milliseconds from the start of prefill to the first token.
    pub first_token_ms: f64,
    /// Prompt tokens prefilled per second.
    pub prefill_tokens_per_second: f64,
    /// Tokens generated per second after the first.
    pub decode_tokens_per_second: f64,
}

/// The end of an answer that did not fail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The rule behind it.
    pub ended_by: EndedBy,
    /// Token counts; `None` if the engine was not told.
    pub usage: Option<Usage>,
    /// Times and rates.
    pub timing: Timing,
    /// Generated token ids that no earlier delta carried (markers at the very end).
    pub tokens: Vec<u32>,
}

/// A chosen token and its likelihood. Log probabilities are natural logarithms of the model's distribution, after logit
/// bias and penalties and before temperature and the cuts of the distribution, as mlx-lm reports them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprobs {
    /// The token's id.
    pub token: u32,
    /// The bytes that it decodes to, which may be part of a character.
    pub bytes: Vec<u8>,
    /// Its log probability.
    pub logprob: f32,
    /// The likeliest tokens, likeliest first; as many as requested.
    pub top: Vec<TopLogprob>,
}

/// One of the likeliest tokens at a position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopLogprob {
    /// The token's id.
    pub token: u32,
    /// The bytes that it decodes to.
    pub bytes: Vec<u8>,
    /// Its log probability.
    pub logprob: f32,
}

/// One event of a job. `Done` or `Failed` comes last, exactly once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineEvent {
    /// Progress of loading or prefill.
    Progress {
        /// The current stage.
        stage: Stage,
        /// Units done.
        done: u64,
        /// Total units.
        total: u64,
    },
    /// The answer has not started, because there is no memory for it next to the answers of these models. It starts
    /// when they have ended; the next event of another kind ends the wait.
    Waiting {
        /// The references of the models that are answering; its own may be among them.
        models: Vec<String>,
    },
    /// The prompt is rendered and generation starts next.
    Started {
        /// Tokens of the rendered conversation; `None` if the engine does not render it.
        prompt_tokens: Option<u32>,
        /// The revision (commit or content hash) of the model that answers; `None` if it is not known.
        model_revision: Option<String>,
        /// SHA-256 of the chat template, hexadecimal; `None` if it is not known.
        template_hash: Option<String>,
    },
    /// An answer is continued: the content of its prefix, in order, without text that may still become a marker. It
    /// replaces the answer as shown so far; later events extend it.
    Continued {
        /// Thoughts, text and calls.
        parts: Vec<Content>,
        /// Notices for the user.
        notices: Vec<Notice>,
        /// The ids of the prefix, which no delta carries again.
        tokens: Vec<u32>,
    },
    /// More of the answer: a piece of text, never half a character, or a complete call. `tokens` are the ids generated
    /// since the last delta. Joined over all deltas and `Done`, they are the model's output, and decoding them yields
    /// at least the text sent so far.
    Delta {
        /// The new content.
        content: Content,
        /// Ids generated since the last delta; empty if the engine receives text alone.
        tokens: Vec<u32>,
        /// Reasoning tokens of the whole answer so far; `None` if the engine cannot count them.
        thinking_tokens: Option<u32>,
    },
    /// The likelihoods of the tokens of the next `Delta` or `Done`, in order, if the request asked for them. Tokens
    /// that were not sampled have none: those of an answer prefix, and those that end a thought for the model.
    Logprobs(Vec<TokenLogprobs>),
    /// The thought was ended for the model, by the user or by the budget.
    ThinkingEnded,
    /// Something the user should know.
    Notice(Notice),
    /// The end.
    Done(Done),
    /// The end, by an error; earlier events stay valid.
    Failed(Error),
}

impl Coalesce for EngineEvent {
    /// Merges two pieces of one text; a newer progress of the same stage, or a newer wait, replaces the older.
    fn coalesce(&mut self, next: Self) -> Option<Self> {
        let replaces = match (&*self, &next) {
            (Self::Progress { stage, .. }, Self::Progress { stage: now, .. }) => stage == now,
            (Self::Waiting { .. }, Self::Waiting { .. }) => true,
            _ => false,
        };
        match (self, next) {
            (last, next) if replaces => {
                *last = next;
                None
            }
            (
                Self::Delta {
                    content,
                    tokens,
                    thinking_tokens,
                },
                Self::Delta {
                    content: more,
                    tokens: ids,
                    thinking_tokens: thought,
                },
            ) => {
                if let Some(content) = content.coalesce(more) {
                    return Some(Self::Delta {
                        content,
                        tokens: ids,
                        thinking_tokens: thought,
                    });
                }
                tokens.extend(ids);
                *thinking_tokens = thought;
                None
            }
            (_, next) => Some(next),
        }
    }

    fn is_last(&self) -> bool {
        matches!(self, EngineEvent::Done(_) | EngineEvent::Failed(_))
    }

    fn abandoned() -> Self {
        EngineEvent::Failed(Error::new(
            crate::ErrorCode::EngineGone,
            "the engine stopped before it answered; what was shown so far is kept, please try again",
        ))
    }
}

/// An event of loading a model. `Ready` or `Failed` comes last, exactly once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadEvent {
    /// Bytes made resident, of the total.
    Progress {
        /// Bytes done.
        done: u64,
        /// Total bytes.
        total: u64,
    },
    /// The model is ready.
    Ready(Box<ModelInfo>),
    /// The model could not be loaded; the engine works, and models that were unloaded for it are gone.
    Failed(Error),
}

impl Coalesce for LoadEvent {
    fn coalesce(&mut self, next: Self) -> Option<Self> {
        if self.is_last() || next.is_last() {
            return Some(next);
        }
        *self = next;
        None
    }

    fn is_last(&self) -> bool {
        !matches!(self, LoadEvent::Progress { .. })
    }

    fn abandoned() -> Self {
        LoadEvent::Failed(Error::new(
            crate::ErrorCode::EngineGone,
            "the engine stopped while it loaded the model; please try again",
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn usage_that_was_stored_before_there_were_drafts_is_read() {
        let stored = r#"{"prompt_tokens":5,"cached_tokens":1,"prefilled_tokens":4,"completion_tokens":7,"thinking_tokens":null}"#;
        let usage: Usage = serde_json::from_str(stored).unwrap();
        assert_eq!((usage.completion_tokens, usage.speculation), (7, None));
        assert_eq!(serde_json::to_string(&usage).unwrap(), stored);
    }
}
