//! A file of chats with any values: chats whose tree is whole, or an error, without a panic. tests/fuzz has the same for
//! cargo-fuzz. Each byte is a step of a JSON text, so that all files parse and most of them reach the readers.

use std::collections::HashSet;

use serde_json::{json, Map, Value};

/// The names that the readers of all programs look for.
const KEYS: &[&str] = &[
    "format",
    "version",
    "chat",
    "chats",
    "projects",
    "project",
    "messages",
    "files",
    "images",
    "settings",
    "draft",
    "head",
    "parts",
    "id",
    "parent",
    "role",
    "text",
    "type",
    "content",
    "state",
    "created_at",
    "updated_at",
    "title",
    "mapping",
    "message",
    "author",
    "create_time",
    "update_time",
    "current_node",
    "content_type",
    "thoughts",
    "metadata",
    "attachments",
    "is_visually_hidden_from_conversation",
    "chat_messages",
    "uuid",
    "sender",
    "parent_message_uuid",
    "thinking",
    "file_name",
    "extracted_content",
    "versions",
    "currentlySelected",
    "steps",
    "systemPrompt",
    "createdAt",
    "style",
    "name",
    "tool_call_id",
    "excerpt",
    "data",
];
const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "c",
    "ponder-chat",
    "ponder-chats",
    "user",
    "assistant",
    "system",
    "tool",
    "human",
    "text",
    "multimodal_text",
    "thoughts",
    "thinking",
    "tool_use",
    "tool_result",
    "image",
    "code",
    "execution_output",
    "done",
    "streaming",
    "singleStep",
    "multiStep",
    "contentBlock",
    "2026-01-01T00:00:00Z",
    "9999999999999",
    "\u{0}",
    "\u{202e}",
    "data:image/png;base64,AAAA",
];
const NUMBERS: &[f64] = &[0.0, 1.0, -1.0, 2.5, 1.7e9, 1.7e12, 9.3e18, -9.3e18, 1e300];

/// Nesting beyond which there are only plain values.
const DEEPEST: usize = 12;

/// One file.
pub fn run(data: &[u8]) {
    let mut steps = data.iter().copied();
    let inner = |steps: &mut dyn Iterator<Item = u8>| value(steps, 0);
    let whole = match steps.next().unwrap_or_default() % 6 {
        0 => {
            json!({"format": "ponder-chat", "version": 1, "chat": inner(&mut steps), "messages": [inner(&mut steps), inner(&mut steps)]})
        }
        1 => {
            json!({"format": "ponder-chats", "version": 1, "chats": [inner(&mut steps), inner(&mut steps)], "projects": [inner(&mut steps)]})
        }
        2 => {
            json!([{"title": "a", "current_node": "b", "mapping": {"a": inner(&mut steps), "b": inner(&mut steps), "c": inner(&mut steps)}}])
        }
        3 => json!([{"uuid": "a", "chat_messages": [inner(&mut steps), inner(&mut steps), inner(&mut steps)]}]),
        4 => {
            json!({"name": "a", "messages": [{"versions": [inner(&mut steps), inner(&mut steps)], "currentlySelected": inner(&mut steps)}]})
        }
        _ => inner(&mut steps),
    };
    let Ok(file) = history::read_import(whole.to_string().as_bytes()) else {
        return;
    };
    assert!(!file.chats.is_empty());
    for chat in &file.chats {
        let mut known = HashSet::new();
        for message in &chat.messages {
            let parent = message.parent.as_ref();
            assert!(
                parent.is_none_or(|parent| known.contains(parent)),
                "a parent comes first"
            );
            assert!(known.insert(message.id.clone()), "an id is used once");
        }
        assert!(
            chat.head.as_ref().is_none_or(|head| known.contains(head)),
            "the head is here"
        );
        assert!(chat.updated_at >= chat.created_at && !chat.title.contains('\n'));
    }
}

/// The value that the next bytes stand for. The end of them is `null`.
fn value(steps: &mut dyn Iterator<Item = u8>, depth: usize) -> Value {
    let Some(step) = steps.next() else {
        return Value::Null;
    };
    let count = usize::from(step >> 3) % 7;
    let word = |words: &[&str], step: Option<u8>| words[usize::from(step.unwrap_or_default()) % words.len()].to_owned();
    match step % 8 {
        0..=2 if depth < DEEPEST => {
            let mut object = Map::new();
            for _ in 0..count {
                let key = word(KEYS, steps.next());
                object.insert(key, value(steps, depth + 1));
            }
            object.into()
        }
        3 if depth < DEEPEST => (0..count).map(|_| value(steps, depth + 1)).collect(),
        4 => NUMBERS[count].into(),
        5 => (count > 2).into(),
        6 => Value::Null,
        _ => word(TEXTS, steps.next()).into(),
    }
}
