//! The state that all parts of the chats share: the history file, the engine, the models, and the running answers.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use api::{ChatView, LocalModel, ModelShelf, RunningCall, Settings};
use history::{now, History};
use protocol::{Capabilities, Engine, ModelInfo, ModelSource, PassageSource, Result, Toolbox};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::cross_process::owner::{self, WriterProcess};
use crate::error::Error;
use crate::live::answer::LiveAnswer;
use crate::live::tool_turn::ToolTurn;

/// The longest wait for stopped answers to be stored.
const STOP_LASTS: Duration = Duration::from_secs(2);

/// The messages of a long chat that are shown at first: more than a window holds.
const NEWEST: u32 = 100;

/// The state that every part of [`crate::Chat`] holds.
pub(crate) struct Core {
    pub(crate) history: History,
    /// The history with the settings of the app: another one if this one is in memory.
    pub(crate) settings_history: History,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) shelf: Arc<dyn ModelShelf>,
    /// This process, as the history file calls it.
    pub(crate) owner: String,
    pub(crate) changes: watch::Sender<()>,
    pub(crate) settings: watch::Sender<Settings>,
    /// Held from reading or storing the settings until their followers are told, so that nobody is told older ones last.
    pub(crate) settings_in_order: tokio::sync::Mutex<()>,
    /// Becomes true when the app ends, for tasks that block nothing.
    pub(crate) closing: watch::Sender<bool>,
    /// Becomes true when a call fails because the history is damaged.
    pub(crate) damaged: watch::Sender<bool>,
    /// The answers that this process writes, by message.
    live: Mutex<HashMap<String, Arc<LiveAnswer>>>,
    /// The tools that models may call; a host without any sets none.
    pub(crate) toolbox: OnceLock<Arc<dyn Toolbox>>,
    /// The user's documents; a host without any sets none.
    pub(crate) passages: OnceLock<Arc<dyn PassageSource>>,
    /// The chats whose documents are read for a question, each with what ends that.
    readings: Mutex<HashMap<String, watch::Sender<bool>>>,
    /// The answers whose calls this process asks about or runs, by message.
    tool_turns: Mutex<HashMap<String, Arc<ToolTurn>>>,
    /// The calls that this process runs, as far as their progress is known.
    pub(crate) running_calls: watch::Sender<Vec<RunningCall>>,
}

impl Core {
    pub(crate) async fn new(
        history: History,
        engine: Arc<dyn Engine>,
        shelf: Arc<dyn ModelShelf>,
    ) -> Result<Arc<Self>> {
        let settings = watch::Sender::new(history.settings().await?);
        let changes = watch::Sender::new(());
        let told = (changes, watch::Sender::default());
        Ok(Self::with(history.clone(), history, engine, shelf, settings, told))
    }

    /// The same engine, models and settings with chats in memory, of which nothing is written. Whoever follows these
    /// chats hears of those, too.
    pub(crate) async fn in_memory(&self) -> Result<Arc<Self>> {
        let (engine, shelf) = (self.engine.clone(), self.shelf.clone());
        let (history, settings) = (History::in_memory().await?, self.settings.clone());
        let told = (self.changes.clone(), self.running_calls.clone());
        let core = Self::with(history, self.settings_history.clone(), engine, shelf, settings, told);
        if let Some(toolbox) = self.toolbox.get() {
            let _ = core.toolbox.set(toolbox.clone());
        }
        if let Some(passages) = self.passages.get() {
            let _ = core.passages.set(passages.clone());
        }
        Ok(core)
    }

    fn with(
        history: History,
        settings_history: History,
        engine: Arc<dyn Engine>,
        shelf: Arc<dyn ModelShelf>,
        settings: watch::Sender<Settings>,
        (changes, running_calls): (watch::Sender<()>, watch::Sender<Vec<RunningCall>>),
    ) -> Arc<Self> {
        Arc::new(Self {
            history,
            settings_history,
            engine,
            shelf,
            owner: WriterProcess::this_process().to_string(),
            changes,
            settings,
            settings_in_order: tokio::sync::Mutex::default(),
            closing: watch::Sender::new(false),
            damaged: watch::Sender::new(false),
            live: Mutex::default(),
            toolbox: OnceLock::new(),
            passages: OnceLock::new(),
            readings: Mutex::default(),
            tool_turns: Mutex::default(),
            running_calls,
        })
    }

    /// True if the chats are in memory.
    pub(crate) fn is_temporary(&self) -> bool {
        self.history.is_in_memory()
    }

    /// The answers that this process is writing.
    pub(crate) fn live(&self) -> MutexGuard<'_, HashMap<String, Arc<LiveAnswer>>> {
        // Only single insertions and removals happen under this lock, so a poisoned map is still complete.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answers whose calls this process asks about or runs.
    pub(crate) fn tool_turns(&self) -> MutexGuard<'_, HashMap<String, Arc<ToolTurn>>> {
        self.tool_turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The chats whose documents are read for a question.
    pub(crate) fn readings(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<bool>>> {
        // Only single insertions and removals happen under this lock, so a poisoned map is still complete.
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the calls that this accepts.
    pub(crate) fn stop_tool_turns(&self, which: impl Fn(&ToolTurn) -> bool) {
        for turn in self.tool_turns().values().filter(|turn| which(turn)) {
            turn.stop.send_replace(true);
        }
    }

    /// A running answer of this process.
    pub(crate) fn find(&self, message: &str) -> Option<Arc<LiveAnswer>> {
        self.live().get(message).cloned()
    }

    /// Tells everybody that the list of chats may look different.
    pub(crate) fn changed(&self) {
        self.changes.send_replace(());
    }

    /// Stores something that the list of chats shows, and tells everybody.
    pub(crate) async fn change<T>(&self, change: impl Future<Output = history::Result<T>>) -> Result<T> {
        let done = change.await?;
        self.changed();
        Ok(done)
    }

    /// Lists an answer as running until the returned registration is dropped.
    pub(crate) fn register(self: &Arc<Self>, answer: Arc<LiveAnswer>) -> Registration {
        self.live().insert(answer.message.clone(), answer.clone());
        self.changed();
        Registration {
            core: self.clone(),
            answer,
        }
    }

    /// Stops the running answers that this accepts, and waits up to two seconds until they are stored.
    pub(crate) async fn stop_and_wait(&self, which: impl Fn(&LiveAnswer) -> bool) {
        let answers: Vec<_> = self.live().values().filter(|answer| which(answer)).cloned().collect();
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

    /// Marks the answers whose process is gone; true if answers are running that this process does not write.
    pub(crate) async fn mark_interrupted(&self) -> Result<bool> {
        let mut foreign = false;
        for answer in self.history.running().await? {
            let here = self.find(&answer.id).is_some();
            foreign |= !here;
            let alive = if answer.owner == self.owner {
                // An answer of this process that is not running is about to begin, or its end could not be stored.
                here || now() - answer.heartbeat < owner::HEARTBEAT_LASTS
            } else {
                owner::is_alive(&answer.owner, answer.heartbeat, now())
            };
            if !alive && self.history.interrupt(&answer).await? {
                self.changed();
            }
        }
        for open in self.history.open_calls().await? {
            let alive = match open.owner == self.owner {
                true => self.tool_turns().contains_key(&open.answer),
                false => owner::is_alive(&open.owner, open.at, now()),
            };
            if !alive && self.history.interrupt_call(&open).await? {
                self.changed();
            }
        }
        Ok(foreign)
    }

    /// The reference of the model that answers in chats that chose none.
    pub(crate) async fn default_model(&self) -> Result<String> {
        Ok(self.settings_history.settings().await?.default_model)
    }

    /// The model of this reference, or the default model, and its reference.
    pub(crate) async fn model(&self, reference: Option<&str>) -> Result<(String, ModelSource)> {
        let reference = match reference {
            Some(reference) => reference.to_owned(),
            None => self.default_model().await?,
        };
        let model = self.resolve(&reference).await?;
        Ok((reference, model))
    }

    pub(crate) async fn resolve(&self, reference: &str) -> Result<ModelSource> {
        let (shelf, reference) = (self.shelf.clone(), reference.to_owned());
        blocking(move || shelf.resolve(&reference)).await?
    }

    /// The models on this computer.
    pub(crate) async fn models(&self) -> Vec<LocalModel> {
        let shelf = self.shelf.clone();
        blocking(move || shelf.list()).await.unwrap_or_default()
    }

    /// The model of this reference, if the engine of this computer has it loaded.
    pub(crate) fn loaded(&self, reference: &str) -> Option<ModelInfo> {
        let loaded = self.engine.local()?.loaded();
        loaded.into_iter().find(|info| info.reference == reference)
    }

    /// Asks other processes to stop their answers in chats that this accepts.
    pub(crate) async fn stop_foreign(&self, which: impl Fn(&str) -> bool) -> Result<()> {
        for foreign in self.history.running().await? {
            if which(&foreign.chat) {
                self.history.request_stop(&foreign.id).await?;
            }
        }
        Ok(())
    }

    /// The capabilities of a model. An engine may read them from the model's files, so this runs off the threads that
    /// answer windows; a turn asks once. An engine that panics has none: the answer that it is asked for next says so.
    pub(crate) async fn capabilities(&self, model: &ModelSource) -> Capabilities {
        let (engine, model) = (self.engine.clone(), model.clone());
        blocking(move || engine.capabilities(&model)).await.unwrap_or_default()
    }

    /// A chat as a window shows it: of a long one the newest messages, which are soon read.
    pub(crate) async fn shown(&self, chat: &str) -> Result<ChatView> {
        Ok(self.history.newest_of_chat(chat, NEWEST).await?)
    }

    /// Reads the settings again, which another process may have changed.
    pub(crate) async fn reload_settings(&self) {
        let _in_order = self.settings_in_order.lock().await;
        match self.settings_history.settings().await {
            Ok(settings) => self.tell_settings(settings),
            Err(error) => tracing::warn!(%error, "the settings could not be read again"),
        }
    }

    /// Tells the engine and the followers of the settings, if these differ from the last ones. A request that follows
    /// finds the engine as it is set.
    pub(crate) fn tell_settings(&self, settings: Settings) {
        let changed = self.settings.send_if_modified(|known| {
            let changed = *known != settings;
            *known = settings;
            changed
        });
        if changed {
            self.tell_engine();
        }
    }

    /// Tells the engine of this computer what it may keep in memory, and by what it computes.
    pub(crate) fn tell_engine(&self) {
        let set = self.settings.borrow().engine;
        if let Some(engine) = self.engine.local() {
            engine.limit_prefix_caches(set.prefix_cache_bytes());
            engine.unload_after(set.unload_after());
            engine.set_threads(set.threads);
            engine.set_device(set.device);
        }
    }
}

/// Runs what reads files or pixels off the threads that answer windows.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Error::Broken.into())
}

/// Takes a running answer off the list when its task ends, however it ends.
pub(crate) struct Registration {
    core: Arc<Core>,
    answer: Arc<LiveAnswer>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // The answer may be continued already, which is another entry under the same id.
        self.core.live().retain(|_, other| !Arc::ptr_eq(other, &self.answer));
        self.core.changed();
        self.answer.ended.send_replace(true);
    }
}
