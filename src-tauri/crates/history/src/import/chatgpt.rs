//! ChatGPT's `conversations.json`: a list of conversations, each a tree of nodes by their ids (`mapping`) of which
//! `current_node` is the end that is looked at. Nodes without a message, and messages that are hidden, have no row
//! here: who answered them answers what stands above.

use std::collections::HashMap;

use protocol::{Content, Role};
use serde_json::Value;

use super::times::{time, Times};
use super::{list, said, text, ImportedChat};
use crate::stamp::new_id;

/// A conversation; `None` if nobody says anything in it.
pub(super) fn chat(value: &Value, imported_at: i64) -> Option<ImportedChat> {
    let nodes = value.get("mapping")?.as_object()?;
    let times = Times::new(
        time(value.get("create_time")),
        time(value.get("update_time")),
        nodes
            .values()
            .filter_map(|node| time(node["message"].get("create_time"))),
        imported_at,
    );
    // From the roots down, so that parents come first; a cycle has no root and is never reached.
    let mut children: HashMap<Option<&str>, Vec<&str>> = HashMap::new();
    for (id, node) in nodes {
        let parent = node["parent"].as_str().filter(|parent| nodes.contains_key(*parent));
        children.entry(parent).or_default().push(id);
    }
    let age = |id: &&str| time(nodes[*id]["message"].get("create_time")).unwrap_or(i64::MIN);
    for below in children.values_mut() {
        below.sort_by_key(age);
    }
    let mut chat = ImportedChat {
        id: text(value, "conversation_id").or(text(value, "id")).map(str::to_owned),
        title: text(value, "title").unwrap_or_default().to_owned(),
        created_at: times.created_at,
        updated_at: times.updated_at,
        archived: value["is_archived"] == true,
        pinned: value["is_starred"] == true,
        ..ImportedChat::default()
    };
    // Of each node the row that stands for it: its own, or the nearest above.
    let mut rows: HashMap<&str, Option<String>> = HashMap::new();
    let below = |parent| children.get(&parent).into_iter().flatten().rev().copied();
    let mut open: Vec<(Option<String>, &str)> = below(None).map(|id| (None, id)).collect();
    while let Some((above, id)) = open.pop() {
        let message = &nodes[id]["message"];
        let row = match content(message) {
            Some((role, parts)) => {
                let own = new_id();
                let at = times.of_message(time(message.get("create_time")), chat.messages.len());
                let mut stored = said(own.clone(), above, role, parts, at);
                let model = text(&message["metadata"], "model_slug").filter(|_| role == Role::Assistant);
                stored.model = model.map(str::to_owned);
                chat.messages.push(stored);
                Some(own)
            }
            None => above,
        };
        rows.insert(id, row.clone());
        open.extend(below(Some(id)).map(|child| (row.clone(), child)));
    }
    let head = value["current_node"].as_str().and_then(|id| rows.remove(id));
    chat.head = head.flatten();
    (!chat.messages.is_empty()).then_some(chat)
}

/// The role and the content of a message; `None` for hidden ones.
fn content(message: &Value) -> Option<(Role, Vec<Content>)> {
    let role = match message["author"]["role"].as_str()? {
        "user" => Role::User,
        "assistant" | "tool" => Role::Assistant,
        _ => return None,
    };
    if message["metadata"]["is_visually_hidden_from_conversation"] == true {
        return None;
    }
    let content = &message["content"];
    let mut parts = Vec::new();
    match content["content_type"].as_str()? {
        "thoughts" => {
            for thought in content["thoughts"].as_array()? {
                let words = format!("{}\n\n", text(thought, "content")?);
                Content::push(&mut parts, Content::thinking(words));
            }
        }
        "code" | "execution_output" => {
            parts.push(Content::text(format!("```\n{}\n```", text(content, "text")?)));
        }
        _ => {
            for part in list(content, "parts") {
                let words = match part {
                    Value::String(words) => Some(words.as_str()),
                    // Its bytes lie in another file of the export.
                    part if part["content_type"] == "image_asset_pointer" => Some("[image]\n\n"),
                    part => text(part, "text"),
                };
                words
                    .into_iter()
                    .for_each(|words| Content::push(&mut parts, Content::text(words)));
            }
        }
    }
    let says = parts
        .iter()
        .any(|part| part.growing_text().is_some_and(|text| !text.trim().is_empty()));
    says.then_some((role, parts))
}
