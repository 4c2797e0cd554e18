//! Checks the content of a question.

use protocol::{Content, Result};

use crate::error::Error;

/// Refuses a question that is empty or holds what only an answer holds.
pub(crate) fn check(content: &[Content]) -> Result<()> {
    let says_something = |content: &Content| match content {
        Content::Text { text } => !text.trim().is_empty(),
        Content::Thinking { .. }
        | Content::ToolCall { .. }
        | Content::Data { .. }
        | Content::Image { .. }
        | Content::File { .. } => true,
    };
    let is_of_answers = |content: &Content| {
        matches!(
            content,
            Content::Thinking { .. } | Content::ToolCall { .. } | Content::Data { .. }
        )
    };
    if !content.iter().any(says_something) {
        return Err(Error::EmptyQuestion.into());
    }
    if content.iter().any(is_of_answers) {
        return Err(Error::NoQuestion.into());
    }
    Ok(())
}
