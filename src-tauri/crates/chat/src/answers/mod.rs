//! Turns: questions, answers, the results of tools, titles.

mod continuation;
mod fallback_title;
mod generated_title;
mod question;
mod reading;
mod tool_calls;
mod tool_results;
mod two_answers;
mod write;

use std::sync::Arc;

use api::{AnswerEvent, AnswerState, ChatSettings, ChatView, Position, RunningAnswer, StoredMessage, Turn};
use history::NewAnswer;
use protocol::{Content, Receiver, Result, Role};

use crate::answers::fallback_title::fallback_title;
use crate::answers::generated_title::write_title;
use crate::answers::write::{write_answer, Prompt, TurnRequest};
use crate::core::Core;
use crate::cross_process::answer::{finished, follow};
use crate::error::Error;
use crate::live::answer::LiveAnswer;
use crate::request::ahead::prefetch_next;
use crate::request::build::RequestTemplate;
use crate::request::fit::{build_fitting, check_vision, position_parent, FittingRequest};

/// Questions and their answers.
#[derive(Clone)]
pub struct Answers {
    core: Arc<Core>,
}

impl Answers {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Stores a question at this position and begins its answer. Nothing is stored if this fails: `BadRequest` for a
    /// question that is empty or holds what only an answer holds, `NotFound` for a position outside the chat, `Busy`
    /// while the chat has a running answer (in any process), `ModelNotFound` and `ModelBroken` from the model folder,
    /// `ImageNotSeen` for an image and a model that does not see, `ContextFull` for one that does not fit. One of
    /// which only the engine finds that it does not fit is taken back: the answer ends with that error, and question
    /// and answer are no longer in the chat.
    pub async fn send(&self, chat: &str, content: &[Content], position: &Position) -> Result<Turn> {
        question::check(content)?;
        self.ask(chat, content, position).await
    }

    /// Asks a question that may have passages with it.
    async fn ask(&self, chat: &str, content: &[Content], position: &Position) -> Result<Turn> {
        let (view, head) = self.core.history.chat_head(chat).await?;
        let prepared = self.prepare_question(chat, head.as_deref(), position, content, view.settings);
        let (answer, template, fitting) = prepared.await?;
        let (history, title) = (&self.core.history, fallback_title(content));
        let content = &fitting.content;
        let turn = history.begin_turn(chat, content, position, &title, &answer).await?;
        let next = template.clone();
        let mut request = TurnRequest::new(template, prompt_of(fitting, &turn.question));
        request.retractable = Some(turn.question.clone());
        self.begin(LiveAnswer::new(turn.answer.clone()), request, Some(next));
        self.stop_closed_calls(chat).await?;
        Ok(turn)
    }

    /// Begins another answer to the question that this message is, or whose turn it is a part of; earlier answers stay
    /// as its siblings. It is asked with these settings, or those of the chat. Fails as [`Answers::send`] does.
    pub async fn regenerate(&self, message: &str, settings: Option<ChatSettings>) -> Result<ChatView> {
        settings.as_ref().map_or(Ok(()), ChatSettings::check)?;
        let mut branch = self.core.history.branch(message).await?;
        let question = branch.iter().rposition(|message| message.role == Role::User);
        branch.truncate(question.map_or(0, |question| question + 1));
        self.begin_answer(branch, settings).await
    }

    /// Ends the thought of an answer soon, whichever process writes it, so that what it says follows. Changes nothing
    /// if it does not think or has ended.
    pub async fn answer_now(&self, message: &str) -> Result<()> {
        if let Some(running) = self.core.find(message) {
            running.answer_now.send_replace(true);
            return Ok(());
        }
        Ok(self.core.history.request_answer_now(message).await?)
    }

    /// Ends an answer soon, whichever process writes it, and its calls, if this one runs them; what it said stays. Changes nothing if it has ended.
    pub async fn stop(&self, message: &str) -> Result<()> {
        self.stop_calls(message);
        if let Some(running) = self.core.find(message) {
            running.stop.send_replace(true);
            return Ok(());
        }
        Ok(self.core.history.request_stop(message).await?)
    }

    /// The answers that this process is writing.
    pub fn running(&self) -> Vec<RunningAnswer> {
        let running = |answer: &Arc<LiveAnswer>| RunningAnswer {
            chat: answer.chat.clone(),
            message: answer.message.clone(),
        };
        self.core.live().values().map(running).collect()
    }

    /// The events of an answer after number `from` (0: all), then those that come, up to `Finished`. Many may attach,
    /// also to an answer of another process (see [`AnswerEvent`] for what the numbers mean) or one that has ended.
    pub async fn attach(&self, message: &str, from: u64) -> Result<Receiver<AnswerEvent>> {
        if let Some(running) = self.core.find(message) {
            return Ok(running.attach(from));
        }
        let stored = self.core.history.message(message).await?;
        Ok(match stored.state {
            AnswerState::Streaming => follow(self.core.history.clone(), stored.id, from),
            _ => finished(stored, from),
        })
    }

    /// Checks that a question can be asked at this position with these settings, and builds its request.
    async fn prepare_question(
        &self,
        chat: &str,
        head: Option<&str>,
        position: &Position,
        content: &[Content],
        settings: ChatSettings,
    ) -> Result<(NewAnswer, RequestTemplate, FittingRequest)> {
        let (answer, template) = self.prepare(chat, settings).await?;
        check_vision(&self.core, &template, content).await?;
        let fitting = build_fitting(&self.core, &template, head, position, content).await?;
        Ok((answer, template, fitting))
    }

    /// The messages before a question at this position.
    async fn branch_at(&self, head: Option<&str>, position: &Position) -> Result<Vec<StoredMessage>> {
        match position_parent(head, position) {
            Some(parent) => Ok(self.core.history.branch(parent).await?),
            None => Ok(Vec::new()),
        }
    }

    /// The answer that is stored as begun with these settings, and what it is asked with.
    async fn prepare(&self, chat: &str, settings: ChatSettings) -> Result<(NewAnswer, RequestTemplate)> {
        let template = RequestTemplate::of_chat(&self.core, chat, settings).await?;
        // An answer whose process died must not keep its chat busy.
        self.core.mark_interrupted().await?;
        let (shelf, used) = (self.core.shelf.clone(), template.reference.clone());
        // A small file is written, which the answer does not wait for.
        tokio::task::spawn_blocking(move || shelf.used(&used));
        let answer = NewAnswer {
            model: template.reference.clone(),
            settings: template.settings.clone(),
            owner: self.core.owner.clone(),
        };
        Ok((answer, template))
    }

    /// How the chat asks the next question, with its own settings; `None` if its model is gone.
    async fn next_template(&self, chat: &str, settings: ChatSettings) -> Option<RequestTemplate> {
        RequestTemplate::of_chat(&self.core, chat, settings).await.ok()
    }

    /// Begins an answer to the end of this branch, a question or the results of tools, with these settings or those of
    /// the chat.
    async fn begin_answer(&self, branch: Vec<StoredMessage>, settings: Option<ChatSettings>) -> Result<ChatView> {
        let last = branch.last().ok_or(Error::NothingToAnswer)?;
        let (chat, parent) = (last.chat.clone(), last.id.clone());
        let (view, _) = self.core.history.chat_head(&chat).await?;
        let next = self.next_template(&chat, view.settings.clone()).await;
        let (answer, template) = self.prepare(&chat, settings.unwrap_or(view.settings)).await?;
        let answer = self.core.history.begin_answer(&parent, &answer).await?;
        let request = TurnRequest::new(template, Prompt::Branch(branch));
        self.begin(LiveAnswer::new(answer), request, next);
        self.core.shown(&chat).await
    }

    /// Has the answer written; `next` is how the next question will be asked, if that is known.
    fn begin(&self, running: Arc<LiveAnswer>, turn: TurnRequest, next: Option<RequestTemplate>) {
        let registration = self.core.register(running.clone());
        let (core, answers) = (self.core.clone(), self.clone());
        tokio::spawn(async move {
            let (model, tools) = (turn.template.model.clone(), turn.template.tools.clone());
            write_answer(&core, running.clone(), turn).await;
            // The answer has ended for everybody before anything is done for the next one.
            drop(registration);
            if let Err(error) = answers.follow_up(&running.message, tools).await {
                tracing::debug!(%error, "the calls of an answer could not be run");
            }
            if let Some(next) = next {
                prefetch_next(&core, &next, &running.message).await;
            }
            write_title(&core, &running.message, &model).await;
        });
    }
}

/// The request that was checked, unless the question was stored elsewhere: after results for calls that were not run,
/// or after a message that another process added meanwhile.
fn prompt_of(fitting: FittingRequest, question: &StoredMessage) -> Prompt {
    match fitting.parent == question.parent {
        true => Prompt::Built(Box::new(fitting.request)),
        false => Prompt::Below(question.id.clone()),
    }
}
