//! Chats from files: our own exports, and those of other programs, some of which come as ZIP archives.
//!
//! A file is read whole into [`ImportedChats`] before anything is stored, so that one that is broken changes nothing;
//! then each chat is stored in a transaction of its own.

mod archive;
mod chatgpt;
mod claude;
mod limits;
mod lm_studio;
mod ours;
mod projects;

use std::collections::{BTreeMap, HashMap, HashSet};

use api::{AnswerState, ChatSettings, Part, StoredMessage};
use protocol::{Content, FinishReason, ImageBytes, Role};
use serde_json::Value;
use sqlx::{Sqlite, Transaction};

use self::limits::{believed, one_line};
use self::projects::ImportedProject;
use crate::chats::branches::set_head;
use crate::json::{to_json, to_word};
use crate::messages::parts::insert_parts;
use crate::stamp::new_id;
use crate::{now, Error, History, Result};

/// The byte order mark that some programs write before JSON.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The longest file that is read, in bytes.
pub const LONGEST_IMPORT: u64 = 1 << 30;
/// The most chats of one file.
const MOST_CHATS: usize = 100_000;
/// The most messages of one chat.
const MOST_MESSAGES: usize = 100_000;
/// The longest title, in characters.
const LONGEST_TITLE: usize = 300;
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
    /// Images by the names that messages have for them.
    pub images: BTreeMap<String, (String, ImageBytes)>,
}

/// The outcome of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportOutcome {
    /// Chats that are new.
    pub chats: usize,
    /// Their messages.
    pub messages: usize,
    /// Chats that were here already, which stay as they are.
    pub already_here: usize,
}

/// Refuses what holds no chats by how it begins, so that a long file, or one that never ends, need not be read for
/// that. `beginning` is a kilobyte of the file or more, or all of it.
///
/// # Errors
/// [`Error::Import`] with a sentence that says what is wrong with it.
pub fn check_import_beginning(beginning: &[u8]) -> Result<()> {
    let text = beginning
        .strip_prefix(BYTE_ORDER_MARK)
        .unwrap_or(beginning)
        .trim_ascii_start();
    match text.first() {
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
        true => archive::conversations(file, LONGEST_IMPORT)?,
        false => parsed(file).map_err(|error| Error::Import(format!("it is no JSON ({error})")))?,
    };
    let entries = match &value {
        Value::Array(entries) => entries.iter().collect(),
        one => vec![one],
    };
    if entries.len() > MOST_CHATS {
        return refuse("it holds more than 100,000 chats");
    }
    let has = |key: &str| entries.iter().any(|entry| entry.get(key).is_some());
    let mut projects = Vec::new();
    let (format, chats) = if has("format") {
        projects = ours::projects(&value)?;
        (ImportFormat::Ponder, ours::chats(&value)?)
    } else if has("mapping") {
        (
            ImportFormat::ChatGpt,
            entries.iter().filter_map(|entry| chatgpt::chat(entry)).collect(),
        )
    } else if has("chat_messages") {
        (
            ImportFormat::Claude,
            entries.iter().filter_map(|entry| claude::chat(entry)).collect(),
        )
    } else if has("messages") {
        (
            ImportFormat::LmStudio,
            entries.iter().filter_map(|entry| lm_studio::chat(entry)).collect(),
        )
    } else {
        return refuse("it is no export of Ponder, ChatGPT, Claude or LM Studio");
    };
    let chats: Vec<ImportedChat> = chats;
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

/// A file's JSON; the parser itself bounds how deep it nests.
fn parsed(file: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(file))
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
            if message
                .parent
                .as_ref()
                .is_some_and(|parent| !known.contains(parent) || *parent == message.id)
            {
                message.parent = previous.clone();
            }
            if message
                .tool_call_id
                .as_ref()
                .is_some_and(|call| !calls.insert(call.clone()))
            {
                message.tool_call_id = None;
            }
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
    pub async fn import(&self, file: ImportedChats) -> Result<ImportOutcome> {
        let mut outcome = ImportOutcome::default();
        for project in file.projects {
            self.import_project(project).await?;
        }
        for chat in file.chats {
            let count = chat.messages.len();
            match self.import_chat(chat).await? {
                true => {
                    outcome.chats += 1;
                    outcome.messages += count;
                }
                false => outcome.already_here += 1,
            }
        }
        Ok(outcome)
    }

    /// Stores a chat with its messages; returns whether it is new.
    async fn import_chat(&self, mut chat: ImportedChat) -> Result<bool> {
        if let Some(id) = &chat.id {
            // The transaction decides if it is new; a chat that is known to be here already stores no images before.
            let here: Option<i64> = sqlx::query_scalar("SELECT 1 FROM chats WHERE id = ?")
                .bind(id)
                .fetch_optional(&self.readers)
                .await?;
            if here.is_some() {
                return Ok(false);
            }
        }
        self.import_images(&mut chat).await?;
        let id = chat.id.take().unwrap_or_else(new_id);
        let mut transaction = self.write().await?;
        if !insert_chat(&mut transaction, &id, &chat).await? {
            return Ok(false);
        }
        let ids: Vec<&str> = chat.messages.iter().map(|message| message.id.as_str()).collect();
        let taken: i64 =
            sqlx::query_scalar("SELECT count(*) FROM messages WHERE id IN (SELECT value FROM json_each(?))")
                .bind(to_json(&ids))
                .fetch_one(&mut *transaction)
                .await?;
        if taken > 0 {
            rename_messages(&mut chat);
        }
        for message in &chat.messages {
            insert_message(&mut transaction, &id, message).await?;
        }
        set_head(&mut transaction, &id, chat.head.as_deref()).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Keeps the images and the texts of files of a chat and lets its messages name them as they are kept; one
    /// without a file becomes its name.
    async fn import_images(&self, chat: &mut ImportedChat) -> Result<()> {
        let mut kept: HashMap<String, String> = HashMap::new();
        let contents = |chat: &mut ImportedChat| -> Vec<Content> {
            let said = chat
                .messages
                .iter()
                .flat_map(|message| message.parts.iter().map(|part| part.content.clone()));
            said.chain(chat.draft.iter().cloned()).collect()
        };
        for content in contents(chat) {
            let (Content::Image { attachment, .. } | Content::File { attachment, .. }) = &content else {
                continue;
            };
            let Some((media_type, bytes)) = chat.images.get(attachment) else {
                continue;
            };
            let name = match content {
                Content::Image { width, height, .. } => {
                    self.add_attachment(bytes, media_type, (width, height)).await?.sha256
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

/// Stores a chat without its messages, unless one of this id is here, in the trash too; returns whether it is new.
async fn insert_chat(transaction: &mut Transaction<'static, Sqlite>, id: &str, chat: &ImportedChat) -> Result<bool> {
    let inserted = sqlx::query(
        "INSERT INTO chats (id, title, created_at, updated_at, pinned, archived_at, settings, draft, project_id)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT id FROM projects WHERE id = ?))
         ON CONFLICT (id) DO NOTHING",
    )
    .bind(id)
    .bind(&chat.title)
    .bind(chat.created_at)
    .bind(chat.updated_at)
    .bind(chat.pinned)
    .bind(chat.archived.then(now))
    .bind(to_json(&chat.settings))
    .bind(to_json(&chat.draft))
    .bind(&chat.project)
    .execute(&mut **transaction)
    .await?;
    Ok(inserted.rows_affected() > 0)
}

/// Stores a message of a chat that is there, and its parts.
async fn insert_message(
    transaction: &mut Transaction<'static, Sqlite>,
    chat: &str,
    message: &StoredMessage,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO messages (id, chat_id, parent_id, role, state, created_at, finished_at, model, model_revision, template_hash,
                settings, tool_call_id, thinking_ended, thinking_tokens, finish_reason, ended_by, error, notices,
                usage, timing,
                compaction_mark, edited)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(&message.id)
    .bind(chat)
    .bind(&message.parent)
    .bind(to_word(&message.role))
    .bind(to_word(&message.state))
    .bind(message.created_at)
    .bind(message.finished_at)
    .bind(&message.model)
    .bind(&message.model_revision)
    .bind(&message.template_hash)
    .bind(message.settings.as_ref().map(to_json))
    .bind(&message.tool_call_id)
    .bind(message.thinking_ended)
    .bind(message.thinking_tokens)
    .bind(message.finish_reason.as_ref().map(to_word))
    .bind(message.ended_by.as_ref().map(to_json))
    .bind(message.error.as_ref().map(to_json))
    .bind(to_json(&message.notices))
    .bind(message.usage.as_ref().map(to_json))
    .bind(message.timing.as_ref().map(to_json))
    .bind(message.compaction_mark.as_ref().map(to_json))
    .bind(message.edited)
    .execute(&mut **transaction)
    .await?;
    insert_parts(transaction, &message.id, &message.parts).await
}

/// Gives every message another id, because some of them are taken.
fn rename_messages(chat: &mut ImportedChat) {
    let names: HashMap<String, String> = chat
        .messages
        .iter()
        .map(|message| (message.id.clone(), new_id()))
        .collect();
    let renamed = |id: &Option<String>| id.as_ref().and_then(|id| names.get(id).cloned());
    chat.head = renamed(&chat.head);
    for message in &mut chat.messages {
        message.parent = renamed(&message.parent);
        message.id = names[&message.id].clone();
    }
}

/// A message of another program.
fn said(id: String, parent: Option<String>, role: Role, parts: Vec<Content>, at: i64) -> StoredMessage {
    let part = |content| Part {
        content,
        started_at: at,
        ended_at: at,
    };
    StoredMessage {
        id,
        parent,
        parts: parts.into_iter().map(part).collect(),
        created_at: at,
        finished_at: Some(at),
        finish_reason: (role == Role::Assistant).then_some(FinishReason::Stop),
        ..StoredMessage::new(role)
    }
}

/// A text of an object, if it has one.
fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str().filter(|text| !text.trim().is_empty())
}

/// A time in Unix milliseconds: seconds, milliseconds, or a text as of ISO 8601.
fn time(value: Option<&Value>) -> Option<i64> {
    let value = value?;
    if let Some(written) = value.as_str() {
        return written
            .parse::<jiff::Timestamp>()
            .ok()
            .map(jiff::Timestamp::as_millisecond);
    }
    let number = value.as_f64().filter(|number| number.is_finite())?;
    // Seconds of our age have ten digits, milliseconds thirteen.
    Some(if number.abs() < 1e11 { number * 1000.0 } else { number } as i64)
}
