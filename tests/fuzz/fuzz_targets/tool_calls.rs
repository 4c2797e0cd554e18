//! Fuzzes answers with tool calls and thoughts.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../src-tauri/crates/prompt/tests/fuzzed/tool_calls.rs"]
mod target;
#[path = "../words.rs"]
mod words;

fuzz_target!(|data: &[u8]| target::run(data));
