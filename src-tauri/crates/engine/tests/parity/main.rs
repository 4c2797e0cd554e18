//! Numbers beside mlx-lm.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod adapters;
mod batch;
mod changed_configs;
mod draft_heads;
mod drafted_answers;
mod drafts_families;
mod embeddings;
mod every_turn;
mod families;
mod hybrid_turns;
mod logprobs;
mod past_the_window;
mod pebble;
mod products;
mod reuse_families;
mod together_families;
