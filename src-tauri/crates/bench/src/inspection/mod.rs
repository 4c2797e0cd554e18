//! A model's way of speaking, its logits and its responses, printed.

pub mod answers;
pub mod logits;
mod processor;
pub mod render;
pub mod split;
pub mod stops;
