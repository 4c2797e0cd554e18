//! A model's way of speaking, put together from its files: prompts, stop tokens, and how it writes calls.

mod answer_prefix;
mod call_form;
mod next_prompt;
mod processor;
mod raw_prompt;
mod stop_tokens;

pub use call_form::CallForm;
pub use next_prompt::NextPrompt;
pub use processor::ChatProcessor;
pub use stop_tokens::{StopSet, StopToken};
