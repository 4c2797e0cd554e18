//! Compaction: makes room in a context that is full. The oldest turns are dropped, or a summary replaces them, here or
//! in a new chat. Nothing is deleted: a mark in the branch says from where on the model sees it.

pub(crate) mod summary;

use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{AnswerState, ChatSettings, ChatView, CompactionMark, ContextUse, StoredMessage, SummaryProgress};
use protocol::{CancelFlag, Content, Result, Role};

use crate::compaction::summary::{summarize, Summaries};
use crate::core::Core;
use crate::error::Error;
use crate::request::ahead::open_chat;
use crate::request::build::RequestTemplate;
use crate::request::compaction_mark::{after_mark, summary_of};
use crate::request::fit::context_full;

/// The context of a chat's model, and what is done when it is full.
#[derive(Clone)]
pub struct Compaction {
    core: Arc<Core>,
    /// The summaries that are being written.
    summaries: Arc<Mutex<Summaries>>,
}

impl Compaction {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            summaries: Arc::default(),
        }
    }

    /// How much of its model's context the chat takes, with this question at its end.
    ///
    /// # Errors
    /// `NotFound` for the chat; `ModelNotFound` and `ModelBroken` from the model folder; what the model's template
    /// refuses.
    pub async fn context_use(&self, chat: &str, question: &[Content]) -> Result<ContextUse> {
        let view = self.core.history.chat(chat).await?;
        let template = RequestTemplate::of_chat(&self.core, chat, view.settings).await?;
        let context = template.context(&self.core).await;
        let nothing = view.messages.is_empty() && question.is_empty();
        if nothing && template.files.is_empty() {
            return Ok(ContextUse {
                tokens: 0,
                context,
                estimated: false,
            });
        }
        // Files of a project are taken along from the first question on, and some templates refuse an empty one.
        let first = [Content::text(" ")];
        let question = if nothing { &first[..] } else { question };
        let request = template.build(&self.core, &view.messages, question).await;
        let count = self.core.engine.count(request).await?;
        Ok(ContextUse {
            tokens: count.tokens,
            context,
            estimated: count.estimated,
        })
    }

    /// Lets the model remember nothing up to and including this message, with a summary in its place or none; `None`:
    /// everything again.
    ///
    /// # Errors
    /// `NotFound` for the message.
    pub async fn set_mark(&self, message: &str, mark: Option<&CompactionMark>) -> Result<ChatView> {
        let chat = self
            .core
            .change(self.core.history.set_compaction_mark(message, mark))
            .await?;
        open_chat(&self.core, &chat).await
    }

    /// Drops the oldest turns from the model's context, so that this question and its answer have half of the context.
    ///
    /// # Errors
    /// `ContextFull` if the question alone is too long, `BadRequest` if there is nothing to drop, `Busy` while an
    /// answer is being written.
    pub async fn drop_oldest_turns(&self, chat: &str, question: &[Content]) -> Result<ChatView> {
        let (view, template) = self.with_template(chat).await?;
        let at = self.choose_mark(&view, &template, question).await?;
        let before = summary_of(&view.settings, &view.messages);
        let summary = (!before.trim().is_empty()).then(|| before.to_owned());
        let mark = CompactionMark { summary };
        self.set_mark(&view.messages[at].id, Some(&mark)).await
    }

    /// [`Compaction::drop_oldest_turns`] with a summary in their place, which the chat's model writes.
    ///
    /// # Errors
    /// As for [`Compaction::drop_oldest_turns`]; `Stopped` after [`Compaction::stop_summary`]; what the engine fails
    /// with. Nothing is changed then.
    pub async fn summarize_oldest_turns(
        &self,
        chat: &str,
        question: &[Content],
        mut progress: impl FnMut(SummaryProgress) + Send,
    ) -> Result<ChatView> {
        let (view, template) = self.with_template(chat).await?;
        let at = self.choose_mark(&view, &template, question).await?;
        let branch = &view.messages[..=at];
        let summary = Some(self.summary(&view, &template, branch, &mut progress).await?);
        self.set_mark(&view.messages[at].id, Some(&CompactionMark { summary }))
            .await
    }

    /// A new chat of this title, in the same project, that carries a summary of what was said in this one, which the
    /// chat's model writes.
    ///
    /// # Errors
    /// As for [`Compaction::summarize_oldest_turns`].
    pub async fn fork_with_summary(
        &self,
        chat: &str,
        title: &str,
        mut progress: impl FnMut(SummaryProgress) + Send,
    ) -> Result<ChatView> {
        let view = self.core.history.chat(chat).await?;
        check_idle(&view)?;
        if view.messages.is_empty() {
            return Err(Error::NothingToDrop.into());
        }
        let template = RequestTemplate::of_chat(&self.core, chat, view.settings.clone()).await?;
        let carried_summary = self.summary(&view, &template, &view.messages, &mut progress).await?;
        let settings = ChatSettings {
            carried_summary,
            ..view.settings
        };
        settings.check()?;
        let history = &self.core.history;
        let made = history.create_chat(&settings).await?.summary.id;
        history.rename_chat(&made, title).await?;
        if view.summary.project.is_some() {
            history.move_chat(&made, view.summary.project.as_deref()).await?;
        }
        self.core.changed();
        Ok(history.chat(&made).await?)
    }

    /// Ends the summary that is being made of this chat; changes nothing if there is none.
    pub fn stop_summary(&self, chat: &str) {
        if let Some(flag) = self.summaries().get(chat) {
            flag.cancel();
        }
    }

    fn summaries(&self) -> MutexGuard<'_, Summaries> {
        // Only single insertions and removals happen under this lock, so a poisoned map is still whole.
        self.summaries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn with_template(&self, chat: &str) -> Result<(ChatView, RequestTemplate)> {
        let view = self.core.history.chat(chat).await?;
        let template = RequestTemplate::of_chat(&self.core, chat, view.settings.clone()).await?;
        Ok((view, template))
    }

    /// A summary of the part of the chat that ends so; what was summarized before is in it.
    async fn summary(
        &self,
        view: &ChatView,
        template: &RequestTemplate,
        branch: &[StoredMessage],
        progress: &mut (dyn FnMut(SummaryProgress) + Send),
    ) -> Result<String> {
        let chat = &view.summary.id;
        let flag = CancelFlag::default();
        match self.summaries().entry(chat.clone()) {
            Entry::Occupied(_) => return Err(history::Error::Busy.into()),
            Entry::Vacant(place) => drop(place.insert(flag.clone())),
        }
        let before = summary_of(&view.settings, branch);
        let (_, rest) = after_mark(&view.settings, branch);
        let context = template.context(&self.core).await;
        let engine = self.core.engine.as_ref();
        let made = summarize(engine, &template.model, context, before, rest, &flag, progress).await;
        self.summaries().remove(chat);
        made
    }

    /// The message of the branch up to which the model is to forget: the first end of a turn after which the rest and
    /// the question take half of the context at most, else the last one.
    async fn choose_mark(&self, view: &ChatView, template: &RequestTemplate, question: &[Content]) -> Result<usize> {
        let messages = &view.messages;
        check_idle(view)?;
        let cut = messages.iter().rposition(|message| message.compaction_mark.is_some());
        let start = cut.map_or(0, |cut| cut + 1);
        let ends: Vec<usize> = (start..messages.len())
            .filter(|at| messages.get(at + 1).is_none_or(|next| next.role == Role::User))
            .collect();
        let Some(last) = ends.last().copied() else {
            return Err(Error::NothingToDrop.into());
        };
        let Some(context) = template.context(&self.core).await else {
            return Ok(ends[(ends.len() - 1) / 2]);
        };
        let (mut low, mut high) = (0, ends.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.tokens_after(view, template, ends[middle], question).await? <= context / 2 {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        if let Some(at) = ends.get(low) {
            return Ok(*at);
        }
        match self.tokens_after(view, template, last, question).await? {
            tokens if tokens >= context => Err(context_full(&self.core, template, tokens, context).await),
            _ => Ok(last),
        }
    }

    /// Tokens of what the model would be asked if it forgot up to this message.
    async fn tokens_after(
        &self,
        view: &ChatView,
        template: &RequestTemplate,
        at: usize,
        question: &[Content],
    ) -> Result<u32> {
        let rest = &view.messages[at + 1..];
        if rest.is_empty() && question.is_empty() {
            return Ok(0);
        }
        let request = template.build(&self.core, rest, question).await;
        Ok(self.core.engine.count(request).await?.tokens)
    }
}

/// Fails with `Busy` while an answer of the branch is being written.
fn check_idle(view: &ChatView) -> Result<()> {
    match view
        .messages
        .iter()
        .any(|message| message.state == AnswerState::Streaming)
    {
        true => Err(history::Error::Busy.into()),
        false => Ok(()),
    }
}
