//! An answer under the hand of the person: its thought is ended early, or it goes on after it ended early.

use protocol::{AnswerPrefix, AnswerState, ChatSettings, ChatView, FinishReason, PartKind, Result, Role, StoredMessage};

use crate::error::Error;
use crate::live_answer::LiveAnswer;
use crate::Chat;

/// The code of the notice that a thought was ended for the model.
const THINKING_ENDED: &str = "thinking_ended";

impl Chat {
    /// Ends the thought of an answer soon, whichever process writes it, so that what it says follows. Changes nothing where it
    /// does not think or has ended.
    pub async fn answer_now(&self, message: &str) -> Result<()> {
        if let Some(running) = self.0.find(message) {
            running.answer_now.send_replace(true);
            return Ok(());
        }
        Ok(self.0.history.request_answer_now(message).await?)
    }

    /// Lets an answer that ended early (stopped, interrupted, failed or cut by its limit) go on in its place, with its own model,
    /// Thinking switch and budget. It must be the last of what its chat looks at.
    ///
    /// Nothing is changed where this fails: `BadRequest` for any other message, `Busy` while the chat has a running answer,
    /// `ModelNotFound` and `ModelBroken` from the model folder. Where the engine refuses later, the answer is failed and holds
    /// all that it held.
    pub async fn continue_answer(&self, message: &str) -> Result<ChatView> {
        // An answer whose process died can go on, too.
        self.0.mark_interrupted().await?;
        let stored = self.0.history.message(message).await?;
        let question = question_of_continuable(&stored)?;
        let (view, head) = self.0.history.chat_head(&stored.chat).await?;
        if head.as_deref() != Some(message) {
            return Err(Error::NotLast.into());
        }
        let own = ChatSettings {
            model: stored.model.clone().or_else(|| view.settings.model.clone()),
            thinking: stored.thinking,
            thinking_budget: stored.thinking_budget,
            ..view.settings.clone()
        };
        let (_, mut ask) = self.answer_request(own).await?;
        ask.question = question;
        // The next question will be asked as the chat says, and not of a model that is gone.
        let next = self.answer_request(view.settings).await.ok().map(|(_, next)| next);
        let stored = self.0.history.continue_answer(message, &self.0.owner).await?;
        // Read behind the change: another process may have let the answer go on meanwhile, and it may have ended again.
        let tokens = self.0.history.tokens(message).await?;
        ask.begun = begun(&stored, &tokens);
        self.begin(LiveAnswer::continued(stored.clone(), tokens), ask, next);
        self.chat(&stored.chat).await
    }
}

/// The question that this answer goes on answering.
fn question_of_continuable(message: &StoredMessage) -> Result<String> {
    let (Role::Assistant, Some(question)) = (message.role, &message.parent) else {
        return Err(Error::NoAnswer.into());
    };
    match message.state {
        AnswerState::Streaming => Err(history::Error::Busy.into()),
        AnswerState::Complete if message.finish_reason != Some(FinishReason::Length) => Err(Error::Complete.into()),
        AnswerState::Complete | AnswerState::Stopped | AnswerState::Failed | AnswerState::Interrupted => Ok(question.clone()),
    }
}

/// What the engine goes on from: the tokens, and where none are known the words.
fn begun(message: &StoredMessage, tokens: &[u32]) -> Option<AnswerPrefix> {
    if !tokens.is_empty() {
        return Some(AnswerPrefix::Tokens {
            tokens: tokens.to_vec(),
            model_revision: message.model_revision.clone(),
            thinking_ended: message.notices.iter().any(|notice| notice.code == THINKING_ENDED),
        });
    }
    let (mut thinking, mut text) = (String::new(), String::new());
    for part in &message.parts {
        match &part.kind {
            PartKind::Thinking { text: words } => thinking.push_str(words),
            PartKind::Text { text: words } => text.push_str(words),
            PartKind::ToolCall { .. } => {}
        }
    }
    let said = |words: String| (!words.trim().is_empty()).then_some(words);
    let (thinking, text) = (said(thinking), said(text));
    (thinking.is_some() || text.is_some()).then_some(AnswerPrefix::Text { thinking, text })
}
