//! The side that uses the engine of another process.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use protocol::{
    mailbox, AnswerNowFlag, CancelFlag, Capabilities, Coalesce, EmbeddingRequest, Embeddings, Engine, EngineEvent,
    Error, ErrorCode, FolderSource, JobHandle, LoadEvent, LocalEngine, MemoryFigures, ModelInfo, ModelSource, Receiver,
    Request, Result, Sender, TokenCount,
};
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::runtime::Handle;

use crate::wire::{self, ControlFrame, Hello, SocketCall, VERSION};

/// The time limit for questions that the engine's process can answer at once.
const SOON: Duration = Duration::from_secs(2);

/// The interval at which the flag *Answer now* is read.
const LOOK: Duration = Duration::from_millis(50);

/// Makes an engine of this process.
type MakeEngine = dyn Fn() -> Arc<dyn LocalEngine> + Send + Sync;

/// The engine of another process of this user, while one shares its own; else one of this process, which is made when
/// it is first needed and used from then on.
#[derive(Clone)]
pub struct SharedEngine {
    socket: PathBuf,
    runtime: Handle,
    own: Arc<OnceLock<Arc<dyn LocalEngine>>>,
    make: Arc<MakeEngine>,
    /// The idle time after which an engine of this process frees a model, for one that is made later.
    unload_after: Arc<Mutex<Option<Duration>>>,
}

impl SharedEngine {
    /// The engine that a process shares in this data folder, or the one that `make` makes. Answers are followed on this
    /// runtime.
    pub fn new(
        data_dir: &Path,
        runtime: Handle,
        make: impl Fn() -> Arc<dyn LocalEngine> + Send + Sync + 'static,
    ) -> Self {
        Self {
            socket: wire::socket(&wire::folder(data_dir)),
            runtime,
            own: Arc::default(),
            make: Arc::new(make),
            unload_after: Arc::default(),
        }
    }

    /// The greeting of a process that shares its engine; `None` if there is none now.
    fn hello(&self) -> Option<Hello> {
        let hello: Hello = ask_now(&self.socket, &SocketCall::Hello).ok()?;
        // Another version may mean something else by the same words.
        (hello.version == VERSION).then_some(hello)
    }

    /// True if this process has an engine of its own, or would have to start one.
    pub fn is_own(&self) -> bool {
        self.own.get().is_some() || self.hello().is_none()
    }

    /// The engine of this process, if it has one or needs one because none is shared.
    fn own(&self) -> Option<&dyn LocalEngine> {
        self.is_own().then(|| self.made().as_ref())
    }

    /// The engine of this process, which is made now if it was not.
    fn made(&self) -> &Arc<dyn LocalEngine> {
        self.own.get_or_init(|| {
            let own = (self.make)();
            own.unload_after(*self.unload_after.lock().unwrap_or_else(PoisonError::into_inner));
            own
        })
    }

    fn ask<T: DeserializeOwned + Send + 'static>(&self, call: SocketCall) -> BoxFuture<'static, Result<T>> {
        let socket = self.socket.clone();
        Box::pin(async move {
            let asked = async {
                let (mut lines, mut to) = wire::split(UnixStream::connect(socket).await?);
                wire::send(&mut to, &call).await?;
                lines.next::<Result<T>>().await
            };
            asked.await.ok().flatten().unwrap_or_else(|| Err(gone()))
        })
    }
}

impl Engine for SharedEngine {
    fn generate(&self, request: Request) -> JobHandle {
        if let Some(own) = self.own() {
            return own.generate(request);
        }
        let (sender, events) = mailbox();
        let (cancel, end_thinking) = (CancelFlag::default(), AnswerNowFlag::default());
        let (socket, flags) = (self.socket.clone(), (cancel.clone(), end_thinking.clone()));
        self.runtime.spawn(async move {
            // A sender that is dropped before the last event says that the engine is gone.
            let followed = follow(&socket, request, &sender, flags).await;
            if let Err(error) = followed {
                tracing::warn!(%error, "the process whose engine was used is gone");
            }
        });
        JobHandle {
            events,
            cancel,
            end_thinking,
        }
    }

    fn capabilities(&self, model: &ModelSource) -> Capabilities {
        let shared = self.own.get().is_none().then(|| self.hello()).flatten();
        match (shared, model) {
            // Vision support differs between models. If the engine is too busy to say, its general capabilities count.
            (Some(shared), ModelSource::Folder(_)) => {
                ask_now(&self.socket, &SocketCall::Capabilities(model.clone())).unwrap_or(shared.capabilities)
            }
            (Some(_), ModelSource::Remote { .. }) => Capabilities::default(),
            (None, _) => self.made().capabilities(model),
        }
    }

    fn count(&self, request: Request) -> BoxFuture<'static, Result<TokenCount>> {
        if let Some(own) = self.own() {
            return own.count(request);
        }
        self.ask(SocketCall::Count(Box::new(request)))
    }

    fn embed(&self, request: EmbeddingRequest) -> BoxFuture<'static, Result<Embeddings>> {
        if let Some(own) = self.own() {
            return own.embed(request);
        }
        self.ask(SocketCall::Embed(Box::new(request)))
    }

    fn local(&self) -> Option<&dyn LocalEngine> {
        Some(self)
    }
}

impl LocalEngine for SharedEngine {
    fn load(&self, model: FolderSource) -> Receiver<LoadEvent> {
        if let Some(own) = self.own() {
            return own.load(model);
        }
        let (sender, events) = mailbox();
        let socket = self.socket.clone();
        self.runtime.spawn(async move {
            // As for an answer.
            let _ = hear(&socket, &SocketCall::Load(model), &sender).await;
        });
        events
    }

    fn prefetch(&self, request: Request) {
        if let Some(own) = self.own() {
            return own.prefetch(request);
        }
        let socket = self.socket.clone();
        self.runtime.spawn(async move {
            // Prefetching saves time, and no caller waits for it.
            let stream = UnixStream::connect(socket).await?;
            wire::send(&mut wire::split(stream).1, &SocketCall::Prefetch(Box::new(request))).await
        });
    }

    fn unload(&self, reference: &str) -> BoxFuture<'static, Result<()>> {
        if let Some(own) = self.own() {
            return own.unload(reference);
        }
        self.ask(SocketCall::Unload(reference.to_owned()))
    }

    fn unload_idle(&self, reference: &str) -> BoxFuture<'static, Result<bool>> {
        if let Some(own) = self.own() {
            return own.unload_idle(reference);
        }
        self.ask(SocketCall::UnloadIdle(reference.to_owned()))
    }

    /// Sets it for an engine of this process; another process sets its own.
    fn unload_after(&self, idle: Option<Duration>) {
        *self.unload_after.lock().unwrap_or_else(PoisonError::into_inner) = idle;
        if let Some(own) = self.own.get() {
            own.unload_after(idle);
        }
    }

    fn unload_all(&self) -> BoxFuture<'static, Result<()>> {
        if let Some(own) = self.own() {
            return own.unload_all();
        }
        self.ask(SocketCall::UnloadAll)
    }

    fn free_caches(&self) -> BoxFuture<'static, Result<()>> {
        if let Some(own) = self.own() {
            return own.free_caches();
        }
        self.ask(SocketCall::FreeCaches)
    }

    fn loaded(&self) -> Vec<ModelInfo> {
        if let Some(own) = self.own() {
            return own.loaded();
        }
        ask_now(&self.socket, &SocketCall::Loaded).unwrap_or_default()
    }

    fn memory(&self) -> BoxFuture<'static, Result<MemoryFigures>> {
        if let Some(own) = self.own() {
            return own.memory();
        }
        self.ask(SocketCall::Memory)
    }
}

/// Follows an answer to its end, and passes on that it, or its thought, is to end.
async fn follow(
    socket: &Path,
    request: Request,
    sender: &Sender<EngineEvent>,
    (cancel, end_thinking): (CancelFlag, AnswerNowFlag),
) -> io::Result<()> {
    let (mut lines, mut to) = wire::split(UnixStream::connect(socket).await?);
    wire::send(&mut to, &SocketCall::Generate(Box::new(request))).await?;
    let (mut cancelled, mut thinking_ended) = (false, false);
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            event = lines.next::<EngineEvent>() => {
                let Some(event) = event? else { return Ok(()) };
                let last = event.is_last();
                sender.send(event);
                if last {
                    return Ok(());
                }
            }
            () = cancel.cancelled(), if !cancelled => {
                cancelled = true;
                wire::send(&mut to, &ControlFrame::Cancel).await?;
            }
            _ = look.tick(), if !thinking_ended => if end_thinking.is_asked() {
                thinking_ended = true;
                wire::send(&mut to, &ControlFrame::EndThinking).await?;
            },
        }
    }
}

/// Passes events on, up to the last one.
async fn hear<T: Coalesce + DeserializeOwned>(socket: &Path, call: &SocketCall, sender: &Sender<T>) -> io::Result<()> {
    let (mut lines, mut to) = wire::split(UnixStream::connect(socket).await?);
    wire::send(&mut to, call).await?;
    while let Some(event) = lines.next::<T>().await? {
        let last = event.is_last();
        sender.send(event);
        if last {
            break;
        }
    }
    Ok(())
}

/// Asks for what is known at once.
fn ask_now<T: DeserializeOwned>(socket: &Path, call: &SocketCall) -> io::Result<T> {
    let mut stream = BlockingStream::connect(socket)?;
    stream.set_read_timeout(Some(SOON))?;
    stream.set_write_timeout(Some(SOON))?;
    stream.write_all(&wire::line(call)?)?;
    let mut line = Vec::new();
    BufReader::new(stream).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}

fn gone() -> Error {
    let message = "the Ponder whose engine was used has ended; please try again";
    Error::new(ErrorCode::EngineGone, message)
}
