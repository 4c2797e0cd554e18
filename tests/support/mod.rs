//! Helpers shared by the tests of the whole app.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::{json, Value};

pub mod desktop;
pub mod driver;
pub mod input;
pub mod keyboard;
pub mod outside;
pub mod pdf;
#[path = "../../src-tauri/crates/cli/tests/it/support/python.rs"]
pub mod python;
pub mod views;
pub mod vision_endpoint;

/// The `ponder` command next to the app in the build folder.
pub fn ponder_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = Path::new(env!("CARGO_BIN_EXE_ponder-app")).with_file_name("ponder");
        if !program.is_file() {
            let built = Command::new("cargo")
                .args([
                    "build",
                    "--quiet",
                    "--workspace",
                    "--exclude",
                    "bench",
                    "--bin",
                    "ponder",
                ])
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .status();
            assert!(
                built.expect("cargo starts").success(),
                "the command line does not build"
            );
        }
        program
    })
}

/// Runs `ponder` with its data in `home`.
pub fn ponder(home: &Path, args: &[&str]) -> Output {
    Command::new(ponder_program())
        .args(args)
        .env("PONDER_HOME", home)
        .env("HF_HOME", home.join("hub"))
        .output()
        .expect("ponder starts")
}

/// Runs `ponder`, which must succeed, and reads its JSON lines.
pub fn ponder_json(home: &Path, args: &[&str]) -> Vec<Value> {
    let output = ponder(home, args);
    assert!(
        output.status.success(),
        "ponder {args:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect()
}

/// The app's log in `home`.
pub fn log(home: &Path) -> String {
    let files = std::fs::read_dir(home.join("logs")).into_iter().flatten().flatten();
    files
        .filter_map(|file| std::fs::read_to_string(file.path()).ok())
        .collect()
}

/// Imports a chat with these turns into the history of `home`: a question, a thought, an answer. Empty thoughts are
/// omitted.
pub fn put_chat(home: &Path, title: &str, turns: &[[&str; 3]]) {
    put_chat_of(home, title, turns, "1970-01-01T00:00:00Z");
}

/// The same, last changed at this time (RFC 3339).
pub fn put_chat_of(home: &Path, title: &str, turns: &[[&str; 3]], time: &str) {
    let messages: Vec<Value> = turns
        .iter()
        .flat_map(|[question, thought, answer]| {
            let mut said = vec![json!({"type": "text", "text": answer})];
            if !thought.is_empty() {
                said.insert(0, json!({"type": "thinking", "thinking": thought}));
            }
            let asked = json!([{"type": "text", "text": question}]);
            [
                json!({"sender": "human", "content": asked}),
                json!({"sender": "assistant", "content": said}),
            ]
        })
        .collect();
    // Claude's export format is the shortest one that holds all of this.
    let chat = json!([{"uuid": title, "name": title, "created_at": time, "chat_messages": messages}]);
    let file = home.join("chat-to-import.json");
    std::fs::write(&file, chat.to_string()).expect("written");
    let taken = ponder(home, &["history", "import", file.to_str().expect("text")]);
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
}
