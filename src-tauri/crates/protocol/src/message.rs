//! The messages of a conversation.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::passages::quoted;
use crate::{Coverage, Excerpt, QuotedPassage};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions for the whole chat.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The result of a tool.
    Tool,
}

impl Role {
    /// Its name in chat templates and in OpenAI's API.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// The content of one part of a message, in a request, an event, the history and a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// Plain text. It is never read as a control token, no matter how it is spelled.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning, shown separately from the answer.
    Thinking {
        /// The text.
        text: String,
    },
    /// A call of a tool.
    ToolCall {
        /// The call.
        call: ToolCall,
    },
    /// The result of a tool, as data.
    Data {
        /// A JSON object.
        data: serde_json::Value,
    },
    /// An image.
    Image {
        /// The id of the attachment that holds its bytes.
        attachment: String,
        /// The media type, such as `image/png`.
        media_type: String,
        /// The width in pixels.
        width: u32,
        /// The height in pixels.
        height: u32,
        /// A description of it; empty if there is none.
        alt: String,
    },
    /// A file that is not an image.
    File {
        /// The id of the attachment that holds its text.
        attachment: String,
        /// The media type, such as `text/csv`.
        media_type: String,
        /// Its name, without a folder.
        name: String,
        /// Its size.
        #[ts(type = "number")]
        bytes: u64,
        /// The part of its text that is used; `None` for a file whose text was not read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        excerpt: Option<Excerpt>,
    },
    /// Passages of the user's documents that were found for a question.
    Passages {
        /// The passages, in the order in which a model reads them; empty if none was found.
        passages: Vec<QuotedPassage>,
        /// How much of the documents they and earlier ones of the chat are.
        coverage: Coverage,
    },
}

impl Content {
    /// Text of the answer or the question.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Reasoning.
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::Thinking { text: text.into() }
    }

    /// The text of a part that grows piece by piece; `None` for parts that arrive complete.
    pub fn growing_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } | Self::Thinking { text } => Some(text),
            Self::ToolCall { .. }
            | Self::Data { .. }
            | Self::Image { .. }
            | Self::File { .. }
            | Self::Passages { .. } => None,
        }
    }

    /// The same kind of part with another text; a part that arrives complete is unchanged.
    pub fn with_text(&self, text: impl Into<String>) -> Self {
        match self {
            Self::Text { .. } => Self::text(text),
            Self::Thinking { .. } => Self::thinking(text),
            Self::ToolCall { .. }
            | Self::Data { .. }
            | Self::Image { .. }
            | Self::File { .. }
            | Self::Passages { .. } => self.clone(),
        }
    }

    /// Merges `next` into this part, which came just before, or returns it: texts of one kind become one.
    pub fn coalesce(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Text { text }, Self::Text { text: more })
            | (Self::Thinking { text }, Self::Thinking { text: more }) => {
                text.push_str(&more);
                None
            }
            (_, next) => Some(next),
        }
    }

    /// Appends `next` to these parts.
    pub fn push(parts: &mut Vec<Self>, next: Self) {
        let rest = match parts.last_mut() {
            Some(last) => last.coalesce(next),
            None => Some(next),
        };
        parts.extend(rest);
    }

    /// The part as text, where nothing else is possible: data as JSON, passages with their places, an image or a file as a
    /// visible placeholder.
    /// `None` for reasoning and calls, which are not part of what is said.
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text { text } => Some(text.into()),
            Self::Data { data } => Some(data.to_string().into()),
            Self::Image { alt, .. } if alt.trim().is_empty() => Some("[image]".into()),
            Self::Image { alt, .. } => Some(format!("[image: {alt}]").into()),
            Self::File { name, .. } => Some(format!("[file: {name}]").into()),
            Self::Passages { passages, coverage } => Some(quoted(passages, coverage).into()),
            Self::Thinking { .. } | Self::ToolCall { .. } => None,
        }
    }

    /// True for an image or a file, which not every engine supports.
    pub fn is_media(&self) -> bool {
        match self {
            Self::Image { .. } | Self::File { .. } => true,
            Self::Text { .. }
            | Self::Thinking { .. }
            | Self::ToolCall { .. }
            | Self::Data { .. }
            | Self::Passages { .. } => false,
        }
    }
}

/// A model's call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ToolCall {
    /// Nine random letters and digits, because Mistral's templates accept nothing else; the result of the call refers
    /// to it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, a JSON object.
    pub arguments: serde_json::Value,
}

impl ToolCall {
    /// A call with a new id.
    pub fn new(name: String, arguments: serde_json::Value) -> Self {
        const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        // The last 62 bits are the random ones.
        let mut rest = uuid::Uuid::now_v7().as_u128() & (u128::MAX >> 66);
        let mut digit = || {
            let digit = DIGITS[(rest % 62) as usize];
            rest /= 62;
            char::from(digit)
        };
        Self {
            id: (0..9).map(|_| digit()).collect(),
            name,
            arguments,
        }
    }
}

/// One message of a request, in the terms of OpenAI's chat API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The role of its author.
    pub role: Role,
    /// The content, in order; reasoning and calls have fields of their own, because templates treat them separately.
    pub content: Vec<Content>,
    /// The reasoning before an assistant's answer, if it is kept. The template decides if it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The assistant's tool calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The tool whose result this is, in a message of [`Role::Tool`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The call whose result this is, in a message of [`Role::Tool`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message of text only.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: vec![Content::text(text)],
            reasoning: None,
            tool_calls: Vec::new(),
            name: None,
            tool_call_id: None,
        }
    }

    /// All content as one text, for engines that support nothing else; [`Content::as_text`] defines the placeholders of
    /// images and files. The caller reports it to the user if [`Message::has_media`].
    pub fn text_with_placeholders(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect()
    }

    /// True if it has an image or a file.
    pub fn has_media(&self) -> bool {
        self.content.iter().any(Content::is_media)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_one_kind_become_one_and_others_stay_apart() {
        let mut parts = Vec::new();
        let call = Content::ToolCall {
            call: ToolCall {
                id: "abcdefghi".into(),
                name: "weather".into(),
                arguments: serde_json::json!({}),
            },
        };
        for next in [
            Content::thinking("h"),
            Content::thinking("m"),
            Content::text("a"),
            Content::text("b"),
            call.clone(),
            Content::text("c"),
        ] {
            Content::push(&mut parts, next);
        }
        assert_eq!(
            parts,
            [Content::thinking("hm"), Content::text("ab"), call, Content::text("c")]
        );
    }

    #[test]
    fn an_image_is_never_dropped_from_a_text_in_silence() {
        let image = |alt: &str| Content::Image {
            attachment: "1".into(),
            media_type: "image/png".into(),
            width: 1,
            height: 1,
            alt: alt.into(),
        };
        let mut message = Message::text(Role::User, "What is this? ");
        message.content.extend([image("a cat"), image(" ")]);
        assert_eq!(message.text_with_placeholders(), "What is this? [image: a cat][image]");
        assert!(message.has_media() && !Message::text(Role::User, "a").has_media());
    }

    #[test]
    fn call_ids_are_nine_letters_and_digits_and_differ() {
        let ids: std::collections::HashSet<String> = (0..1000)
            .map(|_| ToolCall::new("f".into(), serde_json::Value::Null).id)
            .collect();
        assert_eq!(ids.len(), 1000);
        for id in ids {
            assert!(
                id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                "{id}"
            );
        }
    }
}
