//! The side that has the engine.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{CancelOnDrop, Coalesce, FolderSource, LocalEngine, ModelSource, Receiver, Request};
use serde::Serialize;
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::error::{Error, Result};
use crate::wire::{self, ControlFrame, Hello, JsonLines, SocketCall, VERSION};

/// An engine that other processes of the same user may ask, until this is dropped.
pub struct EngineSocket {
    socket: PathBuf,
    listening: JoinHandle<()>,
    /// Held as long as this process listens; the system lets it go even if the process is killed.
    _lock: File,
}

impl EngineSocket {
    /// Listens in this data folder; `None` if another process does already. A socket that a killed process left is
    /// replaced. Called within a tokio runtime, which answers from then on.
    ///
    /// # Errors
    /// If the folder or the socket cannot be made.
    pub fn listen(data_dir: &Path, engine: Arc<dyn LocalEngine>) -> Result<Option<Self>> {
        let folder = wire::folder(data_dir);
        let unusable = |reason| Error::Folder {
            path: folder.clone(),
            reason,
        };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        // One that was there may be open to others.
        made.and_then(|()| fs::set_permissions(&folder, Permissions::from_mode(0o700)))
            .map_err(unusable)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join("engine.lock"));
        let lock = lock.map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(reason)) => return Err(unusable(reason)),
        }
        let socket = wire::socket(&folder);
        let unmakeable = |reason| Error::Socket {
            path: socket.clone(),
            reason,
        };
        match fs::remove_file(&socket) {
            Err(reason) if reason.kind() != ErrorKind::NotFound => return Err(unmakeable(reason)),
            _ => {}
        }
        let listener = UnixListener::bind(&socket).map_err(unmakeable)?;
        fs::set_permissions(&socket, Permissions::from_mode(0o600)).map_err(unmakeable)?;
        Ok(Some(Self {
            listening: tokio::spawn(listen(listener, engine)),
            socket,
            _lock: lock,
        }))
    }
}

impl Drop for EngineSocket {
    fn drop(&mut self) {
        // The connections end with it, and what they asked for is cancelled.
        self.listening.abort();
        // A client that still finds the file is refused.
        let _ = fs::remove_file(&self.socket);
    }
}

async fn listen(listener: UnixListener, engine: Arc<dyn LocalEngine>) {
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = open.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                let engine = engine.clone();
                open.spawn(async move {
                    if let Err(error) = answer(stream, engine.as_ref()).await {
                        tracing::debug!(%error, "a process that used the engine has gone");
                    }
                });
            }
            // Such as too many open files: others may end soon.
            Err(error) => {
                tracing::warn!(%error, "a process could not be answered");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

async fn answer(stream: UnixStream, engine: &dyn LocalEngine) -> io::Result<()> {
    let (mut lines, mut to) = wire::split(stream);
    let Some(call) = lines.next().await? else { return Ok(()) };
    match call {
        SocketCall::Hello => wire::send(&mut to, &hello(engine)).await,
        SocketCall::Capabilities(model) => wire::send(&mut to, &engine.capabilities(&model)).await,
        SocketCall::Generate(request) => generate(engine, *request, lines, to).await,
        SocketCall::Count(request) => wire::send(&mut to, &engine.count(*request).await).await,
        SocketCall::Embed(request) => tokio::select! {
            embedded = engine.embed(*request) => wire::send(&mut to, &embedded).await,
            // Nothing is said meanwhile, so the other side has gone; what is dropped here ends.
            _ = lines.next::<ControlFrame>() => Ok(()),
        },
        SocketCall::Load(model) => tell(engine.load(model), &mut to).await,
        SocketCall::Prefetch(request) => {
            engine.prefetch(*request);
            Ok(())
        }
        SocketCall::Unload(reference) => wire::send(&mut to, &engine.unload(&reference).await).await,
        SocketCall::UnloadIdle(reference) => wire::send(&mut to, &engine.unload_idle(&reference).await).await,
        SocketCall::UnloadAll => wire::send(&mut to, &engine.unload_all().await).await,
        SocketCall::FreeCaches => wire::send(&mut to, &engine.free_caches().await).await,
        SocketCall::Loaded => wire::send(&mut to, &engine.loaded()).await,
        SocketCall::Memory => wire::send(&mut to, &engine.memory().await).await,
    }
}

fn hello(engine: &dyn LocalEngine) -> Hello {
    let any = ModelSource::Folder(FolderSource {
        reference: String::new(),
        path: PathBuf::new(),
        revision: None,
    });
    Hello {
        version: VERSION.to_owned(),
        capabilities: engine.capabilities(&any),
    }
}

/// Makes an answer, and ends it if the process that asked is gone.
async fn generate(
    engine: &dyn LocalEngine,
    request: Request,
    mut lines: JsonLines,
    mut to: OwnedWriteHalf,
) -> io::Result<()> {
    let mut job = engine.generate(request);
    let _cancel = CancelOnDrop(job.cancel.clone());
    loop {
        tokio::select! {
            event = job.events.recv() => {
                let Some(event) = event else { return Ok(()) };
                wire::send(&mut to, &event).await?;
                if event.is_last() {
                    return Ok(());
                }
            }
            control = lines.next() => match control? {
                Some(ControlFrame::Cancel) => job.cancel.cancel(),
                Some(ControlFrame::EndThinking) => job.end_thinking.answer_now(),
                None => return Ok(()),
            }
        }
    }
}

/// Passes events on, up to the last one.
async fn tell<T: Coalesce + Serialize>(mut events: Receiver<T>, to: &mut OwnedWriteHalf) -> io::Result<()> {
    while let Some(event) = events.recv().await {
        wire::send(to, &event).await?;
        if event.is_last() {
            break;
        }
    }
    Ok(())
}
