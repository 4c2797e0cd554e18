//! Notices about an answer, and the values in texts for the user.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A value in a text for the user, such as a number of tokens or the name of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    /// A count, a size in bytes or another whole number.
    Number(u64),
    /// A name, a path or another program's text.
    Text(String),
}

/// The values of a text by name, so that a window can insert them into its own language.
pub type Arguments = BTreeMap<String, Argument>;

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for Argument {
            fn from(number: $number) -> Self {
                Self::Number(number as u64)
            }
        }
    )*};
}

numbers!(u16, u32, u64, usize);

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Argument {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The subject of a notice. Windows show their own text for it; nothing is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum NoticeCode {
    /// The model thought although Thinking is off; the thought is kept out of the answer.
    ThoughtWhileOff,
    /// The answer ended in the middle of the thought.
    ThinkingTruncated,
    /// The thought was ended for the model: by its budget of `budget` tokens, or, without that argument, by the user.
    ThinkingEnded,
    /// A tool call was started but not completed; it is shown as text, which comes next and includes the marker
    /// `opening`, and `closing` if the model closed the call.
    BrokenToolCall,
    /// A call of the tool `name`, which was not offered to the model, is shown as text, which comes next and includes
    /// the markers as that of a broken call does.
    UnknownTool,
    /// The answer repeats itself, and goes on.
    Repeats,
    /// The answer repeated itself without end and was ended.
    Repetition,
    /// `layers` layers keep a full-precision KV cache, because theirs cannot be quantized.
    KvBits,
    /// An endpoint does not follow the Thinking switch.
    ThinkingSwitchIgnored,
    /// An endpoint has no thinking budget.
    ThinkingBudgetIgnored,
    /// An endpoint refused the field `field` of the request, so it was omitted.
    FieldRefused,
    /// The model does not support files; it got their names instead.
    MediaNotSeen,
    /// `images` images of the conversation were not shown to the model, which got their names instead: it lacks vision,
    /// or their files are missing.
    ImageLeftOut,
    /// The model saw the image `name` at `width` × `height` pixels instead of its `original_width` × `original_height`.
    ImageResized,
    /// The image `name` is animated; the model saw its first frame.
    ImageAnimated,
    /// The draft model was not used, for this `reason`.
    DraftModelUnused,
    /// A notice of another version of this program; only the message can be shown.
    Unknown,
}

impl NoticeCode {
    /// True if it tells of a call that is shown as text. Clients that hide markers have to hear of it before that text.
    pub fn shows_a_call(self) -> bool {
        matches!(self, Self::BrokenToolCall | Self::UnknownTool)
    }
}

/// Something the user should know about an answer that is otherwise fine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Notice {
    /// Its subject.
    #[serde(with = "any_code")]
    #[ts(as = "NoticeCode")]
    pub code: NoticeCode,
    /// The values of its text; [`NoticeCode`] lists them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(type = "Record<string, string | number>", optional)]
    pub arguments: Arguments,
    /// The message in English, shown if a window has no text of its own.
    pub message: String,
}

impl Notice {
    /// A notice without arguments.
    pub fn new(code: NoticeCode, message: impl Into<String>) -> Self {
        Self {
            code,
            arguments: Arguments::new(),
            message: message.into(),
        }
    }

    /// Adds an argument.
    pub fn with(mut self, name: &str, value: impl Into<Argument>) -> Self {
        self.arguments.insert(name.to_owned(), value.into());
        self
    }
}

/// Codes as strings; unknown ones become [`NoticeCode::Unknown`].
mod any_code {
    use serde::de::value::Error;
    use serde::de::IntoDeserializer;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::NoticeCode;

    pub fn serialize<S: Serializer>(code: &NoticeCode, serializer: S) -> Result<S::Ok, S::Error> {
        code.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NoticeCode, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known: Result<NoticeCode, Error> = NoticeCode::deserialize(word.into_deserializer());
        Ok(known.unwrap_or(NoticeCode::Unknown))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_a_code_arguments_and_a_message() {
        let notice = Notice::new(NoticeCode::ThinkingEnded, "It ended after 256 tokens.").with("budget", 256u32);
        let json = serde_json::json!({"code": "thinking_ended", "arguments": {"budget": 256}, "message": "It ended after 256 tokens."});
        assert_eq!(serde_json::to_value(&notice).unwrap(), json);
        assert_eq!(serde_json::from_value::<Notice>(json).unwrap(), notice);
    }

    #[test]
    fn notices_of_earlier_and_other_versions_are_read() {
        let read = |json: &str| serde_json::from_str::<Notice>(json).unwrap();
        let earlier = read(r#"{"code": "repetition", "message": "It ran in a circle."}"#);
        assert_eq!(earlier, Notice::new(NoticeCode::Repetition, "It ran in a circle."));
        let other = read(r#"{"code": "something_else", "arguments": {"file": "a"}, "message": "Something else."}"#);
        assert_eq!(
            other,
            Notice::new(NoticeCode::Unknown, "Something else.").with("file", "a")
        );
    }
}
