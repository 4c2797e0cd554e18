//! The tables of messages and their parts: questions, answers, results of tools.

pub(crate) mod answers;
mod call_states;
pub(crate) mod continuation;
pub(crate) mod insert;
pub(crate) mod parts;
pub(crate) mod read;
pub(crate) mod rows;
pub(crate) mod rules;
pub(crate) mod tool_calls;
pub(crate) mod tool_results;
pub(crate) mod turns;
