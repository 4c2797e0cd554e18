//! Fuzzes the reader of messages.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../src-tauri/crates/documents/tests/fuzzed/messages.rs"]
mod messages;
#[path = "../words.rs"]
mod words;

fuzz_target!(|data: &[u8]| messages::run(data));
