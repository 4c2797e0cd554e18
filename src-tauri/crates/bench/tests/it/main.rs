//! `ponder-bench` as a process.

#![allow(clippy::unwrap_used)]

#[path = "../../../cli/tests/it/family_models.rs"]
mod family_models;
mod inspection;
mod logits;
mod measurements;
#[path = "../../../cli/tests/it/support/mod.rs"]
mod support;
#[path = "../../../cli/tests/it/vision_models.rs"]
mod vision_models;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_ponder-bench");
