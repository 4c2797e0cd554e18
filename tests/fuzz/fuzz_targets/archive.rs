//! Fuzzes the readers of documents that are archives of XML.
#![no_main]
#![allow(clippy::unwrap_used)]

use libfuzzer_sys::fuzz_target;

#[path = "../../../src-tauri/crates/documents/tests/fuzzed/archives.rs"]
mod archives;

fuzz_target!(|data: &[u8]| archives::run(data));
