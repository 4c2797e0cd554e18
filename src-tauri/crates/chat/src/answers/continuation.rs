//! Continues an answer that ended early.

use api::{AnswerState, ChatSettings, ChatView, StoredMessage};
use protocol::{AnswerPrefix, Content, FinishReason, NoticeCode, Result, Role, Sampling};

use crate::answers::write::{Prompt, TurnRequest};
use crate::answers::Answers;
use crate::error::Error;
use crate::live::answer::LiveAnswer;
use crate::request::build::RequestTemplate;

/// The least repetition penalty of an answer that repeated itself, which few loops survive.
const LOOP_PENALTY: f32 = 1.3;

/// The tokens that it considers: the longest loop that engines notice.
const LOOP_CONTEXT: u32 = 256;

impl Answers {
    /// Continues an answer that ended early in its own row, with its own model and settings; see
    /// [`StoredMessage::continuable`]. One that repeated itself goes on with a repetition penalty.
    ///
    /// Nothing is changed if this fails: `BadRequest` for any other message, `Busy` while the chat has a running
    /// answer, `ModelNotFound` and `ModelBroken` from the model folder. If the engine refuses later, the answer is
    /// failed and holds all that it held.
    pub async fn continue_answer(&self, message: &str) -> Result<ChatView> {
        // An answer whose process died can be continued, too.
        self.core.mark_interrupted().await?;
        let stored = self.core.history.message(message).await?;
        let (view, head) = self.core.history.chat_head(&stored.chat).await?;
        let parent = match &stored.parent {
            Some(parent) if stored.continuable => parent.clone(),
            _ => return Err(refusal(&stored, head.as_deref())),
        };
        let mut own = ChatSettings {
            model: stored.model.clone().or_else(|| view.settings.model.clone()),
            system_prompt: view.settings.system_prompt.clone(),
            ..stored.settings.clone().unwrap_or_default()
        };
        if repeated_itself(&stored) {
            own.sampling = penalized(own.sampling);
        }
        let template = RequestTemplate::of_chat(&self.core, &stored.chat, own).await?;
        if !template.capabilities.continue_answer {
            return Err(Error::CannotContinue(template.model.reference()).into());
        }
        // The next question will be asked as the chat says, and not of a model that is gone.
        let next = self.next_template(&stored.chat, view.settings).await;
        let stored = self.core.history.continue_answer(message, &self.core.owner).await?;
        // Read after the change: another process may have continued the answer meanwhile, and it may have ended again.
        let tokens = self.core.history.tokens(message).await?;
        let mut request = TurnRequest::new(template, Prompt::Below(parent));
        request.prefix = answer_prefix(&stored, &tokens);
        self.begin(LiveAnswer::continued(stored.clone(), tokens), request, next);
        self.core.shown(&stored.chat).await
    }
}

fn repeated_itself(answer: &StoredMessage) -> bool {
    let told = |code| matches!(code, NoticeCode::Repeats | NoticeCode::Repetition);
    answer.notices.iter().any(|notice| told(notice.code))
}

/// The sampling with a penalty that breaks a loop.
fn penalized(sampling: Sampling) -> Sampling {
    Sampling {
        repetition_penalty: Some(sampling.repetition_penalty.unwrap_or_default().max(LOOP_PENALTY)),
        penalty_context: Some(sampling.penalty_context.unwrap_or_default().max(LOOP_CONTEXT)),
        ..sampling
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

/// The prefix that the engine continues from: the tokens, or the text if no tokens are stored.
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
            Content::ToolCall { .. }
            | Content::Data { .. }
            | Content::Image { .. }
            | Content::File { .. }
            | Content::Passages { .. } => {}
        }
    }
    let said = |words: String| (!words.trim().is_empty()).then_some(words);
    let (thinking, text) = (said(thinking), said(text));
    (thinking.is_some() || text.is_some()).then_some(AnswerPrefix::Text { thinking, text })
}
