//! A turn with tools: an answer that calls, the results, and the next answer of the same turn. Callers run the tools.

use api::{ChatView, StoredMessage};
use protocol::{Content, QuotedPassage, Result, Role};

use crate::answers::Answers;
use crate::error::Error;
use crate::request::calls;
use crate::request::passages::given;

impl Answers {
    /// The text of a message, and the passages of documents that its branch was given up to it.
    ///
    /// # Errors
    /// `NotFound` if there is no such message.
    pub async fn with_passages(&self, message: &str) -> Result<(String, Vec<QuotedPassage>)> {
        let branch = self.core.history.branch(message).await?;
        let parts = branch.last().into_iter().flat_map(|message| &message.parts);
        let texts = parts.filter_map(|part| match &part.content {
            Content::Text { text } => Some(text.as_str()),
            _ => None,
        });
        Ok((texts.collect(), given(&branch)))
    }

    /// Stores the result of a call that this answer made, once the answer has ended. `NotFound` if it made no such
    /// call, `BadRequest` if the call has its result already. A call that gets no result before the next question is
    /// stored as not run.
    pub async fn add_tool_result(&self, answer: &str, call: &str, content: &[Content]) -> Result<StoredMessage> {
        self.core
            .change(self.core.history.add_tool_result(answer, call, content))
            .await
    }

    /// Begins the next answer of a turn below the result of a tool, once every call has its result.
    ///
    /// `BadRequest` for any other message and while a result is missing; for the rest it fails as [`Answers::send`]
    /// does.
    pub async fn answer_tool_results(&self, result: &str) -> Result<ChatView> {
        let branch = self.core.history.branch(result).await?;
        let results = branch
            .iter()
            .rev()
            .take_while(|message| message.role == Role::Tool)
            .count();
        let (above, results) = branch.split_at(branch.len() - results);
        let (Some(answer), false) = (above.last(), results.is_empty()) else {
            return Err(Error::NothingToAnswer.into());
        };
        let is_open = |id: &str| !results.iter().any(|result| result.tool_call_id.as_deref() == Some(id));
        if calls(answer).any(|call| is_open(&call.id)) {
            return Err(Error::ResultMissing.into());
        }
        self.begin_answer(branch, None).await
    }
}
