//! `ponder` as a process.

#![allow(clippy::unwrap_used)]

mod command_line;
mod continuation;
mod docs;
mod documents;
mod endpoints;
mod families;
mod family_models;
mod history_import;
mod images;
mod import;
mod manual;
mod mcp;
mod pull;
mod quantize;
mod repair;
mod scripting;
mod serve;
#[path = "../../../remote/tests/server/mod.rs"]
mod server;
mod support;
mod tasks;
mod tools;
mod upkeep;
mod vision;
mod vision_models;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_ponder");
