//! The server over real HTTP on loopback, beside the fake engine.
#![allow(clippy::unwrap_used)]

mod answers;
mod client;
mod embeddings;
mod hostile;
mod house;
mod recorded;
mod sdks;
mod switching;
mod told;
mod waiting;
