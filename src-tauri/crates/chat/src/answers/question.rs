//! Checks the content of a question.

use protocol::{Content, Result};

use crate::error::Error;

/// Refuses a question that is empty or holds what only an answer holds.
pub(crate) fn check(content: &[Content]) -> Result<()> {
    use Content::{Data, Text, Thinking, ToolCall};
    if content
        .iter()
        .all(|part| matches!(part, Text { text } if text.trim().is_empty()))
    {
        return Err(Error::EmptyQuestion.into());
    }
    match content
        .iter()
        .any(|part| matches!(part, Thinking { .. } | ToolCall { .. } | Data { .. }))
    {
        true => Err(Error::NoQuestion.into()),
        false => Ok(()),
    }
}
