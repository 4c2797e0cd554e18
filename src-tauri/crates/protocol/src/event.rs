//! What an engine says while it works.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::mailbox::Coalesce;
use crate::{Content, Error, ModelInfo, Notice};

/// What is being waited for before the first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The model is read and made resident; counted in bytes.
    Load,
    /// The graphics card's kernels are compiled and compared with what they should compute, once on a computer; not counted.
    Kernels,
    /// Pictures of the prompt go through the model's tower; counted in pictures.
    EncodeImages,
    /// The prompt is read; counted in tokens.
    Prefill,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model ended its turn, or a stop text appeared.
    Stop,
    /// The token limit or the context's end was reached, or the answer ran in a circle (notice `repetition`).
    Length,
    /// The model called a tool and waits for its answer.
    ToolCalls,
    /// Somebody stopped it.
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
        /// How it is spelled.
        text: String,
        /// Where it is named as a stop, such as `generation_config.eos_token_id`.
        sources: Vec<String>,
    },
    /// One of the request's stop texts appeared.
    StopText {
        /// The text.
        text: String,
    },
    /// As many tokens as were asked for.
    TokenLimit,
    /// The context is full.
    Context,
    /// The answer ran in a circle.
    Repetition,
    /// The endpoint said that it ended; the rule behind it is not told.
    Endpoint {
        /// The endpoint's `finish_reason`.
        reason: String,
    },
    /// Somebody stopped it.
    Cancelled,
}

/// Tokens counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Usage {
    /// Tokens of the rendered conversation.
    pub prompt_tokens: u32,
    /// How many of them, and of an answer that is continued, were still in the KV cache.
    pub cached_tokens: u32,
    /// How many of both were read before the first new token.
    pub prefilled_tokens: u32,
    /// Tokens of the whole answer, its prefix and what ended its thought included, the stop token not.
    pub completion_tokens: u32,
    /// How many of those were reasoning; `None` if the engine was not told.
    pub thinking_tokens: Option<u32>,
    /// What speculative decoding did; `None` if nothing was drafted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub speculation: Option<SpeculationUsage>,
}

/// Tokens of speculative decoding: drafted, then verified by the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct SpeculationUsage {
    /// Tokens that were drafted.
    pub draft_tokens: u32,
    /// How many of them became part of the answer (`accepted_prediction_tokens` of OpenAI's usage).
    pub accepted_draft_tokens: u32,
    /// Passes of the model that gave tokens. Without drafts every token takes one.
    pub decode_steps: u32,
}

/// Times and rates of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Timing {
    /// Milliseconds to load the model; 0 if it was loaded already.
    pub load_ms: f64,
    /// Milliseconds from the start of prefill to the first token.
    pub first_token_ms: f64,
    /// Prompt tokens read per second.
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
    /// Tokens counted; `None` if the engine was not told.
    pub usage: Option<Usage>,
    /// Times and rates.
    pub timing: Timing,
    /// Generated token ids that no earlier delta carried (markers at the very end).
    pub tokens: Vec<u32>,
}

/// A token that was chosen, and how likely it was. Log probabilities are natural logarithms of the model's distribution, after
/// logit bias and penalties and before temperature and what cuts the distribution, as mlx-lm reports them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprobs {
    /// The token's id.
    pub token: u32,
    /// The bytes that it spells, which may be part of a character.
    pub bytes: Vec<u8>,
    /// Its log probability.
    pub logprob: f32,
    /// The likeliest tokens, likeliest first; as many as were asked for.
    pub top: Vec<TopLogprob>,
}

/// One of the likeliest tokens at a position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopLogprob {
    /// The token's id.
    pub token: u32,
    /// The bytes that it spells.
    pub bytes: Vec<u8>,
    /// Its log probability.
    pub logprob: f32,
}

/// One event of a job. `Done` or `Failed` comes last, exactly once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineEvent {
    /// How far loading or prefill has come.
    Progress {
        /// What is being waited for.
        stage: Stage,
        /// Units done.
        done: u64,
        /// Units in all.
        total: u64,
    },
    /// The answer is not begun yet, because there is no memory for it beside the answers of these models. It begins when they have
    /// ended; the next event of another kind says that the wait is over.
    Waiting {
        /// The models that answer, by their references; its own may be among them.
        models: Vec<String>,
    },
    /// The prompt is rendered and generation is about to begin.
    Started {
        /// Tokens of the rendered conversation; `None` if the engine does not render it.
        prompt_tokens: Option<u32>,
        /// The revision (commit or content hash) of the model that answers; `None` if it is not known.
        model_revision: Option<String>,
        /// SHA-256 of the chat template, hexadecimal; `None` if it is not known.
        template_hash: Option<String>,
    },
    /// An answer is continued: all that the tokens of its prefix say, in order and without what might still become a marker. It replaces what was
    /// shown of the answer before; what comes now follows it.
    Continued {
        /// Thoughts, text and calls.
        parts: Vec<Content>,
        /// What the user should know about them.
        notices: Vec<Notice>,
        /// The ids of the prefix, which no delta carries again.
        tokens: Vec<u32>,
    },
    /// More of the answer: a piece of text, never half a character, or a complete call. `tokens` are the ids generated since the
    /// last delta: those of all deltas and of `Done` in a row are what the model wrote, and decoding them gives at least the text
    /// sent so far.
    Delta {
        /// What came.
        content: Content,
        /// Ids generated since the last delta; none if the engine is told text alone.
        tokens: Vec<u32>,
        /// How many tokens of the whole answer so far are reasoning; `None` if the engine cannot count them.
        thinking_tokens: Option<u32>,
    },
    /// How likely the tokens were that the next `Delta` or `Done` carries, in order, if the request asked for it. Tokens that were
    /// not chosen have none: those of an answer prefix, and those that end a thought for the model.
    Logprobs(Vec<TokenLogprobs>),
    /// The thought was ended for the model, by the person or by the budget.
    ThinkingEnded,
    /// Something the user should know.
    Notice(Notice),
    /// The end.
    Done(Done),
    /// The end, by an error; what was sent before stays valid.
    Failed(Error),
}

impl Coalesce for EngineEvent {
    /// Two pieces of one text become one, a newer progress of one stage or a newer wait replaces the older.
    fn coalesce(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (
                EngineEvent::Delta {
                    content,
                    tokens,
                    thinking_tokens,
                },
                EngineEvent::Delta {
                    content: more,
                    tokens: ids,
                    thinking_tokens: thought,
                },
            ) => match content.coalesce(more) {
                None => {
                    tokens.extend(ids);
                    *thinking_tokens = thought;
                    None
                }
                Some(content) => Some(EngineEvent::Delta {
                    content,
                    tokens: ids,
                    thinking_tokens: thought,
                }),
            },
            (
                EngineEvent::Progress { stage, done, total },
                EngineEvent::Progress {
                    stage: next_stage,
                    done: now,
                    total: of,
                },
            ) if *stage == next_stage => {
                (*done, *total) = (now, of);
                None
            }
            (EngineEvent::Waiting { models }, EngineEvent::Waiting { models: now }) => {
                *models = now;
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

/// One event of loading a model. `Ready` or `Failed` comes last, exactly once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadEvent {
    /// Bytes made resident of bytes in all.
    Progress {
        /// Bytes done.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// The model answers from now on.
    Ready(Box<ModelInfo>),
    /// The model could not be loaded; the engine lives, and models that made room for it are gone.
    Failed(Error),
}

impl Coalesce for LoadEvent {
    fn coalesce(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (LoadEvent::Progress { done, total }, LoadEvent::Progress { done: now, total: of }) => {
                (*done, *total) = (now, of);
                None
            }
            (_, next) => Some(next),
        }
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
