//! A chat as a file of the user's own.

use std::collections::BTreeMap;
use std::fmt::Write;

use api::{ChatView, Project, StoredMessage};
use protocol::{fenced, Content, Coverage, ImageBytes, QuotedPassage, Role};
use serde_json::{json, Value};

use crate::{History, Result};

/// Images and texts of files as they leave the app, by their attachments: of each its media type and its bytes.
pub type ExportedImages = BTreeMap<String, (String, ImageBytes)>;

impl History {
    /// The branch of a chat that is looked at, for reading: Markdown with reasoning in quotes above its answer. These
    /// images stand in it as data, others by name.
    pub async fn export_markdown(&self, chat: &str, images: &ExportedImages) -> Result<String> {
        Ok(markdown(&self.chat(chat).await?, images))
    }

    /// All of a chat, for programs: settings, the messages of every branch, parents before children, and these images
    /// by the attachments that messages name.
    pub async fn export_json(&self, chat: &str, images: &ExportedImages) -> Result<Value> {
        let (view, head) = self.chat_head(chat).await?;
        let messages = self.tree(chat).await?;
        Ok(json!({
            "format": "ponder-chat",
            "version": 1,
            "chat": view.summary,
            "settings": view.settings,
            "draft": view.draft,
            "head": head,
            "messages": messages,
            "attachments": attachments(images),
        }))
    }

    /// A project for programs: its name, its instructions and its files with their texts. A file whose text is gone is
    /// left out.
    pub async fn export_project(&self, project: &Project) -> Result<Value> {
        let mut texts = ExportedImages::new();
        let mut kept = Vec::new();
        for file in &project.files {
            let Content::File { attachment, .. } = file else {
                continue;
            };
            match self.attachment_bytes(attachment).await {
                Ok(bytes) => {
                    texts.insert(attachment.clone(), ("text/plain".into(), bytes));
                    kept.push(file);
                }
                Err(error) => tracing::warn!(%error, "a file of a project was not exported"),
            }
        }
        Ok(json!({
            "id": project.id,
            "name": project.name,
            "system_prompt": project.system_prompt,
            "created_at": project.created_at,
            "files": kept,
            "attachments": attachments(&texts),
        }))
    }
}

/// Several chats as [`History::export_json`] gives them, as one value that can be imported.
pub fn exported_together(chats: Vec<Value>) -> Value {
    json!({"format": "ponder-chats", "version": 1, "chats": chats})
}

/// One exported value with the projects that its chats lie in, so that they can be imported with it.
pub fn with_projects(mut export: Value, projects: Vec<Value>) -> Value {
    if !projects.is_empty() {
        export["projects"] = projects.into();
    }
    export
}

/// Images and texts by the attachments that name them.
fn attachments(kept: &ExportedImages) -> Value {
    let written = kept
        .iter()
        .map(|(id, (media_type, bytes))| (id.clone(), json!({"media_type": media_type, "base64": bytes})));
    Value::Object(written.collect())
}

fn markdown(view: &ChatView, images: &ExportedImages) -> String {
    let title = title(view);
    let mut out = format!("# {title}\n");
    if !view.settings.system_prompt.is_empty() {
        let _ = write!(out, "\n## Instructions\n\n{}\n", view.settings.system_prompt);
    }
    if !view.settings.carried_summary.is_empty() {
        let summary = &view.settings.carried_summary;
        let _ = write!(out, "\n## Summary of an earlier chat\n\n{summary}\n");
    }
    let is_marked = |message: &StoredMessage| message.compaction_mark.is_some();
    let compacted_at = view.messages.iter().rposition(is_marked);
    for (index, message) in view.messages.iter().enumerate() {
        let _ = write!(out, "\n## {}\n", speaker(message));
        for part in &message.parts {
            let _ = match &part.content {
                Content::Text { text } => write!(out, "\n{}\n", text.trim_end()),
                Content::Thinking { text } => {
                    let seconds = (part.ended_at - part.started_at) as f64 / 1000.0;
                    write!(out, "\n> **Thought for {seconds:.0} s**\n>\n{}", in_quotes(text))
                }
                Content::ToolCall { call } => {
                    write!(out, "\nCalled `{}`:\n\n```json\n{:#}\n```\n", call.name, call.arguments)
                }
                Content::Data { data } => write!(out, "\n```json\n{data:#}\n```\n"),
                Content::Image { attachment, alt, .. } if images.contains_key(attachment) => {
                    let (media_type, bytes) = &images[attachment];
                    write!(out, "\n![{}]({})\n", label(alt), bytes.to_data_url(media_type))
                }
                Content::File { attachment, name, .. } if images.contains_key(attachment) => {
                    write!(out, "{}", quoted(name, &String::from_utf8_lossy(&images[attachment].1)))
                }
                Content::Image { .. } | Content::File { .. } => {
                    write!(out, "\n*{}*\n", part.content.as_text().unwrap_or_default())
                }
                Content::Passages { passages, coverage } => write!(out, "{}", sources(passages, coverage)),
            };
        }
        if let Some(error) = &message.error {
            let _ = write!(out, "\n*Failed: {}*\n", error.message);
        }
        if let Some(cut) = message.compaction_mark.as_ref().filter(|_| compacted_at == Some(index)) {
            let _ = write!(out, "\n---\n\n*The model's memory begins here.*\n");
            if let Some(summary) = &cut.summary {
                let _ = write!(
                    out,
                    "\n> **Summary of what was said before**\n>\n{}",
                    in_quotes(summary)
                );
            }
        }
    }
    out
}

fn in_quotes(text: &str) -> String {
    text.trim().lines().map(|line| format!("> {line}\n")).collect()
}

/// Passages with their places and the hashes of their files, by which one finds them again.
fn sources(passages: &[QuotedPassage], coverage: &Coverage) -> String {
    let mut out = format!("\n**{}**\n", extent(coverage));
    for passage in passages {
        let (place, hash) = (label(&passage.place()), &passage.file_hash);
        let text = fenced(&passage.text, "");
        let _ = write!(out, "\n\\[{}\\] {place}, SHA-256 {hash}\n\n{text}\n", passage.number);
    }
    out
}

/// How much of the documents was read.
pub(super) fn extent(coverage: &Coverage) -> String {
    let Coverage {
        passages,
        of_passages,
        files,
        of_files,
        ..
    } = coverage;
    format!("Read {passages} of {of_passages} passages in {files} of {of_files} files of documents")
}

/// The text of a file between fences that nothing in it closes.
fn quoted(name: &str, text: &str) -> String {
    let text = fenced(&text.trim_end_matches('\n').replace('\u{c}', "\n\n"), "");
    format!("\n**{}**\n\n{text}\n", label(name))
}

/// An image's name between brackets, in which brackets and line ends would end it.
fn label(alt: &str) -> String {
    alt.replace(|c: char| matches!(c, '[' | ']' | '\\') || c.is_control(), " ")
}

pub(crate) fn title(view: &ChatView) -> &str {
    match view.summary.title.as_str() {
        "" => "Untitled chat",
        title => title,
    }
}

pub(crate) fn speaker(message: &StoredMessage) -> &str {
    match message.role {
        Role::User => "You",
        Role::Assistant => message.model.as_deref().unwrap_or("Answer"),
        Role::System => "Instructions",
        Role::Tool => "Tool",
    }
}
