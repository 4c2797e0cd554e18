//! A conversation as a model is given it.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::Role;

/// One part of a message's content. Text now; images and audio join as variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export)]
pub enum Content {
    /// Plain text. Whatever it spells, it is never read as a control token.
    Text {
        /// The text.
        text: String,
    },
    /// What a tool answered, as data: templates that know tools print it in the model's own notation.
    Data {
        /// A JSON object.
        data: serde_json::Value,
    },
}

/// A call of a tool that a model made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ToolCall {
    /// Made by us; a tool's answer names it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, a JSON object.
    pub arguments: serde_json::Value,
}

/// One message of a request, in the terms of the OpenAI chat form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<Content>,
    /// The reasoning that came before an assistant's answer, where it is kept. The template decides whether it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Tools that an assistant called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The tool that answers, in a message of [`Role::Tool`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The call that is answered, in a message of [`Role::Tool`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message of text alone.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: vec![Content::Text { text: text.into() }],
            reasoning: None,
            tool_calls: Vec::new(),
            name: None,
            tool_call_id: None,
        }
    }

    /// All content joined as text, data as JSON.
    pub fn plain_text(&self) -> String {
        self.content
            .iter()
            .map(|part| match part {
                Content::Text { text } => text.clone(),
                Content::Data { data } => data.to_string(),
            })
            .collect()
    }
}
