//! Reads the files of [`History::export_json`]: one chat, `{"format": "ponder-chat", …}`, or several, `{"format":
//! "ponder-chats", "chats": […]}`, with the folders that they lie in (`folders`).

use api::{ChatSettings, ChatSummary, StoredMessage};
use protocol::{Content, ImageBytes};
use serde::Deserialize;
use serde_json::Value;

use super::folders::ImportedFolder;
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
struct ExportedFolder {
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

/// The folders of an export of ours.
pub(super) fn folders(value: &Value) -> Result<Vec<ImportedFolder>> {
    let folders = value["folders"].as_array().map(Vec::as_slice).unwrap_or_default();
    folders.iter().map(folder).collect()
}

fn folder(value: &Value) -> Result<ImportedFolder> {
    let exported = ExportedFolder::deserialize(value)
        .map_err(|error| Error::Import(format!("a folder in it is not as Ponder writes it ({error})")))?;
    Ok(ImportedFolder {
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

fn chat(value: &Value) -> Result<ImportedChat> {
    let exported = Exported::deserialize(value)
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
        folder: exported.chat.folder,
        settings: exported.settings,
        draft: exported.draft,
        head: exported.head,
        messages: exported.messages,
        images: images
            .map(|(name, image)| (name, (image.media_type, image.base64)))
            .collect(),
    })
}
