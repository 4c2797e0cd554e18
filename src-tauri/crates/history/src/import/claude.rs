//! Claude's `conversations.json`: a list of conversations with their messages in order (`chat_messages`), each `human`
//! or `assistant`, with its words in `content` or, in older exports, in `text` alone. Newer ones name the message above
//! (`parent_message_uuid`).

use std::collections::HashMap;

use protocol::{Content, Role};
use serde_json::Value;

use super::times::{time, Times};
use super::{list, said, text, ImportedChat};
use crate::stamp::new_id;

/// A conversation; `None` if nobody says anything in it.
pub(super) fn chat(value: &Value, imported_at: i64) -> Option<ImportedChat> {
    let times = Times::new(
        time(value.get("created_at")),
        time(value.get("updated_at")),
        list(value, "chat_messages").filter_map(|message| time(message.get("created_at"))),
        imported_at,
    );
    let mut chat = ImportedChat {
        id: text(value, "uuid").map(str::to_owned),
        title: text(value, "name").unwrap_or_default().to_owned(),
        created_at: times.created_at,
        updated_at: times.updated_at,
        ..ImportedChat::default()
    };
    let mut rows: HashMap<&str, Option<String>> = HashMap::new();
    let mut last: Option<String> = None;
    for message in value.get("chat_messages")?.as_array()? {
        let above = match text(message, "parent_message_uuid") {
            Some(parent) => rows.get(parent).cloned().flatten(),
            None => last.clone(),
        };
        let row = match content(message) {
            Some((role, parts)) => {
                let own = new_id();
                let at = times.of_message(time(message.get("created_at")), chat.messages.len());
                chat.messages.push(said(own.clone(), above, role, parts, at));
                Some(own)
            }
            None => above,
        };
        if let Some(id) = text(message, "uuid") {
            rows.insert(id, row.clone());
        }
        last = row;
    }
    chat.head = last;
    (!chat.messages.is_empty()).then_some(chat)
}

fn content(message: &Value) -> Option<(Role, Vec<Content>)> {
    let role = match message["sender"].as_str()? {
        "human" => Role::User,
        "assistant" => Role::Assistant,
        _ => return None,
    };
    let mut parts = Vec::new();
    for attached in list(message, "attachments") {
        let name = text(attached, "file_name").unwrap_or("file");
        if let Some(words) = text(attached, "extracted_content") {
            let quoted = format!("[file: {name}]\n\n```\n{words}\n```\n\n");
            Content::push(&mut parts, Content::text(quoted));
        }
    }
    for file in list(message, "files") {
        if let Some(name) = text(file, "file_name") {
            Content::push(&mut parts, Content::text(format!("[file: {name}]\n\n")));
        }
    }
    let mut said = false;
    for block in list(message, "content") {
        let part = match block["type"].as_str() {
            Some("text") => text(block, "text").map(Content::text),
            Some("thinking") => text(block, "thinking").map(Content::thinking),
            _ => None,
        };
        said |= part.is_some();
        part.into_iter().for_each(|part| Content::push(&mut parts, part));
    }
    if !said {
        let words = text(message, "text").map(Content::text);
        words.into_iter().for_each(|words| Content::push(&mut parts, words));
    }
    (!parts.is_empty()).then_some((role, parts))
}
