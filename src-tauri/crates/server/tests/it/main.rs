//! The server over real HTTP on loopback, beside the fake engine.
#![allow(clippy::unwrap_used)]

mod answers;
mod bodies;
mod client;
mod clients_seen;
mod connections;
mod counting;
mod description;
mod draft_model;
mod embeddings;
mod file_search;
mod harness;
mod hostile;
mod images;
mod keep_alive;
mod model_names;
mod ollama;
mod recorded;
mod responses;
mod schemas;
mod sdks;
mod switching;
mod waiting;
