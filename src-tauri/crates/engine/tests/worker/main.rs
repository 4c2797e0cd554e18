//! The worker thread: requests in, events out, with the real Pebble.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod broken_models;
mod continuation;
mod draft_model;
mod exam;
mod fairness;
mod invariants;
mod keep_alive;
mod loading;
mod preemption;
mod preparation;
mod prompt_lookup;
mod reuse;
mod schemas;
mod thoughts;
mod together;
mod tool_turns;
mod turns;
