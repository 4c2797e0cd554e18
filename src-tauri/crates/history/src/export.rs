//! A chat as a file of the user's own.

use std::fmt::Write;

use protocol::{ChatView, PartKind, Role, StoredMessage};
use serde_json::json;

use crate::{History, Result};

/// What a chat is exported as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// The branch that is looked at, for reading. Reasoning stands in quotes above its answer.
    Markdown,
    /// Everything: settings and all branches, for programs.
    Json,
}

impl History {
    /// A chat as text in this format.
    pub async fn export(&self, chat: &str, format: ExportFormat) -> Result<String> {
        match format {
            ExportFormat::Markdown => Ok(markdown(&self.chat(chat).await?)),
            ExportFormat::Json => {
                let (view, head) = self.chat_head(chat).await?;
                let messages = self.tree(chat).await?;
                let export = json!({
                    "format": "ponder-chat",
                    "version": 1,
                    "chat": view.summary,
                    "settings": view.settings,
                    "draft": view.draft,
                    "head": head,
                    "messages": messages,
                });
                Ok(format!("{export:#}\n"))
            }
        }
    }
}

fn markdown(view: &ChatView) -> String {
    let title = if view.summary.title.is_empty() {
        "Untitled chat"
    } else {
        &view.summary.title
    };
    let mut out = format!("# {title}\n");
    if !view.settings.system_prompt.is_empty() {
        let _ = write!(out, "\n## Instructions\n\n{}\n", view.settings.system_prompt);
    }
    for message in &view.messages {
        let _ = write!(out, "\n## {}\n", speaker(message));
        for part in &message.parts {
            let _ = match &part.kind {
                PartKind::Text { text } => write!(out, "\n{}\n", text.trim_end()),
                PartKind::Thinking { text } => {
                    let seconds = (part.ended_at - part.started_at) as f64 / 1000.0;
                    let quoted: String = text.trim().lines().map(|line| format!("> {line}\n")).collect();
                    write!(out, "\n> **Thought for {seconds:.0} s**\n>\n{quoted}")
                }
                PartKind::ToolCall { call } => write!(out, "\nCalled `{}`:\n\n```json\n{:#}\n```\n", call.name, call.arguments),
            };
        }
        if let Some(error) = &message.error {
            let _ = write!(out, "\n*Failed: {}*\n", error.message);
        }
    }
    out
}

fn speaker(message: &StoredMessage) -> &str {
    match message.role {
        Role::User => "You",
        Role::Assistant => message.model.as_deref().unwrap_or("Answer"),
        Role::System => "Instructions",
        Role::Tool => "Tool",
    }
}
