//! Checks the content of a question.

use protocol::{Content, Result};

use crate::error::Error;

/// Refuses a question that is empty or holds what no person writes.
pub(crate) fn check(content: &[Content]) -> Result<()> {
    use Content::{Data, Passages, Text, Thinking, ToolCall};
    if content
        .iter()
        .all(|part| matches!(part, Text { text } if text.trim().is_empty()))
    {
        return Err(Error::EmptyQuestion.into());
    }
    match content
        .iter()
        .any(|part| matches!(part, Thinking { .. } | ToolCall { .. } | Data { .. } | Passages { .. }))
    {
        true => Err(Error::NoQuestion.into()),
        false => Ok(()),
    }
}
