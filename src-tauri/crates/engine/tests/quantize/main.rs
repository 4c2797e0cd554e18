//! Quantized copies of models, beside those of mlx-lm, and what is left when writing one goes wrong.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod beside_answers;
mod beside_mlx_lm;
mod failures;
mod large;
