//! A conversation of LM Studio (`conversations/*.conversation.json`): messages in order, each in one or more versions
//! of which one is selected. A user's version is one step with `content`, an answer is several `steps` of content, some
//! of them thoughts. The next message follows the selected version.

use protocol::{Content, Role};
use serde_json::Value;

use super::times::{time, Times};
use super::{list, said, text, ImportedChat};
use crate::stamp::new_id;

/// A conversation; `None` if nobody says anything in it.
pub(super) fn chat(value: &Value, imported_at: i64) -> Option<ImportedChat> {
    let last_said = [value.get("assistantLastMessagedAt"), value.get("userLastMessagedAt")];
    let updated = last_said.into_iter().filter_map(time).max();
    let times = Times::new(time(value.get("createdAt")), updated, std::iter::empty(), imported_at);
    let mut chat = ImportedChat {
        title: text(value, "name").unwrap_or_default().to_owned(),
        created_at: times.created_at,
        updated_at: times.updated_at,
        pinned: value["pinned"] == true,
        ..ImportedChat::default()
    };
    chat.settings.system_prompt = text(value, "systemPrompt").unwrap_or_default().to_owned();
    let model = &value["lastUsedModel"];
    let model = text(model, "identifier").or(text(model, "indexedModelIdentifier"));
    let mut above: Option<String> = None;
    for (place, message) in value.get("messages")?.as_array()?.iter().enumerate() {
        let selected = message["currentlySelected"].as_u64().unwrap_or_default() as usize;
        let mut next = above.clone();
        for (version, value) in list(message, "versions").enumerate() {
            let Some((role, parts)) = content(value) else { continue };
            let own = new_id();
            let mut stored = said(own.clone(), above.clone(), role, parts, times.of_place(place));
            let by = text(&value["senderInfo"], "senderName").or(model);
            stored.model = by.filter(|_| role == Role::Assistant).map(str::to_owned);
            chat.messages.push(stored);
            if version == selected || next == above {
                next = Some(own);
            }
        }
        above = next;
    }
    chat.head = above;
    (!chat.messages.is_empty()).then_some(chat)
}

fn content(version: &Value) -> Option<(Role, Vec<Content>)> {
    let role = match version["role"].as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return None,
    };
    let mut parts = Vec::new();
    for block in std::iter::once(version).chain(list(version, "steps")) {
        let thinks = block["style"]["type"] == "thinking";
        for piece in list(block, "content") {
            let part = match (piece["type"].as_str(), thinks) {
                (Some("text"), true) => text(piece, "text").map(Content::thinking),
                (Some("text"), false) => text(piece, "text").map(Content::text),
                (Some("file"), _) => {
                    text(piece, "fileIdentifier").map(|name| Content::text(format!("[file: {name}]\n\n")))
                }
                _ => None,
            };
            part.into_iter().for_each(|part| Content::push(&mut parts, part));
        }
    }
    (!parts.is_empty()).then_some((role, parts))
}
