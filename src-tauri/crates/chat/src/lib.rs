//! One turn of a conversation: from the stored branch through the engine to the stored answer, with everybody who watches
//! it. Knows an engine only as a trait, the history file only through `history`, and no window at all.
//!
//! Invariants: what an answer says is on disk within 250 ms; every answer ends, whatever fails, with one `Finished`; a
//! window that attaches from number n gets every event after n once; a slow window holds up nobody.

mod continuation;
mod conversation;
mod error;
mod foreign_answer;
mod live_answer;
mod model_users;
mod owner;
mod pictures;
mod settings;
mod shown_pictures;
mod title;
mod tool_results;
mod turn;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use history::{now, History, NewAnswer};
pub use history::{stored_settings, SearchHit};
use protocol::{
    AnswerEvent, AnswerState, Capabilities, ChatSettings, ChatSummary, ChatView, Content, Engine, ModelShelf, ModelSource, Position,
    Receiver, Result, Role, Settings, Turn,
};
pub use shown_pictures::{PictureFile, ShownPicture};
use tokio::sync::watch;
use tokio::time::{interval, timeout, MissedTickBehavior};

use crate::error::Error;
use crate::live_answer::LiveAnswer;
use crate::owner::Owner;
use crate::pictures::{add_images, attachments};
use crate::shown_pictures::Previews;
use crate::turn::{prefetch, prefetch_next, write_answer, AnswerRequest};

/// How long a chat stays in the trash, in milliseconds.
const TRASH_LASTS: i64 = 30 * 24 * 3600 * 1000;

/// How long a picture is kept that no message and no draft names, in milliseconds: one is added before its message is sent.
const UNLINKED_LASTS: i64 = 24 * 3600 * 1000;

/// How often the file is asked whether another process wrote to it; every fifth time also for dead ones.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The longest wait for stopped answers to be stored.
const STOP_LASTS: Duration = Duration::from_secs(2);

/// All chats of one history file, with one engine. Clones are the same; it lives in a tokio runtime.
#[derive(Clone)]
pub struct Chat(Arc<Inner>);

struct Inner {
    history: History,
    engine: Arc<dyn Engine>,
    shelf: Arc<dyn ModelShelf>,
    /// This process, as the history file calls it.
    owner: String,
    /// The answers that this process writes, by message.
    running: Mutex<HashMap<String, Arc<LiveAnswer>>>,
    /// What windows were shown of pictures last.
    previews: Previews,
    changes: watch::Sender<()>,
    settings: watch::Sender<Settings>,
}

impl Chat {
    /// Opens the history file. Answers whose process died are marked interrupted, and what lay in the trash for 30 days is
    /// deleted.
    pub async fn open(database: &Path, engine: Arc<dyn Engine>, shelf: Arc<dyn ModelShelf>) -> Result<Self> {
        let history = History::open(database).await?;
        let settings = history.settings().await?;
        let inner = Arc::new(Inner {
            history,
            engine,
            shelf,
            owner: Owner::this_process().to_string(),
            running: Mutex::default(),
            previews: Previews::default(),
            changes: watch::Sender::new(()),
            settings: watch::Sender::new(settings),
        });
        inner.mark_interrupted().await?;
        inner.history.purge_trash(now() - TRASH_LASTS).await?;
        if let Err(error) = inner.history.remove_unlinked_attachments(now() - UNLINKED_LASTS).await {
            tracing::warn!(%error, "pictures that nobody needs any more could not be removed");
        }
        tokio::spawn(watch_other_processes(Arc::downgrade(&inner)));
        Ok(Self(inner))
    }

    /// The chats outside the trash: pinned first, then newest first.
    pub async fn chats(&self) -> Result<Vec<ChatSummary>> {
        Ok(self.0.history.chats().await?)
    }

    /// How many chats, without those in the trash, a model was the last to answer.
    pub async fn answered_by(&self, model: &str) -> Result<u32> {
        Ok(self.0.history.chats_answered_by(model).await?)
    }

    /// A chat with the branch that is looked at.
    pub async fn chat(&self, chat: &str) -> Result<ChatView> {
        Ok(self.0.history.chat(chat).await?)
    }

    /// [`Chat::chat`] for somebody who will continue it: the loaded model, if it is the chat's, prefetches it meanwhile.
    pub async fn open_chat(&self, chat: &str) -> Result<ChatView> {
        let view = self.chat(chat).await?;
        self.prefetch(&view);
        Ok(view)
    }

    /// Lets the engine read, when it has nothing else to do, what the next question of a chat will come after.
    fn prefetch(&self, view: &ChatView) {
        let nothing = view.messages.is_empty() && attachments(&view.draft).is_empty();
        if nothing || view.messages.iter().any(|message| message.state == AnswerState::Streaming) {
            return;
        }
        let (chat, view) = (self.clone(), view.clone());
        tokio::spawn(async move {
            match chat.answer_request(view.settings).await {
                Ok((_, ask)) => {
                    let (history, engine) = (&chat.0.history, chat.0.engine.as_ref());
                    let sees = engine.capabilities(&ask.model).images;
                    let mut request = pictures::request(history, &ask, &view.messages, sees).await;
                    if sees {
                        // What the next question will show can be looked at while it is typed.
                        add_images(history, &mut request, attachments(&view.draft).into_iter().collect()).await;
                    }
                    prefetch(engine, request);
                }
                Err(error) => tracing::debug!(%error, "a chat could not be read ahead"),
            }
        });
    }

    /// What can be done with the model of this reference, or with the default model.
    ///
    /// # Errors
    /// `ModelNotFound` and `ModelBroken` from the model folder.
    pub async fn capabilities(&self, reference: Option<&str>) -> Result<Capabilities> {
        let reference = match reference {
            Some(reference) => reference.to_owned(),
            None => self.default_model().await?,
        };
        Ok(self.0.engine.capabilities(&self.resolve(&reference).await?))
    }

    /// A new, empty chat.
    pub async fn create(&self, settings: ChatSettings) -> Result<ChatView> {
        let view = self.0.history.create_chat(&settings).await?;
        self.0.changed();
        Ok(view)
    }

    /// Gives a chat another title.
    pub async fn rename(&self, chat: &str, title: &str) -> Result<()> {
        self.0.history.rename_chat(chat, title).await?;
        self.0.changed();
        Ok(())
    }

    /// Keeps a chat at the top, or not.
    pub async fn pin(&self, chat: &str, pinned: bool) -> Result<()> {
        self.0.history.pin_chat(chat, pinned).await?;
        self.0.changed();
        Ok(())
    }

    /// Stops what runs in a chat and puts it into the trash, where it can be restored for 30 days.
    pub async fn delete(&self, chat: &str) -> Result<()> {
        let answers: Vec<_> = self.0.running().values().filter(|running| running.chat == chat).cloned().collect();
        stop_and_wait(answers).await;
        for foreign in self.0.history.running().await? {
            if foreign.chat == chat {
                self.0.history.request_stop(&foreign.id).await?;
            }
        }
        self.0.history.trash_chat(chat).await?;
        self.0.changed();
        Ok(())
    }

    /// Takes a chat out of the trash.
    pub async fn restore(&self, chat: &str) -> Result<ChatSummary> {
        let summary = self.0.history.restore_chat(chat).await?;
        self.0.changed();
        Ok(summary)
    }

    /// What a chat remembers for its next turn.
    pub async fn set_settings(&self, chat: &str, settings: &ChatSettings) -> Result<()> {
        self.0.history.set_chat_settings(chat, settings).await?;
        // Instructions and the Thinking switch stand before all the rest.
        self.open_chat(chat).await?;
        Ok(())
    }

    /// What was written and not sent. A picture that comes into it is looked at ahead, if the engine can do that.
    pub async fn set_draft(&self, chat: &str, draft: &[Content]) -> Result<()> {
        let shown = attachments(draft);
        let before = match shown.is_empty() {
            true => shown.clone(),
            false => attachments(&self.0.history.chat_head(chat).await?.0.draft),
        };
        self.0.history.set_draft(chat, draft).await?;
        if !shown.is_subset(&before) {
            self.open_chat(chat).await?;
        }
        Ok(())
    }

    /// Stores a question at this position and begins its answer. Nothing is stored if this fails: `BadRequest` for a question
    /// that is empty or holds what only an answer holds, `NotFound` for a position outside the chat, `Busy` while the chat has a
    /// running answer (in any process), `ModelNotFound` and `ModelBroken` from the model folder, `PictureNotSeen` for a picture and a
    /// model that does not see.
    pub async fn send(&self, chat: &str, content: &[Content], position: &Position) -> Result<Turn> {
        let says_something = |content: &Content| match content {
            Content::Text { text } => !text.trim().is_empty(),
            Content::Thinking { .. } | Content::ToolCall { .. } | Content::Data { .. } | Content::Image { .. } | Content::File { .. } => {
                true
            }
        };
        let is_of_answers =
            |content: &Content| matches!(content, Content::Thinking { .. } | Content::ToolCall { .. } | Content::Data { .. });
        if !content.iter().any(says_something) {
            return Err(Error::EmptyQuestion.into());
        }
        if content.iter().any(is_of_answers) {
            return Err(Error::NoQuestion.into());
        }
        let (view, _) = self.0.history.chat_head(chat).await?;
        let (answer, mut request) = self.prepare(view.settings).await?;
        self.check_sees(&request.model, content).await?;
        let turn = self
            .0
            .history
            .begin_turn(chat, content, position, &title::title(content), &answer)
            .await?;
        request.parent = turn.question.id.clone();
        self.begin(LiveAnswer::new(turn.answer.clone()), request.clone(), Some(request));
        Ok(turn)
    }

    /// Begins another answer to the question that this message is, or whose turn it is a part of; earlier answers stay as its
    /// siblings. Fails as [`Chat::send`] does.
    pub async fn regenerate(&self, message: &str) -> Result<ChatView> {
        let branch = self.0.history.branch(message).await?;
        let question = branch.into_iter().rfind(|message| message.role == Role::User);
        let question = question.ok_or(Error::NothingToAnswer)?;
        self.begin_answer(&question.chat, question.id).await
    }

    /// What the settings ask for; the question is filled in later.
    async fn prepare(&self, settings: ChatSettings) -> Result<(NewAnswer, AnswerRequest)> {
        let (reference, ask) = self.answer_request(settings).await?;
        // An answer whose process died must not keep its chat busy.
        self.0.mark_interrupted().await?;
        let (shelf, used) = (self.0.shelf.clone(), reference.clone());
        // A small file is written, which the answer does not wait for.
        tokio::task::spawn_blocking(move || shelf.used(&used));
        let answer = NewAnswer {
            model: reference,
            settings: ask.settings.clone(),
            owner: self.0.owner.clone(),
        };
        Ok((answer, ask))
    }

    /// What the settings ask for, and the model's reference.
    async fn answer_request(&self, settings: ChatSettings) -> Result<(String, AnswerRequest)> {
        let reference = match &settings.model {
            Some(reference) => reference.clone(),
            None => self.default_model().await?,
        };
        let model = self.resolve(&reference).await?;
        let ask = AnswerRequest {
            parent: String::new(),
            model,
            settings,
            prefix: None,
        };
        Ok((reference, ask))
    }

    async fn resolve(&self, reference: &str) -> Result<ModelSource> {
        let (shelf, reference) = (self.0.shelf.clone(), reference.to_owned());
        let resolved = tokio::task::spawn_blocking(move || shelf.resolve(&reference)).await;
        resolved.unwrap_or_else(|_| Err(Error::Broken.into()))
    }

    /// Has the answer written; `next` is how the next question will be asked, if that is known.
    fn begin(&self, running: Arc<LiveAnswer>, ask: AnswerRequest, next: Option<AnswerRequest>) {
        self.0.running().insert(running.message.clone(), running.clone());
        let registration = Registration {
            inner: self.0.clone(),
            running: running.clone(),
        };
        self.0.changed();
        tokio::spawn(async move {
            let (history, engine) = (registration.inner.history.clone(), registration.inner.engine.clone());
            write_answer(history.clone(), &registration.inner.owner, engine.clone(), running.clone(), ask).await;
            // The answer has ended for everybody before anything is done for the next one.
            drop(registration);
            if let Some(next) = next {
                prefetch_next(&history, engine.as_ref(), &running.message, &next).await;
            }
        });
    }

    /// Looks at the branch that goes through this message, down to its newest end.
    pub async fn show_branch(&self, message: &str) -> Result<ChatView> {
        let chat = self.0.history.show_branch(message).await?;
        self.open_chat(&chat).await
    }

    /// Ends an answer soon, whichever process writes it; what it said stays. Changes nothing if it has ended.
    pub async fn stop(&self, message: &str) -> Result<()> {
        if let Some(running) = self.0.find(message) {
            running.stop.send_replace(true);
            return Ok(());
        }
        Ok(self.0.history.request_stop(message).await?)
    }

    /// The answers that this process is writing.
    pub fn running(&self) -> Vec<protocol::RunningAnswer> {
        let running = self.0.running();
        running
            .values()
            .map(|answer| protocol::RunningAnswer {
                chat: answer.chat.clone(),
                message: answer.message.clone(),
            })
            .collect()
    }

    /// The events of an answer after number `from` (0: all), then those that come, up to `Finished`. Many may attach, also to
    /// an answer of another process (see [`AnswerEvent`] for what the numbers mean) or one that has ended.
    pub async fn attach(&self, message: &str, from: u64) -> Result<Receiver<AnswerEvent>> {
        if let Some(running) = self.0.find(message) {
            return Ok(running.attach(from));
        }
        let stored = self.0.history.message(message).await?;
        Ok(match stored.state {
            AnswerState::Streaming => foreign_answer::follow(self.0.history.clone(), stored.id, from),
            _ => foreign_answer::finished(stored, from),
        })
    }

    /// Tells whenever the list of chats may look different, or another process wrote to the history.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }

    /// Where a text stands in titles, questions and answers.
    pub async fn search(&self, text: &str) -> Result<Vec<SearchHit>> {
        Ok(self.0.history.search(text).await?)
    }

    /// The branch of a chat that is looked at, as Markdown, its pictures without the place and the camera that their files tell of.
    pub async fn export_markdown(&self, chat: &str) -> Result<String> {
        Ok(self.0.history.export_markdown(chat, &self.exported_pictures(chat).await?).await?)
    }

    /// All of a chat, every branch, as JSON, its pictures without the place and the camera that their files tell of.
    pub async fn export_json(&self, chat: &str) -> Result<serde_json::Value> {
        Ok(self.0.history.export_json(chat, &self.exported_pictures(chat).await?).await?)
    }

    /// Stops all running answers, waits up to two seconds until they are stored, and closes the file.
    pub async fn shut_down(&self) {
        let answers: Vec<_> = self.0.running().values().cloned().collect();
        stop_and_wait(answers).await;
        self.0.history.close().await;
    }
}

impl Inner {
    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<LiveAnswer>>> {
        // Only single insertions and removals happen under this lock, so a poisoned map is still whole.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, message: &str) -> Option<Arc<LiveAnswer>> {
        self.running().get(message).cloned()
    }

    fn changed(&self) {
        self.changes.send_replace(());
    }

    /// Marks the answers whose process is gone.
    async fn mark_interrupted(&self) -> Result<()> {
        for answer in self.history.running().await? {
            let alive = if answer.owner == self.owner {
                // An answer of ours that is not at work is about to begin, or its end could not be stored.
                self.find(&answer.id).is_some() || now() - answer.heartbeat < owner::HEARTBEAT_LASTS
            } else {
                owner::is_alive(&answer.owner, answer.heartbeat, now())
            };
            if !alive && self.history.interrupt(&answer).await? {
                self.changed();
            }
        }
        Ok(())
    }
}

/// Takes a running answer off the list when its task ends, however it ends.
struct Registration {
    inner: Arc<Inner>,
    running: Arc<LiveAnswer>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut running = self.inner.running();
        // The answer may be continued already, which is another entry under the same id.
        if running
            .get(&self.running.message)
            .is_some_and(|other| Arc::ptr_eq(other, &self.running))
        {
            running.remove(&self.running.message);
        }
        drop(running);
        self.inner.changed();
        self.running.ended.send_replace(true);
    }
}

async fn stop_and_wait(answers: Vec<Arc<LiveAnswer>>) {
    let waiting = async {
        for answer in &answers {
            answer.stop.send_replace(true);
        }
        for answer in &answers {
            // The sender lives as long as the answer, so this waits for the end alone.
            let _ = answer.ended.subscribe().wait_for(|ended| *ended).await;
        }
    };
    if timeout(STOP_LASTS, waiting).await.is_err() {
        tracing::warn!("a stopped answer was not stored in time");
    }
}

/// Notices what other processes do, as long as somebody uses the chats.
async fn watch_other_processes(inner: Weak<Inner>) {
    let mut ticks = interval(CHECK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_change = None;
    for tick in 0u64.. {
        ticks.tick().await;
        let Some(inner) = inner.upgrade() else { return };
        let Ok(change) = inner.history.foreign_changes().await else {
            continue;
        };
        let last = last_change.replace(change);
        if last != Some(change) {
            // Also at the first look, because another process may have written since the settings were read.
            inner.reload_settings().await;
            if last.is_some() {
                inner.changed();
            }
        }
        if tick % 5 == 4 {
            if let Err(error) = inner.mark_interrupted().await {
                tracing::warn!(%error, "the history could not be searched for interrupted answers");
            }
        }
    }
}
