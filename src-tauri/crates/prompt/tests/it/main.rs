//! Prompts out of messages, and events out of what models write, through the crate's public calls.

#![allow(clippy::unwrap_used)]

mod calls;
mod channels;
mod end_of_thinking;
mod formats;
mod images;
mod injection;
mod models_told;
mod next_prompt;
mod own_words;
mod pebble;
mod peer_suites;
mod raw_prompts;
mod templates;
mod tools;
mod written_calls;

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/speaker.rs"]
mod speaker;
