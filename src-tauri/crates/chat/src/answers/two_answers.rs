//! One question to two models, or to one that is set in two ways: both answers are written at once, as siblings.

use api::{ChatSettings, Position, TurnWithTwoAnswers};
use protocol::{Content, Result};

use crate::answers::fallback_title::fallback_title;
use crate::answers::write::TurnRequest;
use crate::answers::{prompt_of, question, Answers};
use crate::live::answer::LiveAnswer;

impl Answers {
    /// Stores a question at this position and begins two answers to it, each with settings of its own. The chat looks
    /// at the first, and keeps its settings. Nothing is stored if one of them cannot be asked; it fails as
    /// [`Answers::send`] does, also for values that no request may have.
    pub async fn send_to_two(
        &self,
        chat: &str,
        content: &[Content],
        position: &Position,
        settings: [ChatSettings; 2],
    ) -> Result<TurnWithTwoAnswers> {
        question::check(content)?;
        let (view, head) = self.core.history.chat_head(chat).await?;
        let title = fallback_title(content);
        let (mut prepared, mut content) = (Vec::with_capacity(settings.len()), content.to_vec());
        for settings in settings {
            settings.check()?;
            let one = self.prepare_question(chat, head.as_deref(), position, &content, settings);
            let one = one.await?;
            // Both are given the same passages.
            content.clone_from(&one.2.content);
            prepared.push(one);
        }
        let answers = [&prepared[0].0, &prepared[1].0];
        let history = &self.core.history;
        let turn = history
            .begin_turn_with_two_answers(chat, &content, position, &title, answers)
            .await?;
        // The next question is asked as the chat says; it is prefetched once, after the answer that the chat shows.
        let mut next = self.next_template(chat, view.settings).await;
        for (answer, (_, template, fitting)) in turn.answers.iter().zip(prepared) {
            let request = TurnRequest::new(template, prompt_of(fitting, &turn.question));
            self.begin(LiveAnswer::new(answer.clone()), request, next.take());
        }
        Ok(turn)
    }
}
