//! The side that has the engine.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use protocol::{CancelOnDrop, Coalesce, FolderSource, LocalEngine, ModelSource, Receiver, Request};
use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::error::{frame_too_long, Error, Result};
use crate::wire::{self, ControlFrame, Hello, JsonLines, SocketCall, VERSION};

/// The time limit for the first line of a connection, which a client sends at once.
const FIRST_LINE: Duration = Duration::from_secs(30);

/// The conditions under which a connection is answered.
#[derive(Clone, Copy)]
struct Admission {
    /// The user whose processes may ask.
    user: u32,
    /// The time limit for the first line.
    first_line: Duration,
}

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
    /// If the folder or the socket cannot be made, or the folder stays open to other users.
    pub fn listen(data_dir: &Path, engine: Arc<dyn LocalEngine>) -> Result<Option<Self>> {
        let admission = Admission {
            user: wire::user(),
            first_line: FIRST_LINE,
        };
        Self::listen_for(admission, data_dir, engine)
    }

    fn listen_for(admission: Admission, data_dir: &Path, engine: Arc<dyn LocalEngine>) -> Result<Option<Self>> {
        let folder = wire::folder(data_dir);
        let unusable = |reason| Error::Folder {
            path: folder.clone(),
            reason,
        };
        make_private(&folder, |mode| fs::set_permissions(&folder, mode))?;
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
            listening: tokio::spawn(listen(listener, admission, engine)),
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

/// Makes a folder that only its user can open. `set` sets its mode.
fn make_private(folder: &Path, set: impl Fn(Permissions) -> io::Result<()>) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    // One that was there may be open to others, and file systems without modes report success.
    let mode = made
        .and_then(|()| set(Permissions::from_mode(0o700)))
        .and_then(|()| Ok(fs::metadata(folder)?.permissions().mode()));
    let path = folder.to_owned();
    match mode {
        Ok(mode) if mode & 0o777 == 0o700 => Ok(()),
        Ok(_) => Err(Error::FolderNotPrivate { path }),
        Err(reason) => Err(Error::Folder { path, reason }),
    }
}

async fn listen(listener: UnixListener, admission: Admission, engine: Arc<dyn LocalEngine>) {
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
                    if let Err(error) = answer(stream, admission, engine.as_ref()).await {
                        tracing::debug!(%error, "a process that used the engine has gone, or was refused");
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

async fn answer(stream: UnixStream, admission: Admission, engine: &dyn LocalEngine) -> io::Result<()> {
    wire::check_peer(&stream, admission.user)?;
    let (mut lines, mut to) = wire::split(stream);
    let Some(call) = tokio::time::timeout(admission.first_line, lines.opening()).await?? else {
        return Ok(());
    };
    match call {
        SocketCall::Hello => wire::send(&mut to, &hello(engine)).await,
        SocketCall::Capabilities(model) => wire::send(&mut to, &engine.capabilities(&model)).await,
        SocketCall::Generate(request) => generate(engine, *request, lines, to).await,
        SocketCall::Count(request) => reply(&mut to, engine.count(*request).await).await,
        SocketCall::Embed(request) => tokio::select! {
            embedded = engine.embed(*request) => reply(&mut to, embedded).await,
            // Nothing is said meanwhile, so the other side has gone; what is dropped here ends.
            _ = lines.next::<ControlFrame>() => Ok(()),
        },
        SocketCall::Load(model) => tell(engine.load(model), &mut to).await,
        SocketCall::Prefetch(request) => {
            engine.prefetch(*request);
            Ok(())
        }
        SocketCall::Unload(reference) => reply(&mut to, engine.unload(&reference).await).await,
        SocketCall::UnloadIdle(reference) => reply(&mut to, engine.unload_idle(&reference).await).await,
        SocketCall::UnloadAll => reply(&mut to, engine.unload_all().await).await,
        SocketCall::FreeCaches => reply(&mut to, engine.free_caches().await).await,
        SocketCall::Loaded => wire::send(&mut to, &engine.loaded()).await,
        SocketCall::Memory => reply(&mut to, engine.memory().await).await,
    }
}

/// Sends a result, or the reason why it cannot be sent: the vectors of many texts may be longer than a frame.
async fn reply<T: Serialize>(to: &mut OwnedWriteHalf, result: protocol::Result<T>) -> io::Result<()> {
    match wire::line(&result) {
        Ok(line) => to.write_all(&line).await,
        Err(error) if error.kind() == ErrorKind::FileTooLarge => wire::send(to, &Err::<T, _>(frame_too_long())).await,
        Err(error) => Err(error),
    }
}

fn hello(engine: &dyn LocalEngine) -> Hello {
    let any = ModelSource::Folder(FolderSource {
        reference: String::new(),
        path: PathBuf::new(),
        revision: None,
        adapter: None,
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use protocol::fake::FakeEngine;

    use super::*;

    /// Connects without a word and waits until the host closes.
    async fn is_closed(admission: Admission) -> bool {
        let home = tempfile::tempdir().unwrap();
        let _socket = EngineSocket::listen_for(admission, home.path(), Arc::new(FakeEngine::new()))
            .unwrap()
            .unwrap();
        let mut stream = UnixStream::connect(wire::socket(&wire::folder(home.path()))).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let read = tokio::task::spawn_blocking(move || stream.read(&mut [0]));
        read.await.unwrap().is_ok_and(|bytes| bytes == 0)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_process_of_another_user_is_not_answered() {
        let admission = Admission {
            user: wire::user() + 1,
            first_line: Duration::from_secs(600),
        };
        assert!(is_closed(admission).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_connection_without_a_first_line_ends() {
        let admission = Admission {
            user: wire::user(),
            first_line: Duration::from_millis(50),
        };
        assert!(is_closed(admission).await);
    }

    #[test]
    fn a_folder_that_stays_open_to_others_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("run");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        // As file systems do that keep no modes.
        let refused = make_private(&folder, |_| Ok(())).unwrap_err();
        assert!(
            matches!(&refused, Error::FolderNotPrivate { path } if *path == folder),
            "{refused}"
        );
        make_private(&folder, |mode| fs::set_permissions(&folder, mode)).unwrap();
    }

    #[tokio::test]
    async fn a_result_that_is_too_long_says_so() {
        let (near, far) = tokio::net::UnixStream::pair().unwrap();
        let (mut lines, _to) = wire::split(near);
        let mut to = wire::split(far).1;
        reply(&mut to, Ok("x".repeat(wire::LONGEST_FRAME))).await.unwrap();
        let read: protocol::Result<String> = lines.next().await.unwrap().unwrap();
        assert_eq!(read, Err(frame_too_long()));
    }
}
