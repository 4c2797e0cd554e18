//! The chats of the screenshots: all of Markdown, long and wide ones, both writing directions, titles of all lengths.
//! Long texts are in `answers`.

use std::fs;
use std::path::Path;

use serde_json::{json, Value};

use crate::support::ponder;

const MARKDOWN: &str = include_str!("answers/markdown.md");
const CODE: &str = include_str!("answers/code.md");
const MATHEMATICS: &str = include_str!("answers/mathematics.md");
const DIAGRAM: &str = include_str!("answers/diagrams.md");
const BROKEN_DIAGRAM: &str = include_str!("answers/broken-diagram.md");
const TABLES: &str = include_str!("answers/tables.md");
const ARABIC: &str = include_str!("answers/arabic.md");
const ARTIFACTS: &str = include_str!("answers/artifacts.md");
const THOUGHT: &str = include_str!("answers/thought.md");

fn chat(title: &str, day: &str, turns: &[[&str; 3]]) -> Value {
    let at = format!("{day}T10:00:00Z");
    let messages: Vec<Value> = turns
        .iter()
        .flat_map(|[question, thought, answer]| {
            let mut said = vec![json!({"type": "text", "text": answer})];
            if !thought.is_empty() {
                said.insert(0, json!({"type": "thinking", "thinking": thought}));
            }
            [
                json!({"sender": "human", "content": [{"type": "text", "text": question}], "created_at": at}),
                json!({"sender": "assistant", "content": said, "created_at": at}),
            ]
        })
        .collect();
    json!({"uuid": title, "name": title, "created_at": at, "updated_at": at, "chat_messages": messages})
}

/// Imports the chats into the history of `home`.
pub fn put(home: &Path) {
    let long: Vec<[String; 3]> = (1..=30)
        .map(|mile| {
            [
                format!("What is there at mile {mile}?"),
                String::new(),
                format!(
                    "At mile {mile} there is a **café** near Besançon, with a view of the river, and a bench. It is {} miles to the end.",
                    30 - mile
                ),
            ]
        })
        .collect();
    let long: Vec<[&str; 3]> = long.iter().map(|turn| turn.each_ref().map(String::as_str)).collect();
    let squares: String = (1..=300).map(|n| format!("| {n} | {} |\n", n * n)).collect();
    let table = format!("| n | square |\n|--:|--:|\n{squares}");
    let plain = format!("Before it.\n\n{}", "**word** ".repeat(2500));
    let code = format!("```rust\n{}```\n", "let number = 12345;\n".repeat(3100));
    let question = "When does the tide turn, and which ferry is the last?";
    let chats = [
        chat("Markdown", "2026-11-20", &[[question, THOUGHT, MARKDOWN]]),
        chat(
            "Code",
            "2026-11-19",
            &[[
                "How are squares computed?\n\nIn *Rust*, please, and in a shell: `for n in …`.",
                "",
                CODE,
            ]],
        ),
        chat(
            "Mathematics",
            "2026-11-18",
            &[["What is the quadratic formula?", "", MATHEMATICS]],
        ),
        chat(
            "Diagrams",
            "2026-11-17",
            &[["Draw it.", "", DIAGRAM], ["Draw it wrongly.", "", BROKEN_DIAGRAM]],
        ),
        chat(
            "Tides",
            "2026-11-16",
            &[
                ["Write a page about tides.", "", ARTIFACTS],
                ["Once more, with a moon.", "", ARTIFACTS],
            ],
        ),
        chat(
            "Tables",
            "2026-11-16",
            &[["Make a table of the squares from 1 to 3, and one of towns.", "", TABLES]],
        ),
        chat(
            "رحلة إلى البحر",
            "2026-11-15",
            &[[
                "متى يتحول المد، وأي عبّارة هي الأخيرة؟",
                "يسأل عن **أمرين**: المد والعبّارة.",
                ARABIC,
            ]],
        ),
        chat("A walk along the coast", "2026-10-02", &long),
        chat("Three hundred squares", "2026-10-02", &[["List them.", "", &table]]),
        chat("Too many words", "2026-10-02", &[["Say it.", "", &plain]]),
        chat("Too much code", "2026-10-02", &[["Write it.", "", &code]]),
        chat("Sourdough", "2026-10-01", &[["How long?", "", "A night."]]),
        chat(
            "Letter to the landlord",
            "2026-09-12",
            &[["Write it.", "", "Dear landlord, …"]],
        ),
        chat(
            "A title that is much longer than the sidebar is wide, because somebody wrote a whole sentence into it",
            "2026-09-11",
            &[["Why?", "", "Because."]],
        ),
        chat(
            "OneWordThatIsLongerThanTheSidebarIsWideAndHasNoPlaceToBreak",
            "2026-09-10",
            &[["Why?", "", "Because."]],
        ),
    ];
    let file = home.join("chats-to-look-at.json");
    fs::write(&file, Value::from(chats.to_vec()).to_string()).expect("written");
    let taken = ponder(home, &["history", "import", file.to_str().expect("text")]);
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
}
