//! A chat as a document that is searched and quoted.

use std::fmt::Write as _;

use api::StoredMessage;
use jiff::tz::TimeZone;
use jiff::Timestamp;
use protocol::{Content, Role};

use crate::{History, Result};

impl History {
    /// The questions and answers of the branch of a chat that is looked at, as Markdown below its title. Thoughts,
    /// passages of documents and results of tools are left out: nobody said them.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`].
    pub async fn chat_as_document(&self, chat: &str) -> Result<String> {
        let view = self.chat(chat).await?;
        Ok(document(&view.summary.title, &view.messages, &TimeZone::system()))
    }
}

fn document(title: &str, messages: &[StoredMessage], zone: &TimeZone) -> String {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = format!("# {}\n", if title.is_empty() { "Untitled" } else { &title });
    for message in messages {
        let author = match message.role {
            Role::User => "The user",
            Role::Assistant => "The model",
            Role::System | Role::Tool => continue,
        };
        let said = said(message);
        if !said.trim().is_empty() {
            let at = Timestamp::from_millisecond(message.created_at).unwrap_or_default();
            let at = at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M");
            let _ = write!(text, "\n## {author}, {at}\n\n{}\n", said.trim());
        }
    }
    text
}

fn said(message: &StoredMessage) -> String {
    let texts = message.parts.iter().filter_map(|part| match &part.content {
        Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use api::Part;
    use protocol::ToolCall;

    use super::*;

    #[test]
    fn a_document_has_what_was_said_and_nothing_else() {
        let message = |role, parts: Vec<Content>| StoredMessage {
            parts: parts.into_iter().map(|content| Part::at(content, 0)).collect(),
            ..StoredMessage::new(role)
        };
        let call = ToolCall {
            id: "1".into(),
            name: "search_web".into(),
            arguments: serde_json::json!({}),
        };
        let messages = [
            message(Role::User, vec![Content::text("When?")]),
            message(
                Role::Assistant,
                vec![Content::thinking("hm"), Content::ToolCall { call }],
            ),
            message(Role::Tool, vec![Content::text("A page about Rome.")]),
            message(Role::Assistant, vec![Content::thinking("hm"), Content::text("In May.")]),
        ];
        let expected = "# Trip to Rome\n\n## The user, 1970-01-01 00:00\n\nWhen?\n\n\
                        ## The model, 1970-01-01 00:00\n\nIn May.\n";
        assert_eq!(document("Trip\nto Rome", &messages, &TimeZone::UTC), expected);
    }
}
