//! Reads the files of [`History::export_json`]: one chat, `{"format": "ponder-chat", …}`, or several, `{"format":
//! "ponder-chats", "chats": […]}`, with the projects that they lie in (`projects`).

use api::{ChatSettings, ChatSummary, StoredMessage};
use protocol::Content;
use serde::Deserialize;
use serde_json::Value;

use super::projects::{ImportedAttachment, ImportedProject};
use super::{list, ImportedChat};
use crate::{Error, Result};

/// The latest version of the shape that is known.
const VERSION: u64 = 1;

#[derive(Deserialize)]
struct Exported {
    version: u64,
    chat: ChatSummary,
    #[serde(default)]
    settings: ChatSettings,
    #[serde(default)]
    draft: Vec<Content>,
    head: Option<String>,
    messages: Vec<StoredMessage>,
    #[serde(default)]
    attachments: std::collections::BTreeMap<String, ImportedAttachment>,
}

/// The projects of an export of ours.
pub(super) fn projects(value: &Value) -> Result<Vec<ImportedProject>> {
    // Earlier exports call them folders.
    let key = if value.get("projects").is_some() {
        "projects"
    } else {
        "folders"
    };
    list(value, key).map(project).collect()
}

fn project(value: &Value) -> Result<ImportedProject> {
    ImportedProject::deserialize(value)
        .map_err(|error| Error::Import(format!("a folder in it is not as Ponder writes it ({error})")))
}

/// The chats of an export of ours.
pub(super) fn chats(mut value: Value) -> Result<Vec<ImportedChat>> {
    match value["format"].as_str() {
        Some("ponder-chat") => Ok(vec![chat(value)?]),
        // Chats leave the file one by one, so that their images are not in memory twice.
        Some("ponder-chats") => match value.get_mut("chats").map(Value::take) {
            Some(Value::Array(chats)) => chats.into_iter().map(chat).collect(),
            _ => Ok(Vec::new()),
        },
        _ => Err(Error::Import("it is of a format that is not known here".into())),
    }
}

/// Renames what earlier exports call otherwise: the project of a chat, and compaction marks.
fn with_present_names(mut value: Value) -> Value {
    let rename = |value: &mut Value, old: &str, new: &str| {
        if let Some(fields) = value.as_object_mut() {
            if let Some(field) = fields.remove(old) {
                fields.insert(new.into(), field);
            }
        }
    };
    if let Some(chat) = value.get_mut("chat") {
        rename(chat, "folder", "project");
    }
    for message in value
        .get_mut("messages")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        rename(message, "memory_cut", "compaction_mark");
    }
    value
}

fn chat(value: Value) -> Result<ImportedChat> {
    let exported = Exported::deserialize(with_present_names(value))
        .map_err(|error| Error::Import(format!("a chat in it is not as Ponder writes it ({error})")))?;
    if exported.version > VERSION {
        let newer = "it was written by a newer version of Ponder. Please update";
        return Err(Error::Import(newer.into()));
    }
    let images = exported.attachments.into_iter();
    Ok(ImportedChat {
        id: Some(exported.chat.id).filter(|id| !id.is_empty()),
        title: exported.chat.title,
        created_at: exported.chat.created_at,
        updated_at: exported.chat.updated_at,
        pinned: exported.chat.pinned,
        archived: exported.chat.archived,
        project: exported.chat.project,
        // A file switches no tool on.
        settings: ChatSettings {
            tools: Vec::new(),
            ..exported.settings
        },
        draft: exported.draft,
        head: exported.head,
        messages: exported.messages,
        images: images
            .map(|(name, image)| (name, (image.media_type, image.base64)))
            .collect(),
        dropped_images: 0,
    })
}
