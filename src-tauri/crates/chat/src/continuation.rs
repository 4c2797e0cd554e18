//! What a person does to an answer: ends its thought early, or continues it after it ended early.

use protocol::{AnswerPrefix, AnswerState, ChatSettings, ChatView, Content, FinishReason, Result, Role, StoredMessage};

use crate::error::Error;
use crate::live_answer::LiveAnswer;
use crate::Chat;

impl Chat {
    /// Ends the thought of an answer soon, whichever process writes it, so that what it says follows. Changes nothing if it
    /// does not think or has ended.
    pub async fn answer_now(&self, message: &str) -> Result<()> {
        if let Some(running) = self.0.find(message) {
            running.answer_now.send_replace(true);
            return Ok(());
        }
        Ok(self.0.history.request_answer_now(message).await?)
    }

    /// Continues an answer that ended early in its own row, with its own model and settings; see [`StoredMessage::continuable`].
    ///
    /// Nothing is changed if this fails: `BadRequest` for any other message, `Busy` while the chat has a running answer,
    /// `ModelNotFound` and `ModelBroken` from the model folder. If the engine refuses later, the answer is failed and holds
    /// all that it held.
    pub async fn continue_answer(&self, message: &str) -> Result<ChatView> {
        // An answer whose process died can be continued, too.
        self.0.mark_interrupted().await?;
        let stored = self.0.history.message(message).await?;
        let (view, head) = self.0.history.chat_head(&stored.chat).await?;
        let parent = match &stored.parent {
            Some(parent) if stored.continuable => parent.clone(),
            _ => return Err(refusal(&stored, head.as_deref())),
        };
        let own = ChatSettings {
            model: stored.model.clone().or_else(|| view.settings.model.clone()),
            system_prompt: view.settings.system_prompt.clone(),
            ..stored.settings.clone().unwrap_or_default()
        };
        let (_, mut request) = self.answer_request(&stored.chat, own).await?;
        if !self.0.engine.capabilities(&request.model).continue_answer {
            return Err(Error::CannotContinue(request.model.reference()).into());
        }
        request.parent = parent;
        // The next question will be asked as the chat says, and not of a model that is gone.
        let next = self.answer_request(&stored.chat, view.settings).await.ok().map(|(_, next)| next);
        let stored = self.0.history.continue_answer(message, &self.0.owner).await?;
        // Read after the change: another process may have continued the answer meanwhile, and it may have ended again.
        let tokens = self.0.history.tokens(message).await?;
        request.prefix = answer_prefix(&stored, &tokens);
        self.begin(LiveAnswer::continued(stored.clone(), tokens), request, next);
        self.shown(&stored.chat).await
    }
}

/// Why a message cannot be continued.
fn refusal(message: &StoredMessage, head: Option<&str>) -> protocol::Error {
    let error = match (message.role, message.state) {
        (Role::System | Role::User | Role::Tool, _) => Error::NoAnswer,
        (_, AnswerState::Streaming) => return history::Error::Busy.into(),
        (_, AnswerState::Complete) if message.finish_reason != Some(FinishReason::Length) => Error::Complete,
        _ if head != Some(&message.id) => Error::NotLast,
        _ => Error::NothingMore,
    };
    error.into()
}

/// What the engine continues from: the tokens, or the words if no tokens are known.
fn answer_prefix(message: &StoredMessage, tokens: &[u32]) -> Option<AnswerPrefix> {
    if !tokens.is_empty() {
        return Some(AnswerPrefix::Tokens {
            tokens: tokens.to_vec(),
            model_revision: message.model_revision.clone(),
            thinking_ended: message.thinking_ended,
        });
    }
    let (mut thinking, mut text) = (String::new(), String::new());
    for part in &message.parts {
        match &part.content {
            Content::Thinking { text: words } => thinking.push_str(words),
            Content::Text { text: words } => text.push_str(words),
            Content::ToolCall { .. } | Content::Data { .. } | Content::Image { .. } | Content::File { .. } => {}
        }
    }
    let said = |words: String| (!words.trim().is_empty()).then_some(words);
    let (thinking, text) = (said(thinking), said(text));
    (thinking.is_some() || text.is_some()).then_some(AnswerPrefix::Text { thinking, text })
}
