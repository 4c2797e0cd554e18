//! Fuzzes the reader of PDF files and what guards it.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../src-tauri/crates/documents/tests/fuzzed/target.rs"]
mod target;
#[path = "../words.rs"]
mod words;

fuzz_target!(|data: &[u8]| target::run(data));
