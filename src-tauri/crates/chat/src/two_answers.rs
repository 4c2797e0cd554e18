//! One question to two models, or to one that is set in two ways: both answers are written at once, as siblings.

use protocol::{ChatSettings, Content, Position, Result, TurnWithTwoAnswers};

use crate::live_answer::LiveAnswer;
use crate::title::title;
use crate::{question, Chat};

impl Chat {
    /// Stores a question at this position and begins two answers to it, each with settings of its own. The chat looks at the first, and keeps
    /// its settings. Nothing is stored if one of them cannot be asked; it fails as [`Chat::send`] does, also for values that no request may have.
    pub async fn send_to_two(
        &self,
        chat: &str,
        content: &[Content],
        position: &Position,
        settings: [ChatSettings; 2],
    ) -> Result<TurnWithTwoAnswers> {
        question::check(content)?;
        let (view, head) = self.0.history.chat_head(chat).await?;
        let mut prepared = Vec::with_capacity(settings.len());
        for settings in settings {
            settings.check()?;
            let (answer, ask) = self.prepare(chat, settings).await?;
            self.check_sees(&ask.model, content).await?;
            self.check_fits(head.as_deref(), position, &ask, content).await?;
            prepared.push((answer, ask));
        }
        let answers = [&prepared[0].0, &prepared[1].0];
        let turn = self
            .0
            .history
            .begin_turn_with_two_answers(chat, content, position, &title(content), answers)
            .await?;
        // The next question is asked as the chat says; it is read ahead once, after the answer that the chat looks at.
        let mut next = self.answer_request(chat, view.settings).await.ok().map(|(_, next)| next);
        for (answer, (_, mut ask)) in turn.answers.iter().zip(prepared) {
            ask.parent.clone_from(&turn.question.id);
            self.begin(LiveAnswer::new(answer.clone()), ask, next.take());
        }
        Ok(turn)
    }
}
