//! A damaged history on the command line: every command says so, and `ponder history repair` asks before it repairs.

use std::fs;
use std::path::Path;

use serde_json::{json, Value};

use crate::support::{run, run_json};

const CHATS: usize = 12;

/// A history with chats, each of two messages.
fn filled(home: &Path) -> Vec<u8> {
    let chat = |number: usize| {
        json!({"uuid": format!("chat-{number}"), "name": format!("Chat {number}"), "created_at": "2026-01-02T10:00:00Z",
               "chat_messages": [
                   {"uuid": "q", "sender": "human", "text": "What is tea?", "created_at": "2026-01-02T10:00:00Z"},
                   {"uuid": "a", "sender": "assistant", "text": "Leaves and water. ".repeat(100), "created_at": "2026-01-02T10:00:01Z"}]})
    };
    let chats: Vec<Value> = (0..CHATS).map(chat).collect();
    let file = home.join("conversations.json");
    fs::write(&file, json!(chats).to_string()).unwrap();
    assert!(run(home, &["history", "import", file.to_str().unwrap()])
        .status
        .success());
    fs::read(home.join("history.sqlite")).unwrap()
}

fn listed(home: &Path) -> usize {
    run_json(home, &["history", "--json"])[0]["chats"]
        .as_array()
        .unwrap()
        .len()
}

#[test]
fn nothing_is_replaced_before_yes_and_a_script_hears_of_the_damage() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut bytes = filled(home);
    let history = home.join("history.sqlite");
    let sound = run(home, &["history", "repair"]);
    assert_eq!(sound.status.code(), Some(0), "{sound:?}");
    assert!(String::from_utf8_lossy(&sound.stdout).contains("not damaged"));

    bytes[..100].fill(0);
    fs::write(&history, &bytes).unwrap();
    for arguments in [&["history"][..], &["history", "search", "tea"], &["history", "repair"]] {
        let refused = run(home, arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}: {refused:?}");
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(told.contains("ponder history repair"), "{arguments:?}: {told}");
        assert_eq!(
            fs::read(&history).unwrap(),
            bytes,
            "{arguments:?} changed the damaged file"
        );
    }
    let figures = run(home, &["history", "repair"]);
    assert!(String::from_utf8_lossy(&figures.stdout)
        .contains("It had 12 chats, and 12 chats with 24 messages can be recovered"));

    let repaired = run_json(home, &["history", "repair", "--yes", "--json"]);
    assert_eq!(
        repaired[0]["repaired"]["contents"],
        json!({"chats": CHATS, "messages": 2 * CHATS})
    );
    assert_eq!(listed(home), CHATS);
    let aside = repaired[0]["repaired"]["set_aside"].as_str().unwrap();
    assert_eq!(fs::read(aside).unwrap(), bytes);
}

#[test]
fn a_damaged_file_that_was_set_aside_can_be_tried_again() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut bytes = filled(home);
    let history = home.join("history.sqlite");
    bytes[..100].fill(0);
    fs::write(&history, &bytes).unwrap();
    let repaired = run_json(home, &["history", "repair", "--yes", "--json"]);
    let aside = repaired[0]["repaired"]["set_aside"].as_str().unwrap().to_owned();
    fs::remove_file(&history).unwrap();
    assert_eq!(listed(home), 0);
    let added = run_json(home, &["history", "repair", "--json", &aside]);
    assert_eq!(added[0]["added"], json!({"chats": CHATS, "messages": 2 * CHATS}));
    assert_eq!(listed(home), CHATS);
    let nothing_new = run_json(home, &["history", "repair", "--json", &aside]);
    assert_eq!(nothing_new[0]["added"], json!({"chats": 0, "messages": 0}));
}
