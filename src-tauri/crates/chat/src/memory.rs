//! What a model remembers of a chat, and what can be done when its context is full: going on without the oldest turns, a summary in their
//! place, another chat that carries one. Nothing is deleted: a mark in the branch says where the model's memory begins.

use std::collections::hash_map::Entry;
use std::sync::PoisonError;

use protocol::{
    AnswerState, CancelFlag, ChatSettings, ChatView, Content, ContextUse, Error as Failure, ErrorCode, MemoryCut, ModelSource, Position,
    Request, Result, Role, StoredMessage,
};

use crate::error::Error;
use crate::pictures::{self, attachments};
use crate::summary::{summarise, Summaries};
use crate::turn::AnswerRequest;
use crate::Chat;

/// Stands before a summary in the instructions.
const SUMMARY: &str = "Summary of the earlier conversation:";

/// No model's context is shorter than so many tokens, and a token is a byte or more.
const ALWAYS_FITS: usize = 512;

/// The instructions for a branch, with what stands in place of what the model does not remember, and the part that it does.
pub(crate) fn remembered<'a>(settings: &ChatSettings, branch: &'a [StoredMessage]) -> (String, &'a [StoredMessage]) {
    let cut = branch.iter().rposition(|message| message.memory_cut.is_some());
    let rest = &branch[cut.map_or(0, |cut| cut + 1)..];
    let summary = summary_of(settings, branch).trim();
    let instructions = match (settings.system_prompt.trim(), summary) {
        (_, "") => settings.system_prompt.clone(),
        ("", summary) => format!("{SUMMARY}\n{summary}"),
        (instructions, summary) => format!("{instructions}\n\n{SUMMARY}\n{summary}"),
    };
    (instructions, rest)
}

/// What the model is told of what it does not remember of a branch.
fn summary_of<'a>(settings: &'a ChatSettings, branch: &'a [StoredMessage]) -> &'a str {
    let cut = branch.iter().rev().find_map(|message| message.memory_cut.as_ref());
    cut.and_then(|cut| cut.summary.as_deref()).unwrap_or(&settings.carried_summary)
}

impl Chat {
    /// How much of its model's context the chat takes, with this question at its end.
    ///
    /// # Errors
    /// `NotFound` for the chat; `ModelNotFound` and `ModelBroken` from the model folder; what the model's template refuses.
    pub async fn context_use(&self, chat: &str, question: &[Content]) -> Result<ContextUse> {
        let view = self.chat(chat).await?;
        let (_, ask) = self.answer_request(chat, view.settings).await?;
        let context = self.context_of(&ask).await;
        // Files of a folder are taken along from the first question on, and some templates refuse an empty one.
        let first = [Content::text(" ")];
        let question = match (view.messages.is_empty() && question.is_empty(), ask.files.is_empty()) {
            (false, _) => question,
            (true, false) => &first[..],
            (true, true) => {
                return Ok(ContextUse {
                    tokens: 0,
                    context,
                    estimated: false,
                })
            }
        };
        let request = self.request_for(&ask, &view.messages, question).await;
        let count = self.0.engine.count(request).await?;
        Ok(ContextUse {
            tokens: count.tokens,
            context,
            estimated: count.estimated,
        })
    }

    /// Lets the model remember nothing up to and including this message, with a summary in its place or none; `None`: everything again.
    ///
    /// # Errors
    /// `NotFound` for the message.
    pub async fn set_memory_cut(&self, message: &str, cut: Option<&MemoryCut>) -> Result<ChatView> {
        let chat = self.0.history.set_memory_cut(message, cut).await?;
        self.0.changed();
        self.open_chat(&chat).await
    }

    /// Lets the model forget the oldest turns, so that this question and its answer have half of the context.
    ///
    /// # Errors
    /// `ContextFull` if the question alone is too long, `BadRequest` if there is nothing to forget, `Busy` while an answer is being written.
    pub async fn forget_oldest(&self, chat: &str, question: &[Content]) -> Result<ChatView> {
        let view = self.chat(chat).await?;
        let (_, ask) = self.answer_request(chat, view.settings.clone()).await?;
        let at = self.choose_cut(&view, &ask, question).await?;
        let before = summary_of(&view.settings, &view.messages);
        let summary = (!before.trim().is_empty()).then(|| before.to_owned());
        self.set_memory_cut(&view.messages[at].id, Some(&MemoryCut { summary })).await
    }

    /// [`Chat::forget_oldest`] with a summary in their place, which the chat's model writes.
    ///
    /// # Errors
    /// As for [`Chat::forget_oldest`]; `Stopped` after [`Chat::stop_summary`]; what the engine fails with. Nothing is changed then.
    pub async fn summarise_oldest(&self, chat: &str, question: &[Content]) -> Result<ChatView> {
        let view = self.chat(chat).await?;
        let (_, ask) = self.answer_request(chat, view.settings.clone()).await?;
        let at = self.choose_cut(&view, &ask, question).await?;
        let summary = self.summary(&view, &ask, &view.messages[..=at]).await?;
        self.set_memory_cut(&view.messages[at].id, Some(&MemoryCut { summary: Some(summary) }))
            .await
    }

    /// A new chat of this title, in the same folder, that carries a summary of what was said in this one, which the chat's model writes.
    ///
    /// # Errors
    /// As for [`Chat::summarise_oldest`].
    pub async fn carry_over(&self, chat: &str, title: &str) -> Result<ChatView> {
        let view = self.chat(chat).await?;
        if view.messages.iter().any(|message| message.state == AnswerState::Streaming) {
            return Err(history::Error::Busy.into());
        }
        if view.messages.is_empty() {
            return Err(Error::NothingToForget.into());
        }
        let (_, ask) = self.answer_request(chat, view.settings.clone()).await?;
        let carried_summary = self.summary(&view, &ask, &view.messages).await?;
        let settings = ChatSettings {
            carried_summary,
            ..view.settings
        };
        let made = self.create(settings).await?.summary.id;
        self.rename(&made, title).await?;
        if view.summary.folder.is_some() {
            self.0.history.move_chat(&made, view.summary.folder.as_deref()).await?;
        }
        self.chat(&made).await
    }

    /// Ends the summary that is being made of this chat; changes nothing if there is none.
    pub fn stop_summary(&self, chat: &str) {
        if let Some(flag) = self.summaries().get(chat) {
            flag.cancel();
        }
    }

    fn summaries(&self) -> std::sync::MutexGuard<'_, Summaries> {
        // Only single insertions and removals happen under this lock, so a poisoned map is still whole.
        self.0.summaries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A summary of the part of the chat that ends so; what was summarised before is in it.
    async fn summary(&self, view: &ChatView, ask: &AnswerRequest, branch: &[StoredMessage]) -> Result<String> {
        let chat = &view.summary.id;
        let flag = CancelFlag::default();
        match self.summaries().entry(chat.clone()) {
            Entry::Occupied(_) => return Err(history::Error::Busy.into()),
            Entry::Vacant(place) => drop(place.insert(flag.clone())),
        }
        let before = summary_of(&view.settings, branch);
        let (_, rest) = remembered(&view.settings, branch);
        let context = self.context_of(ask).await;
        let made = summarise(self.0.engine.as_ref(), ask, context, before, rest, &flag).await;
        self.summaries().remove(chat);
        made
    }

    /// Refuses a question at this position that does not fit the model's context, before anything is stored.
    pub(crate) async fn check_fits(&self, head: Option<&str>, position: &Position, ask: &AnswerRequest, content: &[Content]) -> Result<()> {
        let parent = match position {
            Position::End => head,
            Position::Beginning => None,
            Position::After(message) => Some(message.as_str()),
        };
        let branch = match parent {
            Some(parent) => self.0.history.branch(parent).await?,
            None => Vec::new(),
        };
        let words = pictures::request(&self.0.history, ask, &branch, content, false).await;
        let messages = &words.messages;
        let said: usize = messages.iter().map(|message| message.text_with_placeholders().len()).sum();
        let pictures = messages.iter().any(|message| !attachments(&message.content).is_empty());
        if !pictures && said < ALWAYS_FITS {
            return Ok(());
        }
        let Some(context) = self.context_of(ask).await else {
            return Ok(());
        };
        if !pictures && said < context as usize {
            return Ok(());
        }
        let request = match pictures {
            true => self.request_for(ask, &branch, content).await,
            false => words,
        };
        match self.0.engine.count(request).await {
            Ok(count) if count.tokens >= context && !count.estimated => Err(self.full(ask, count.tokens, context).await),
            // What is wrong with it, the engine says in its own words.
            _ => Ok(()),
        }
    }

    async fn request_for(&self, ask: &AnswerRequest, branch: &[StoredMessage], question: &[Content]) -> Request {
        let sees = self.0.engine.capabilities(&ask.model).images;
        pictures::request(&self.0.history, ask, branch, question, sees).await
    }

    /// The tokens of its model's context that a chat uses, if that is known on this computer.
    async fn context_of(&self, ask: &AnswerRequest) -> Option<u32> {
        let context = self.model_context(&ask.model).await?;
        Some(ask.settings.context.map_or(context, |most| most.min(context)))
    }

    /// The tokens that a model's context holds, if that is known on this computer.
    async fn model_context(&self, model: &ModelSource) -> Option<u32> {
        model.folder()?;
        let reference = model.reference();
        let loaded = self
            .0
            .engine
            .local()
            .and_then(|local| local.loaded().into_iter().find(|info| info.reference == reference));
        if let Some(info) = loaded {
            return Some(info.context);
        }
        let shelf = self.0.shelf.clone();
        let listed = tokio::task::spawn_blocking(move || shelf.list()).await.unwrap_or_default();
        listed.into_iter().find(|model| model.reference == reference)?.context
    }

    /// The message of the branch up to which the model is to forget: the first end of a turn after which the rest and the question take half
    /// of the context at most, else the last one.
    async fn choose_cut(&self, view: &ChatView, ask: &AnswerRequest, question: &[Content]) -> Result<usize> {
        let messages = &view.messages;
        if messages.iter().any(|message| message.state == AnswerState::Streaming) {
            return Err(history::Error::Busy.into());
        }
        let start = messages
            .iter()
            .rposition(|message| message.memory_cut.is_some())
            .map_or(0, |cut| cut + 1);
        let ends: Vec<usize> = (start..messages.len())
            .filter(|at| messages.get(at + 1).is_none_or(|next| next.role == Role::User))
            .collect();
        let Some(last) = ends.last().copied() else {
            return Err(Error::NothingToForget.into());
        };
        let Some(context) = self.context_of(ask).await else {
            return Ok(ends[(ends.len() - 1) / 2]);
        };
        let (mut low, mut high) = (0, ends.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.tokens_after(view, ask, ends[middle], question).await? <= context / 2 {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        if let Some(at) = ends.get(low) {
            return Ok(*at);
        }
        match self.tokens_after(view, ask, last, question).await? {
            tokens if tokens >= context => Err(self.full(ask, tokens, context).await),
            _ => Ok(last),
        }
    }

    /// Why nothing of so many tokens can be asked, with what the files of the chat's folder take of them.
    async fn full(&self, ask: &AnswerRequest, prompt: u32, context: u32) -> Failure {
        let files = match ask.files.is_empty() {
            true => 0,
            false => self
                .content_tokens(Some(&ask.model.reference()), ask.files.clone())
                .await
                .map_or(0, |count| count.tokens),
        };
        full(prompt, context, files)
    }

    /// Tokens of what the model would be asked if it forgot up to this message.
    async fn tokens_after(&self, view: &ChatView, ask: &AnswerRequest, at: usize, question: &[Content]) -> Result<u32> {
        let rest = &view.messages[at + 1..];
        if rest.is_empty() && question.is_empty() {
            return Ok(0);
        }
        let request = self.request_for(ask, rest, question).await;
        Ok(self.0.engine.count(request).await?.tokens)
    }
}

fn full(prompt: u32, context: u32, files: u32) -> Failure {
    let (of_files, advice) = match files {
        0 => (String::new(), ""),
        files => (
            format!(", of which the files of its folder take {files},"),
            "remove a file from the folder, ",
        ),
    };
    let message = format!(
        "the chat and this question have {prompt} tokens{of_files} and the model's context holds {context}, so no answer fits; nothing was stored. \
         Go on without the oldest turns, {advice}or choose a model with a longer context"
    );
    let failure = Failure::new(ErrorCode::ContextFull, message)
        .with("prompt", prompt)
        .with("context", context);
    match files {
        0 => failure,
        files => failure.with("files", files),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(system_prompt: &str, carried_summary: &str) -> ChatSettings {
        ChatSettings {
            system_prompt: system_prompt.into(),
            carried_summary: carried_summary.into(),
            ..ChatSettings::default()
        }
    }

    #[test]
    fn the_last_mark_of_a_branch_counts_and_a_carried_summary_stays_until_another_is_made() {
        let mut branch: Vec<StoredMessage> = [Role::User, Role::Assistant, Role::User, Role::Assistant]
            .map(StoredMessage::new)
            .into();
        let told = |branch: &[StoredMessage], settings: &ChatSettings| {
            let (instructions, rest) = remembered(settings, branch);
            (instructions, rest.len())
        };
        assert_eq!(told(&branch, &settings(" Be short. ", "")), (" Be short. ".to_owned(), 4));
        assert_eq!(told(&branch, &settings("", "Cats.")), (format!("{SUMMARY}\nCats."), 4));
        branch[1].memory_cut = Some(MemoryCut { summary: None });
        assert_eq!(told(&branch, &settings("A", "Cats.")), (format!("A\n\n{SUMMARY}\nCats."), 2));
        branch[3].memory_cut = Some(MemoryCut {
            summary: Some("Dogs.".into()),
        });
        assert_eq!(told(&branch, &settings("A", "Cats.")), (format!("A\n\n{SUMMARY}\nDogs."), 0));
    }
}
