//! A turn with tools: an answer that calls, the results, and the next answer of the same turn. Who runs the tools is not known here.

use protocol::{ChatSettings, ChatView, Content, Result, Role, StoredMessage};

use crate::conversation::calls;
use crate::error::Error;
use crate::live_answer::LiveAnswer;
use crate::Chat;

impl Chat {
    /// Stores the result of a call that this answer made, once the answer has ended. `NotFound` if it made no such call, `BadRequest`
    /// if the call has its result already. A call that gets no result before the next question is stored as not run.
    pub async fn add_tool_result(&self, answer: &str, call: &str, content: &[Content]) -> Result<StoredMessage> {
        let stored = self.0.history.add_tool_result(answer, call, content).await?;
        self.0.changed();
        Ok(stored)
    }

    /// Begins the next answer of a turn below the result of a tool, once every call has its result.
    ///
    /// `BadRequest` for any other message and while a result is missing; for the rest it fails as [`Chat::send`] does.
    pub async fn answer_tool_results(&self, result: &str) -> Result<ChatView> {
        let branch = self.0.history.branch(result).await?;
        let results = branch.iter().rev().take_while(|message| message.role == Role::Tool).count();
        let (above, results) = branch.split_at(branch.len() - results);
        let (Some(answer), Some(last)) = (above.last(), results.last()) else {
            return Err(Error::NothingToAnswer.into());
        };
        let is_open = |id: &str| !results.iter().any(|result| result.tool_call_id.as_deref() == Some(id));
        if calls(answer).any(|call| is_open(&call.id)) {
            return Err(Error::ResultMissing.into());
        }
        self.begin_answer(&last.chat, last.id.clone(), None).await
    }

    /// Begins an answer below this message, which is the end of a question or of the results of tools, with these settings or those of the chat.
    pub(crate) async fn begin_answer(&self, chat: &str, parent: String, settings: Option<ChatSettings>) -> Result<ChatView> {
        let (view, _) = self.0.history.chat_head(chat).await?;
        let next = self.answer_request(chat, view.settings.clone()).await.ok().map(|(_, next)| next);
        let (answer, mut request) = self.prepare(chat, settings.unwrap_or(view.settings)).await?;
        let answer = self.0.history.begin_answer(&parent, &answer).await?;
        request.parent = parent;
        self.begin(LiveAnswer::new(answer), request, next);
        self.shown(chat).await
    }
}
