//! Fuzzes the socket of a shared engine.
#![no_main]
#![allow(clippy::unwrap_used)]

use libfuzzer_sys::fuzz_target;

#[path = "../../../src-tauri/crates/engine-socket/tests/fuzzed/target.rs"]
mod target;

fuzz_target!(|data: &[u8]| target::run(data));
