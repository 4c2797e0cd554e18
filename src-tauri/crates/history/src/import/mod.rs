//! Chats from files: our own exports, and those of other programs, some of which come as ZIP archives.
//!
//! A file is read whole into [`ImportedChats`] before anything is stored, so that one that is broken changes nothing;
//! then each chat is stored in a transaction of its own.

mod archive;
mod chatgpt;
mod claude;
mod json_text;
mod limits;
mod lm_studio;
mod ours;
mod projects;
mod times;

use std::collections::{BTreeMap, HashMap, HashSet};

use api::{AnswerState, ChatSettings, ImportReport, Part, StoredMessage};
use protocol::{Content, FinishReason, ImageBytes, Role};
use serde_json::Value;
use sqlx::SqliteConnection;

use self::archive::LONGEST_UNFOLDED;
use self::json_text::{unmarked, JsonText};
use self::limits::{believed, one_line};
use self::projects::ImportedProject;
use crate::chats::branches::set_head;
use crate::json::{to_json, to_word};
use crate::messages::parts::insert_parts;
use crate::stamp::new_id;
use crate::{now, Error, History, Result};

/// The longest file that is read, in bytes.
pub const LONGEST_IMPORT: u64 = 1 << 30;
/// The most chats of one file.
const MOST_CHATS: usize = 100_000;
/// The most messages of one chat.
const MOST_MESSAGES: usize = 100_000;
/// The longest title, in characters.
const LONGEST_TITLE: usize = 300;
/// Chats or projects that are stored in one transaction. Each transaction waits for the disk, and other writers wait for it.
const BATCH: usize = 25;

/// Which program wrote a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportFormat {
    /// Ponder.
    Ponder,
    /// ChatGPT's `conversations.json`.
    ChatGpt,
    /// Claude's `conversations.json`.
    Claude,
    /// A conversation of LM Studio.
    LmStudio,
}

/// The chats of a file.
#[derive(Debug)]
pub struct ImportedChats {
    /// The program that wrote it.
    pub format: ImportFormat,
    /// In the order of the file.
    pub chats: Vec<ImportedChat>,
    /// The projects that they lie in.
    pub projects: Vec<ImportedProject>,
}

/// A chat of a file.
#[derive(Debug, Default)]
pub struct ImportedChat {
    /// Its id, if the file has one that stays the same from one export to the next.
    pub id: Option<String>,
    /// Its title.
    pub title: String,
    /// Unix milliseconds.
    pub created_at: i64,
    /// Unix milliseconds.
    pub updated_at: i64,
    /// True if it is pinned.
    pub pinned: bool,
    /// True if it is archived.
    pub archived: bool,
    /// The project it lies in, if that is here.
    pub project: Option<String>,
    /// Its settings.
    pub settings: ChatSettings,
    /// The unsent question.
    pub draft: Vec<Content>,
    /// The end of the branch that is looked at.
    pub head: Option<String>,
    /// Parents before children.
    pub messages: Vec<StoredMessage>,
    /// Images by the names that messages have for them. A message whose image is missing has its name instead.
    pub images: BTreeMap<String, (String, ImageBytes)>,
    /// Images that were taken out because they cannot be shown.
    pub dropped_images: usize,
}

/// Refuses what holds no chats by how it begins, so that a long file, or one that never ends, need not be read for
/// that. `beginning` is a kilobyte of the file or more, or all of it.
///
/// # Errors
/// [`Error::Import`] with a sentence that says what is wrong with it.
pub fn check_import_beginning(beginning: &[u8]) -> Result<()> {
    match unmarked(beginning).trim_ascii_start().first() {
        None => Err(Error::Import("there is nothing in it".into())),
        Some(b'{' | b'[') => Ok(()),
        Some(_) if archive::is_archive(beginning) => Ok(()),
        Some(_) => Err(Error::Import("it is neither JSON nor a ZIP archive".into())),
    }
}

/// Reads the chats of a file.
///
/// # Errors
/// [`Error::Import`] with a sentence that says what is wrong with it.
pub fn read_import(file: &[u8]) -> Result<ImportedChats> {
    let refuse = |reason: &'static str| Err(Error::Import(reason.into()));
    check_import_beginning(file)?;
    if file.len() as u64 > LONGEST_IMPORT {
        return refuse("it is longer than 1 GB");
    }
    let value = match archive::is_archive(file) {
        true => archive::conversations(file, LONGEST_UNFOLDED)?,
        false => JsonText::default().parse(file, || "it is no JSON".into())?,
    };
    let entries = match &value {
        Value::Array(entries) => entries.as_slice(),
        one => std::slice::from_ref(one),
    };
    if entries.len() > MOST_CHATS {
        return refuse("it holds more than 100,000 chats");
    }
    let has = |key: &str| entries.iter().any(|entry| entry.get(key).is_some());
    // One time for all chats of a file, so that those without dates keep their order.
    let imported_at = now();
    let of_entries = |chat: fn(&Value, i64) -> Option<ImportedChat>| {
        let chats = entries.iter().filter_map(|entry| chat(entry, imported_at));
        chats.collect()
    };
    let mut projects = Vec::new();
    let (format, chats): (_, Vec<ImportedChat>) = if has("format") {
        projects = ours::projects(&value)?;
        (ImportFormat::Ponder, ours::chats(value)?)
    } else if has("mapping") {
        (ImportFormat::ChatGpt, of_entries(chatgpt::chat))
    } else if has("chat_messages") {
        (ImportFormat::Claude, of_entries(claude::chat))
    } else if has("messages") {
        (ImportFormat::LmStudio, of_entries(lm_studio::chat))
    } else {
        return refuse("it is no export of Ponder, ChatGPT, Claude or LM Studio");
    };
    if chats.is_empty() {
        return refuse("there is no chat in it");
    }
    if chats.len() > MOST_CHATS || chats.iter().any(|chat| chat.messages.len() > MOST_MESSAGES) {
        return refuse("it holds more than 100,000 chats, or a chat of more than 100,000 messages");
    }
    Ok(ImportedChats {
        format,
        chats: chats.into_iter().map(ImportedChat::checked).collect(),
        projects,
    })
}

impl ImportedChat {
    /// The chat as it can be stored: times that are believed, a title of a line, a tree without gaps and cycles.
    fn checked(mut self) -> Self {
        self.created_at = believed(self.created_at);
        self.updated_at = believed(self.updated_at).max(self.created_at);
        self.title = one_line(&self.title, LONGEST_TITLE);
        let mut known: HashSet<String> = HashSet::new();
        let mut calls: HashSet<String> = HashSet::new();
        let mut previous: Option<String> = None;
        self.messages.retain_mut(|message| {
            if !known.insert(message.id.clone()) {
                return false;
            }
            // Whatever the file says: a parent comes before its children, so there is no cycle.
            let lost = |parent: &String| !known.contains(parent) || *parent == message.id;
            if message.parent.as_ref().is_some_and(lost) {
                message.parent = previous.clone();
            }
            message.tool_call_id = message.tool_call_id.take().filter(|call| calls.insert(call.clone()));
            if message.state == AnswerState::Streaming {
                message.state = AnswerState::Interrupted;
            }
            message.created_at = believed(message.created_at);
            message.finished_at = message.finished_at.map(believed);
            for part in &mut message.parts {
                (part.started_at, part.ended_at) = (believed(part.started_at), believed(part.ended_at));
            }
            previous = Some(message.id.clone());
            true
        });
        let ended = self.head.take().filter(|head| known.contains(head));
        self.head = ended.or_else(|| self.messages.last().map(|message| message.id.clone()));
        self
    }
}

impl History {
    /// Stores the chats of a file, and their projects. Chats that exist already by their id, in the trash too, are left
    /// as they are.
    pub async fn import(&self, file: ImportedChats) -> Result<ImportReport> {
        let mut outcome = ImportReport::default();
        let mut projects = file.projects;
        for batch in projects.chunks_mut(BATCH) {
            for project in &mut *batch {
                project.keep_texts(self).await?;
            }
            let mut transaction = self.write().await?;
            for project in batch {
                project.store(&mut transaction).await?;
            }
            transaction.commit().await?;
        }
        let mut chats = file.chats;
        for batch in chats.chunks_mut(BATCH) {
            for chat in &mut *batch {
                // The transaction decides if it is new; a chat that is known to be here already stores no images before.
                if !self.has_chat(chat).await? {
                    self.import_images(chat).await?;
                }
            }
            let mut transaction = self.write().await?;
            for chat in batch {
                let count = chat.messages.len();
                match import_chat(&mut transaction, chat).await? {
                    true => {
                        outcome.chats += 1;
                        outcome.messages += count;
                        outcome.dropped_images += chat.dropped_images;
                    }
                    false => outcome.already_here += 1,
                }
            }
            transaction.commit().await?;
        }
        Ok(outcome)
    }

    /// True if a chat is here already by its id.
    async fn has_chat(&self, chat: &ImportedChat) -> Result<bool> {
        let Some(id) = &chat.id else { return Ok(false) };
        let here: Option<i64> = value!(&self.readers, "SELECT 1 FROM chats WHERE id = ?"; id).await?;
        Ok(here.is_some())
    }

    /// Keeps the images and the texts of files of a chat and lets its messages name them as they are kept; one
    /// without a file becomes its name.
    async fn import_images(&self, chat: &mut ImportedChat) -> Result<()> {
        let mut kept: HashMap<String, String> = HashMap::new();
        let parts = chat.messages.iter().flat_map(|message| &message.parts);
        for content in parts.map(|part| &part.content).chain(&chat.draft) {
            let (Content::Image { attachment, .. } | Content::File { attachment, .. }) = content else {
                continue;
            };
            let Some((media_type, bytes)) = chat.images.get(attachment) else {
                continue;
            };
            let name = match content {
                Content::Image { width, height, .. } => {
                    self.add_attachment(bytes, media_type, (*width, *height)).await?.sha256
                }
                _ => self.add_text(String::from_utf8_lossy(bytes).into_owned()).await?,
            };
            kept.insert(attachment.clone(), name);
        }
        let rename = |content: &mut Content| {
            if let Content::Image { attachment, .. } | Content::File { attachment, .. } = content {
                match kept.get(attachment) {
                    Some(name) => attachment.clone_from(name),
                    None => *content = Content::text(content.as_text().unwrap_or_default()),
                }
            }
        };
        for message in &mut chat.messages {
            message.parts.iter_mut().for_each(|part| rename(&mut part.content));
        }
        chat.draft.iter_mut().for_each(rename);
        Ok(())
    }
}

/// Stores a chat with its messages; returns whether it is new.
async fn import_chat(db: &mut SqliteConnection, chat: &mut ImportedChat) -> Result<bool> {
    let id = chat.id.take().unwrap_or_else(new_id);
    if !insert_chat(db, &id, chat).await? {
        return Ok(false);
    }
    let ids: Vec<&str> = chat.messages.iter().map(|message| message.id.as_str()).collect();
    let taken = "SELECT EXISTS (SELECT 1 FROM messages WHERE id IN (SELECT value FROM json_each(?)))";
    if the_value!(&mut *db, taken; to_json(&ids)).await? {
        rename_messages(chat);
    }
    for message in &chat.messages {
        insert_message(db, &id, message).await?;
    }
    set_head(db, &id, chat.head.as_deref()).await?;
    Ok(true)
}

/// Stores a chat without its messages, unless one of this id is here, in the trash too; returns whether it is new.
async fn insert_chat(db: &mut SqliteConnection, id: &str, chat: &ImportedChat) -> Result<bool> {
    let inserted = run!(
        db,
        "INSERT INTO chats (id, title, created_at, updated_at, pinned, archived_at, settings, draft, project_id)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT id FROM projects WHERE id = ?))
         ON CONFLICT (id) DO NOTHING";
        id, &chat.title, chat.created_at, chat.updated_at, chat.pinned, chat.archived.then(now),
        to_json(&chat.settings), to_json(&chat.draft), &chat.project
    );
    Ok(inserted.await? > 0)
}

/// Stores a message of a chat that is there, and its parts.
async fn insert_message(db: &mut SqliteConnection, chat: &str, message: &StoredMessage) -> Result<()> {
    run!(
        db,
        "INSERT INTO messages (id, chat_id, parent_id, role, state, created_at, finished_at, model, model_revision,
                template_hash, settings, tool_call_id, thinking_ended, thinking_tokens, finish_reason, ended_by, error,
                notices, usage, timing, compaction_mark, edited)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        &message.id, chat, &message.parent, to_word(&message.role), to_word(&message.state), message.created_at,
        message.finished_at, &message.model, &message.model_revision, &message.template_hash,
        message.settings.as_ref().map(to_json), &message.tool_call_id, message.thinking_ended,
        message.thinking_tokens, message.finish_reason.as_ref().map(to_word), message.ended_by.as_ref().map(to_json),
        message.error.as_ref().map(to_json), to_json(&message.notices), message.usage.as_ref().map(to_json),
        message.timing.as_ref().map(to_json), message.compaction_mark.as_ref().map(to_json), message.edited
    )
    .await?;
    insert_parts(db, &message.id, &message.parts).await
}

/// Gives every message another id, because some of them are taken.
fn rename_messages(chat: &mut ImportedChat) {
    let names = chat.messages.iter().map(|message| (message.id.clone(), new_id()));
    let names: HashMap<String, String> = names.collect();
    let renamed = |id: &Option<String>| id.as_ref().and_then(|id| names.get(id).cloned());
    chat.head = renamed(&chat.head);
    for message in &mut chat.messages {
        message.parent = renamed(&message.parent);
        message.id = names[&message.id].clone();
    }
}

/// A message of another program.
fn said(id: String, parent: Option<String>, role: Role, parts: Vec<Content>, at: i64) -> StoredMessage {
    StoredMessage {
        id,
        parent,
        parts: parts.into_iter().map(|content| Part::at(content, at)).collect(),
        created_at: at,
        finished_at: Some(at),
        finish_reason: (role == Role::Assistant).then_some(FinishReason::Stop),
        ..StoredMessage::new(role)
    }
}

/// The entries of a list of an object; none if it has no such list.
fn list<'a>(value: &'a Value, key: &str) -> impl DoubleEndedIterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// A text of an object, if it has one.
fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str().filter(|text| !text.trim().is_empty())
}
