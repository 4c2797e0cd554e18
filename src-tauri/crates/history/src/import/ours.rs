//! Reads the files of [`History::export_json`]: one chat, `{"format": "ponder-chat", …}`, or several, `{"format":
//! "ponder-chats", "chats": […]}`, with the projects that they lie in (`projects`).

use api::{ChatSettings, ChatSummary, StoredMessage};
use protocol::{Content, ImageBytes};
use serde::Deserialize;
use serde_json::Value;

use super::projects::ImportedProject;
use super::ImportedChat;
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
    attachments: std::collections::BTreeMap<String, Image>,
}

#[derive(Deserialize)]
struct Image {
    media_type: String,
    base64: ImageBytes,
}

#[derive(Deserialize)]
struct ExportedProject {
    id: String,
    name: String,
    #[serde(default)]
    system_prompt: String,
    created_at: i64,
    #[serde(default)]
    files: Vec<Content>,
    #[serde(default)]
    attachments: std::collections::BTreeMap<String, Image>,
}

/// The projects of an export of ours.
pub(super) fn projects(value: &Value) -> Result<Vec<ImportedProject>> {
    // Earlier exports call them folders.
    let projects = value.get("projects").unwrap_or(&value["folders"]);
    let projects = projects.as_array().map(Vec::as_slice).unwrap_or_default();
    projects.iter().map(project).collect()
}

fn project(value: &Value) -> Result<ImportedProject> {
    let exported = ExportedProject::deserialize(value)
        .map_err(|error| Error::Import(format!("a folder in it is not as Ponder writes it ({error})")))?;
    Ok(ImportedProject {
        id: exported.id,
        name: exported.name,
        system_prompt: exported.system_prompt,
        created_at: exported.created_at,
        files: exported.files,
        texts: exported
            .attachments
            .into_iter()
            .map(|(name, text)| (name, text.base64))
            .collect(),
    })
}

/// The chats of an export of ours.
pub(super) fn chats(value: &Value) -> Result<Vec<ImportedChat>> {
    match value["format"].as_str() {
        Some("ponder-chat") => Ok(vec![chat(value)?]),
        Some("ponder-chats") => {
            let chats = value["chats"].as_array().map(Vec::as_slice).unwrap_or_default();
            chats.iter().map(chat).collect()
        }
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
    let messages = value.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        rename(message, "memory_cut", "compaction_mark");
    }
    value
}

fn chat(value: &Value) -> Result<ImportedChat> {
    let exported = Exported::deserialize(with_present_names(value.clone()))
        .map_err(|error| Error::Import(format!("a chat in it is not as Ponder writes it ({error})")))?;
    if exported.version > VERSION {
        return Err(Error::Import(
            "it was written by a newer version of Ponder. Please update".into(),
        ));
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
        settings: exported.settings,
        draft: exported.draft,
        head: exported.head,
        messages: exported.messages,
        images: images
            .map(|(name, image)| (name, (image.media_type, image.base64)))
            .collect(),
    })
}
