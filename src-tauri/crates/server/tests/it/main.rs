//! The server over real HTTP on loopback, beside the fake engine.
#![allow(clippy::unwrap_used)]

mod answers;
mod client;
mod description;
mod embeddings;
mod hostile;
mod house;
mod images;
mod recorded;
mod schemas;
mod sdks;
mod switching;
mod told;
mod unloading;
mod waiting;
