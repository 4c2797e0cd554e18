//! A conversation as a model is given it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::Excerpt;

/// The speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions for the whole chat.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool's answer.
    Tool,
}

impl Role {
    /// Its name in chat templates and in OpenAI's interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// What one part of a message holds, wherever messages are: in a request, an event, the history and a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// Plain text. Whatever it spells, it is never read as a control token.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning, shown apart from the answer.
    Thinking {
        /// The text.
        text: String,
    },
    /// A tool that was called.
    ToolCall {
        /// The call.
        call: ToolCall,
    },
    /// What a tool answered, as data.
    Data {
        /// A JSON object.
        data: serde_json::Value,
    },
    /// A picture.
    Image {
        /// Where its bytes are: the id of an attachment of the history.
        attachment: String,
        /// Such as `image/png`.
        media_type: String,
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
        /// What it shows, in words; empty if nobody said.
        alt: String,
    },
    /// A file that is not a picture.
    File {
        /// Where its text is: the id of an attachment of the history.
        attachment: String,
        /// Such as `text/csv`.
        media_type: String,
        /// Its name, without a folder.
        name: String,
        /// How long it is.
        #[ts(type = "number")]
        bytes: u64,
        /// The part of its text that is meant; `None` of a file whose text nobody read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        excerpt: Option<Excerpt>,
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

    /// The text of a part that grows piece by piece; `None` for parts that come whole.
    pub fn growing_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } | Self::Thinking { text } => Some(text),
            Self::ToolCall { .. } | Self::Data { .. } | Self::Image { .. } | Self::File { .. } => None,
        }
    }

    /// The same kind of part with another text; a part that comes whole stays as it is.
    pub fn with_text(&self, text: impl Into<String>) -> Self {
        match self {
            Self::Text { .. } => Self::text(text),
            Self::Thinking { .. } => Self::thinking(text),
            Self::ToolCall { .. } | Self::Data { .. } | Self::Image { .. } | Self::File { .. } => self.clone(),
        }
    }

    /// Takes `next` into this part, which came just before, or gives it back: texts of one kind become one.
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

    /// Adds `next` at the end of these parts.
    pub fn push(parts: &mut Vec<Self>, next: Self) {
        let rest = match parts.last_mut() {
            Some(last) => last.coalesce(next),
            None => Some(next),
        };
        parts.extend(rest);
    }

    /// How this part is written if only text is possible: data as JSON, a picture or a file as a placeholder that is seen.
    /// `None` for reasoning and calls, which stand apart from what is said.
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text { text } => Some(text.into()),
            Self::Data { data } => Some(data.to_string().into()),
            Self::Image { alt, .. } if alt.trim().is_empty() => Some("[image]".into()),
            Self::Image { alt, .. } => Some(format!("[image: {alt}]").into()),
            Self::File { name, .. } => Some(format!("[file: {name}]").into()),
            Self::Thinking { .. } | Self::ToolCall { .. } => None,
        }
    }

    /// Whether it is a picture or a file, which not every engine can take.
    pub fn is_media(&self) -> bool {
        match self {
            Self::Image { .. } | Self::File { .. } => true,
            Self::Text { .. } | Self::Thinking { .. } | Self::ToolCall { .. } | Self::Data { .. } => false,
        }
    }
}

/// A call of a tool that a model made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ToolCall {
    /// Nine random letters and digits, because Mistral's templates accept nothing else; the result of the call names it.
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

/// One message of a request, in the terms of the OpenAI chat form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order; reasoning and calls stand in the fields below, because templates take them apart.
    pub content: Vec<Content>,
    /// The reasoning that came before an assistant's answer, if it is kept. The template decides whether it is shown.
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
            content: vec![Content::text(text)],
            reasoning: None,
            tool_calls: Vec::new(),
            name: None,
            tool_call_id: None,
        }
    }

    /// All content as one text, for whoever can take nothing else; see [`Content::as_text`] for what stands for pictures and files.
    /// Whoever asks for it says so if [`Message::has_media`].
    pub fn text_with_placeholders(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect()
    }

    /// Whether there is a picture or a file in it.
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
    fn a_picture_is_never_dropped_from_a_text_in_silence() {
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
