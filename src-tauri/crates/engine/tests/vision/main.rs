//! Models that see, beside mlx-vlm and from a request to its answer.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod batch;
mod exam;
mod families;
mod quantized;
mod requests;
mod samples;
mod transformers;
