//! Reads tauri.conf.json into the program, and which window may call which command.

use std::collections::BTreeSet;

use tauri_build::{AppManifest, Attributes};

/// The permissions of the windows, written by `cargo test -p ponder-app --lib interface`.
const CAPABILITIES: &str = "src-tauri/capabilities/windows.json";

fn main() {
    println!("cargo:rerun-if-changed={CAPABILITIES}");
    let text = std::fs::read_to_string(CAPABILITIES).unwrap_or_else(|error| panic!("{CAPABILITIES}: {error}"));
    // A permission of ours is `allow-` and a command's name; those of Tauri have a prefix.
    let commands: BTreeSet<String> = text
        .split('"')
        .filter_map(|part| part.strip_prefix("allow-"))
        .map(|command| command.replace('-', "_"))
        .collect();
    let commands: Vec<&'static str> = commands.into_iter().map(|name| &*name.leak()).collect();
    let attributes = Attributes::new()
        .capabilities_path_pattern("./src-tauri/capabilities/*.json")
        .app_manifest(AppManifest::new().commands(commands.leak()));
    if let Err(error) = tauri_build::try_build(attributes) {
        panic!("{error:#}");
    }
}
