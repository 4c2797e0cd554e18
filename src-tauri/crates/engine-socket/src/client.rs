//! The side that uses the engine of another process.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use protocol::{
    mailbox, AnswerNowFlag, CancelFlag, Capabilities, Coalesce, ComputeDevice, EmbeddingRequest, Embeddings, Engine,
    EngineEvent, Error, ErrorCode, FolderSource, JobHandle, LoadEvent, LocalEngine, MemoryFigures, ModelInfo,
    ModelSource, Receiver, Request, Result, Sender, TokenCount,
};
use serde::de::DeserializeOwned;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::UnixStream;
use tokio::runtime::Handle;

use crate::error::frame_too_long;
use crate::wire::{self, ControlFrame, Hello, JsonLines, SocketCall, LONGEST_FRAME, VERSION};

/// The time limit for questions that the engine's process can answer at once.
const SOON: Duration = Duration::from_secs(2);

/// The interval at which the flag *Answer now* is read.
const LOOK: Duration = Duration::from_millis(50);

/// Makes an engine of this process.
type MakeEngine = dyn Fn() -> Arc<dyn LocalEngine> + Send + Sync;

/// The place of a process that shares its engine.
#[derive(Clone)]
struct Host {
    socket: PathBuf,
    /// The user whose process it has to be.
    user: u32,
    runtime: Handle,
}

/// The engine of another process of this user, while one shares its own; else one of this process, which is made when
/// it is first needed and used from then on.
#[derive(Clone)]
pub struct SharedEngine {
    host: Host,
    own: Arc<OnceLock<Arc<dyn LocalEngine>>>,
    make: Arc<MakeEngine>,
    /// The idle time after which an engine of this process frees a model, for one that is made later.
    unload_after: Arc<Mutex<Option<Duration>>>,
    /// The device on which an engine of this process computes, for one that is made later.
    device: Arc<Mutex<ComputeDevice>>,
    /// True if the engine of another process is never used.
    alone: bool,
}

impl Host {
    /// Opens a connection with a call.
    async fn call(&self, call: &SocketCall) -> io::Result<(JsonLines, OwnedWriteHalf)> {
        let opening = wire::opening(call)?;
        let stream = UnixStream::connect(&self.socket).await?;
        wire::check_peer(&stream, self.user)?;
        let (lines, mut to) = wire::split(stream);
        to.write_all(&opening).await?;
        Ok((lines, to))
    }

    /// Asks for what is known at once, and waits for it.
    fn ask_now<T: DeserializeOwned>(&self, call: &SocketCall) -> io::Result<T> {
        let mut stream = self.connect_now()?;
        stream.set_read_timeout(Some(SOON))?;
        stream.set_write_timeout(Some(SOON))?;
        stream.write_all(&wire::opening(call)?)?;
        let mut line = Vec::new();
        let longest = LONGEST_FRAME as u64;
        BufReader::new(stream).take(longest).read_until(b'\n', &mut line)?;
        Ok(serde_json::from_slice(&line)?)
    }

    /// The standard library cannot tell the peer of a socket; the runtime's can.
    fn connect_now(&self) -> io::Result<BlockingStream> {
        let _entered = self.runtime.enter();
        let stream = BlockingStream::connect(&self.socket)?;
        stream.set_nonblocking(true)?;
        let stream = UnixStream::from_std(stream)?;
        wire::check_peer(&stream, self.user)?;
        let stream = stream.into_std()?;
        stream.set_nonblocking(false)?;
        Ok(stream)
    }
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
            host: Host {
                socket: wire::socket(&wire::folder(data_dir)),
                user: wire::user(),
                runtime,
            },
            own: Arc::default(),
            make: Arc::new(make),
            unload_after: Arc::default(),
            device: Arc::default(),
            alone: false,
        }
    }

    /// Never uses the engine of another process, which may compute on another device.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// The greeting of a process that shares its engine; `None` if there is none now.
    fn hello(&self) -> Option<Hello> {
        if self.alone {
            return None;
        }
        let hello: Hello = self.host.ask_now(&SocketCall::Hello).ok()?;
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
            own.set_device(*self.device.lock().unwrap_or_else(PoisonError::into_inner));
            own
        })
    }

    fn ask<T: DeserializeOwned + Send + 'static>(&self, call: SocketCall) -> BoxFuture<'static, Result<T>> {
        let host = self.host.clone();
        Box::pin(async move {
            let asked = async { host.call(&call).await?.0.next::<Result<T>>().await };
            match asked.await {
                Ok(Some(answer)) => answer,
                Ok(None) => Err(gone()),
                Err(error) => Err(failure(&error)),
            }
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
        let (host, flags) = (self.host.clone(), (cancel.clone(), end_thinking.clone()));
        self.host.runtime.spawn(async move {
            // A sender that is dropped before the last event says that the engine is gone.
            let followed = follow(&host, request, &sender, flags).await;
            if let Err(error) = followed {
                tracing::warn!(%error, "the process whose engine was used is gone");
                sender.send(EngineEvent::Failed(failure(&error)));
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
            (Some(shared), ModelSource::Folder(_)) => self
                .host
                .ask_now(&SocketCall::Capabilities(model.clone()))
                .unwrap_or(shared.capabilities),
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
        let host = self.host.clone();
        self.host.runtime.spawn(async move {
            // As for an answer.
            let _ = hear(&host, &SocketCall::Load(model), &sender).await;
        });
        events
    }

    fn prefetch(&self, request: Request) {
        if let Some(own) = self.own() {
            return own.prefetch(request);
        }
        let host = self.host.clone();
        self.host.runtime.spawn(async move {
            // Prefetching saves time, and no caller waits for it.
            let _ = host.call(&SocketCall::Prefetch(Box::new(request))).await;
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

    /// Sets it for an engine of this process; another process sets its own.
    fn set_device(&self, device: ComputeDevice) {
        *self.device.lock().unwrap_or_else(PoisonError::into_inner) = device;
        if let Some(own) = self.own.get() {
            own.set_device(device);
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
        self.host.ask_now(&SocketCall::Loaded).unwrap_or_default()
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
    host: &Host,
    request: Request,
    sender: &Sender<EngineEvent>,
    (cancel, end_thinking): (CancelFlag, AnswerNowFlag),
) -> io::Result<()> {
    let (mut lines, mut to) = host.call(&SocketCall::Generate(Box::new(request))).await?;
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
async fn hear<T: Coalesce + DeserializeOwned>(host: &Host, call: &SocketCall, sender: &Sender<T>) -> io::Result<()> {
    // The other half stays open: without it the host would take this side for gone.
    let (mut lines, _to) = host.call(call).await?;
    while let Some(event) = lines.next::<T>().await? {
        let last = event.is_last();
        sender.send(event);
        if last {
            break;
        }
    }
    Ok(())
}

/// The error of a job whose connection failed.
fn failure(error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::FileTooLarge => frame_too_long(),
        _ => gone(),
    }
}

fn gone() -> Error {
    let message = "the Ponder whose engine was used has ended; please try again";
    Error::new(ErrorCode::EngineGone, message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use protocol::fake::FakeEngine;
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_process_of_another_user_is_not_asked() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(wire::folder(home.path())).unwrap();
        let socket = wire::socket(&wire::folder(home.path()));
        let listener = UnixListener::bind(&socket).unwrap();
        let heard = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&heard);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (mut lines, mut to) = wire::split(stream);
                if let Ok(Some(_)) = lines.opening().await {
                    count.fetch_add(1, Ordering::Relaxed);
                    let hello = Hello {
                        version: VERSION.to_owned(),
                        capabilities: Capabilities::default(),
                    };
                    wire::send(&mut to, &hello).await.unwrap();
                }
            }
        });
        let mut engine = SharedEngine::new(home.path(), Handle::current(), || Arc::new(FakeEngine::new()));
        let asked = engine.clone();
        assert!(!tokio::task::spawn_blocking(move || asked.is_own()).await.unwrap());
        assert_eq!(heard.load(Ordering::Relaxed), 1);
        engine.host.user += 1;
        let refused = engine.ask::<MemoryFigures>(SocketCall::Memory).await;
        assert!(refused.is_err() && engine.is_own());
        assert_eq!(heard.load(Ordering::Relaxed), 1, "nothing was sent");
        engine.host.user -= 1;
        assert!(engine.alone().is_own());
        assert_eq!(heard.load(Ordering::Relaxed), 1, "nobody was asked");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_engine_that_is_made_later_computes_on_the_device_that_was_set() {
        let (home, fake) = (tempfile::tempdir().unwrap(), FakeEngine::new());
        let own = fake.clone();
        let engine = SharedEngine::new(home.path(), Handle::current(), move || Arc::new(own.clone()));
        engine.set_device(ComputeDevice::Cpu);
        assert_eq!(fake.device(), ComputeDevice::Auto, "none was needed");
        engine.memory().await.unwrap();
        assert_eq!(fake.device(), ComputeDevice::Cpu);
        engine.set_device(ComputeDevice::Auto);
        assert_eq!(fake.device(), ComputeDevice::Auto);
    }
}
