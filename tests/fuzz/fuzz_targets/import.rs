//! Fuzzes the readers of other programs' chats.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../src-tauri/crates/history/tests/fuzzed/target.rs"]
mod target;

fuzz_target!(|data: &[u8]| target::run(data));
