//! One turn of a conversation: from the stored branch through the engine to the stored answer, with everybody who watches
//! it. Knows an engine only as a trait, the history file only through `history`, and no window at all.
//!
//! Invariants: what an answer says is on disk within 250 ms; every answer ends, whatever fails, with one `Finished`; a
//! window that attaches from number n gets every event after n once; a slow window holds up nobody.

mod branches;
mod continuation;
mod conversation;
mod error;
mod files;
mod finding;
mod foreign_answer;
mod idle_models;
mod keeping;
mod listing;
mod live_answer;
mod memory;
mod model_users;
mod other_processes;
mod owner;
mod pictures;
mod prefetch;
mod question;
mod reading;
mod settings;
mod shown_pictures;
mod summary;
mod title;
mod tool_results;
mod transfer;
mod turn;
mod two_answers;
mod written_title;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use history::{now, History, NewAnswer};
pub use history::{stored_settings, LONGEST_IMPORT};
pub use keeping::{readable_history, set_history_aside};
use protocol::{
    AnswerEvent, AnswerState, Capabilities, ChatSettings, ChatSummary, ChatView, Content, Engine, Folder, ModelShelf, ModelSource,
    Position, Receiver, RepairedHistory, Result, Role, Settings, Turn,
};
pub use shown_pictures::{PictureFile, ShownPicture};
use tokio::sync::watch;
use tokio::time::timeout;
pub use transfer::check_import_beginning;

use crate::error::Error;
use crate::listing::Editions;
use crate::live_answer::LiveAnswer;
use crate::owner::Owner;
use crate::pictures::attachments;
use crate::shown_pictures::Previews;
use crate::summary::Summaries;
use crate::turn::{prefetch_next, write_answer, AnswerRequest};
use crate::written_title::write_title;

/// How long a chat stays in the trash, in milliseconds.
const TRASH_LASTS: i64 = 30 * 24 * 3600 * 1000;

/// How long a picture is kept that no message and no draft names, in milliseconds: one is added before its message is sent.
const UNLINKED_LASTS: i64 = 24 * 3600 * 1000;

/// How often the file is asked at most whether another process wrote to it, and for dead ones.
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
    /// The summaries that are being made.
    summaries: Mutex<Summaries>,
    /// What windows were told of the list of chats.
    editions: tokio::sync::Mutex<Editions>,
    changes: watch::Sender<()>,
    settings: watch::Sender<Settings>,
    /// Becomes true when the app ends, for what nobody waits for.
    closing: watch::Sender<bool>,
    /// What became of the history if it was found damaged.
    repaired: Option<RepairedHistory>,
}

impl Chat {
    /// Opens the history file. Answers whose process died are marked interrupted, and what lay in the trash for 30 days is
    /// deleted.
    pub async fn open(database: &Path, engine: Arc<dyn Engine>, shelf: Arc<dyn ModelShelf>) -> Result<Self> {
        let (history, repaired) = keeping::open_history(database).await?;
        Self::with(history, repaired, engine, shelf).await
    }

    /// Opens a history file to be looked at: nothing in it is changed, and nothing can be.
    pub async fn open_read_only(database: &Path, engine: Arc<dyn Engine>, shelf: Arc<dyn ModelShelf>) -> Result<Self> {
        Self::with(History::open_read_only(database).await?, None, engine, shelf).await
    }

    async fn with(
        history: History,
        repaired: Option<RepairedHistory>,
        engine: Arc<dyn Engine>,
        shelf: Arc<dyn ModelShelf>,
    ) -> Result<Self> {
        let settings = history.settings().await?;
        let inner = Arc::new(Inner {
            history,
            engine,
            shelf,
            owner: Owner::this_process().to_string(),
            running: Mutex::default(),
            previews: Previews::default(),
            summaries: Mutex::default(),
            editions: tokio::sync::Mutex::default(),
            changes: watch::Sender::new(()),
            settings: watch::Sender::new(settings),
            closing: watch::Sender::new(false),
            repaired,
        });
        if inner.history.is_read_only() {
            return Ok(Self(inner));
        }
        inner.mark_interrupted().await?;
        inner.history.purge_trash(now() - TRASH_LASTS).await?;
        if let Err(error) = inner.history.remove_unlinked_attachments(now() - UNLINKED_LASTS).await {
            tracing::warn!(%error, "pictures that nobody needs any more could not be removed");
        }
        tokio::spawn(other_processes::watch(Arc::downgrade(&inner)));
        tokio::spawn(finding::read_into_index(Arc::downgrade(&inner)));
        tokio::spawn(keeping::back_up_daily(Arc::downgrade(&inner)));
        tokio::spawn(idle_models::unload_idle_models(Arc::downgrade(&inner)));
        Ok(Self(inner))
    }

    /// The chats outside the trash: pinned first, then newest first.
    pub async fn chats(&self) -> Result<Vec<ChatSummary>> {
        Ok(self.0.history.chats().await?)
    }

    /// The titles of the chats, without those in the trash, that a model was the last to answer, the newest first.
    pub async fn answered_by(&self, model: &str) -> Result<Vec<String>> {
        Ok(self.0.history.chats_answered_by(model).await?)
    }

    /// What can be done with the model of this reference, or with the default model.
    ///
    /// # Errors
    /// `ModelNotFound` and `ModelBroken` from the model folder.
    pub async fn capabilities(&self, reference: Option<&str>) -> Result<Capabilities> {
        let (_, model) = self.model(reference).await?;
        Ok(self.0.engine.capabilities(&model))
    }

    /// A new, empty chat.
    ///
    /// # Errors
    /// `BadRequest` for a setting that no request may have.
    pub async fn create(&self, settings: ChatSettings) -> Result<ChatView> {
        settings.check()?;
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
    ///
    /// # Errors
    /// `BadRequest` for a setting that no request may have, by the argument `field`; nothing is changed then.
    pub async fn set_settings(&self, chat: &str, settings: &ChatSettings) -> Result<()> {
        settings.check()?;
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
    /// model that does not see, `ContextFull` for one that does not fit. One of which only the engine finds that it does not fit is taken back: the
    /// answer ends with that error, and question and answer are no longer in the chat.
    pub async fn send(&self, chat: &str, content: &[Content], position: &Position) -> Result<Turn> {
        question::check(content)?;
        let (view, head) = self.0.history.chat_head(chat).await?;
        let (answer, mut request) = self.prepare(chat, view.settings).await?;
        self.check_sees(&request.model, content).await?;
        self.check_fits(head.as_deref(), position, &request, content).await?;
        let turn = self
            .0
            .history
            .begin_turn(chat, content, position, &title::title(content), &answer)
            .await?;
        request.parent = turn.question.id.clone();
        let next = request.clone();
        request.retractable = Some(turn.question.clone());
        self.begin(LiveAnswer::new(turn.answer.clone()), request, Some(next));
        Ok(turn)
    }

    /// Begins another answer to the question that this message is, or whose turn it is a part of; earlier answers stay as its
    /// siblings. It is asked with these settings, or those of the chat. Fails as [`Chat::send`] does.
    pub async fn regenerate(&self, message: &str, settings: Option<ChatSettings>) -> Result<ChatView> {
        settings.as_ref().map_or(Ok(()), ChatSettings::check)?;
        let branch = self.0.history.branch(message).await?;
        let question = branch.into_iter().rfind(|message| message.role == Role::User);
        let question = question.ok_or(Error::NothingToAnswer)?;
        self.begin_answer(&question.chat, question.id, settings).await
    }

    /// What the settings ask for; the question is filled in later.
    async fn prepare(&self, chat: &str, settings: ChatSettings) -> Result<(NewAnswer, AnswerRequest)> {
        let (reference, ask) = self.answer_request(chat, settings).await?;
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

    /// What the settings of a chat ask for, with the instructions and the files of its folder, and the model's reference.
    async fn answer_request(&self, chat: &str, settings: ChatSettings) -> Result<(String, AnswerRequest)> {
        let folder = self.0.history.folder_of(chat).await?;
        self.answer_request_in(folder, settings).await
    }

    /// [`Chat::answer_request`] for a chat in this folder, whether it is made already or not.
    async fn answer_request_in(&self, folder: Option<Folder>, mut settings: ChatSettings) -> Result<(String, AnswerRequest)> {
        let files = keeping::take_from_folder(folder, &mut settings);
        let (reference, model) = self.model(settings.model.as_deref()).await?;
        let ask = AnswerRequest {
            parent: String::new(),
            model,
            settings,
            prefix: None,
            files,
            retractable: None,
        };
        Ok((reference, ask))
    }

    /// The model of this reference, or the default model, and its reference.
    async fn model(&self, reference: Option<&str>) -> Result<(String, ModelSource)> {
        let reference = match reference {
            Some(reference) => reference.to_owned(),
            None => self.default_model().await?,
        };
        let model = self.resolve(&reference).await?;
        Ok((reference, model))
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
            let inner = registration.inner.clone();
            let (history, engine, model) = (inner.history.clone(), inner.engine.clone(), ask.model.clone());
            write_answer(history.clone(), &registration.inner.owner, engine.clone(), running.clone(), ask).await;
            // The answer has ended for everybody before anything is done for the next one.
            drop(registration);
            if let Some(next) = next {
                prefetch_next(&history, engine.as_ref(), &running.message, &next).await;
            }
            write_title(&inner, &running.message, &model).await;
        });
    }

    /// Ends an answer soon, whichever process writes it; what it said stays. Changes nothing if it has ended.
    pub async fn stop(&self, message: &str) -> Result<()> {
        if let Some(running) = self.0.find(message) {
            running.stop.send_replace(true);
            return Ok(());
        }
        Ok(self.0.history.request_stop(message).await?)
    }

    /// Ends all answers, whichever process writes them, and waits a while for those of this one.
    async fn stop_all(&self) -> Result<()> {
        let answers: Vec<_> = self.0.running().values().cloned().collect();
        stop_and_wait(answers).await;
        self.0.mark_interrupted().await?;
        for foreign in self.0.history.running().await? {
            self.0.history.request_stop(&foreign.id).await?;
        }
        Ok(())
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

    /// Stops all running answers, waits up to two seconds until they are stored, and closes the file.
    pub async fn shut_down(&self) {
        self.0.closing.send_replace(true);
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

    /// Marks the answers whose process is gone; whether there are answers that are not at work here.
    async fn mark_interrupted(&self) -> Result<bool> {
        let mut foreign = false;
        for answer in self.history.running().await? {
            let here = self.find(&answer.id).is_some();
            foreign |= !here;
            let alive = if answer.owner == self.owner {
                // An answer of ours that is not at work is about to begin, or its end could not be stored.
                here || now() - answer.heartbeat < owner::HEARTBEAT_LASTS
            } else {
                owner::is_alive(&answer.owner, answer.heartbeat, now())
            };
            if !alive && self.history.interrupt(&answer).await? {
                self.changed();
            }
        }
        Ok(foreign)
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
