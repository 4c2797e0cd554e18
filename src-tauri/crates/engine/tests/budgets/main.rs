//! Memory budgets. MLX counts the memory of the whole process, so one test at a time has a model.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod card;
mod estimate;
mod estimate_families;
mod packed_weights;
mod several_models;
mod soak;
mod while_loading;

/// Held by the test that has a model.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
