//! The screenshots of README.md: a chat with Pebble and the Models window, light and dark. `./dev pictures --readme`
//! writes them into `ui/screenshots`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::images_window::invoke;
use crate::support::driver::Window;
use crate::support::put_chat_of;
use crate::window::set_thinking;

/// The themes and the ends of their files' names.
const THEMES: [(&str, &str); 2] = [("light", ""), ("dark", "-dark")];

/// The memory of an ordinary laptop, on which the fit of models does not depend on the computer that takes the
/// screenshots.
const MEMORY: &str = "17179869184";

/// Chats that fill the list, oldest first.
const OTHERS: [&str; 5] = [
    "Rent contract, questions for Monday",
    "Regular expressions for dates",
    "Sourdough starter, week two",
    "Unit tests for the parser",
    "A week in Lisbon",
];

/// Messages that Pebble answers with a thought, with code and with a table.
const MESSAGES: [&str; 3] = [
    "What is 347 + 589?",
    "Write FizzBuzz in Rust",
    "Make a table of the squares from 1 to 4",
];

/// The time so many days ago (RFC 3339).
fn days_ago(days: u32) -> String {
    let date = Command::new("date")
        .args(["-u", "-d", &format!("{days} days ago"), "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .expect("date starts");
    String::from_utf8(date.stdout).expect("text").trim().to_owned()
}

/// Takes both screenshots in one theme.
fn photograph(folder: &Path, theme: &str, ending: &str) {
    let home = tempfile::tempdir().expect("a folder");
    for (title, days) in OTHERS.iter().zip([9, 4, 3, 1, 0]) {
        put_chat_of(home.path(), title, &[[title, "", "Done."]], &days_ago(days));
    }
    let window = Window::open_with(home.path(), &[("PONDER_MEMORY_LIMIT", MEMORY)]);
    let change = json!({"appearance": {"theme": theme}, "language": "en"});
    invoke(&window, "change_settings", json!({"change": change}));
    set_thinking(&window, true);
    for (answers, message) in MESSAGES.iter().enumerate() {
        window.ask(message);
        window.wait_until("it is answered", || {
            window.count("message-assistant") == answers as u64 + 1 && window.answer_state() == "complete"
        });
    }
    assert_eq!(
        window.attribute("thought", "data-open"),
        "false",
        "the newest thought is folded"
    );
    window.image_in(folder, &format!("chat{ending}"));

    invoke(&window, "open_window", json!({"name": "models"}));
    window.switch_to_window("models");
    window.wait_until("it says what fits", || window.count("fit") >= 3);
    window.image_in(folder, &format!("models{ending}"));
    window.close();
}

#[test]
#[ignore = "it writes the screenshots of README.md; ./dev pictures --readme runs it"]
fn the_readme_has_screenshots() {
    let folder = std::env::var_os("PONDER_PICTURES").map(PathBuf::from);
    let folder = folder.expect("PONDER_PICTURES names a folder; ./dev pictures --readme sets it");
    for (theme, ending) in THEMES {
        photograph(&folder, theme, ending);
    }
}
