//! A model's way of speaking and its logits, printed.

pub mod logits;
mod processor;
pub mod render;
pub mod split;
pub mod stops;
