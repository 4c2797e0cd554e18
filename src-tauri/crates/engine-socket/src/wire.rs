//! The wire format of the socket: one JSON value per line.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use protocol::{Capabilities, EmbeddingRequest, FolderSource, ModelSource, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::UnixStream;

/// Both sides have to be of one version, because they speak in the types of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The longest frame, in bytes: twice what the server takes in a request. The reader holds all of a frame.
pub const LONGEST_FRAME: usize = 64 << 20;

/// A request of another process, in the first line of its connection.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketCall {
    /// Answered by [`Hello`].
    Hello,
    /// Asks for what this model can do. Answered by [`Capabilities`].
    Capabilities(ModelSource),
    /// Answered by events, until the last one.
    Generate(Box<Request>),
    /// Answered by a count, or an error.
    Count(Box<Request>),
    /// Answered by vectors, or an error.
    Embed(Box<EmbeddingRequest>),
    /// Answered by events, until the last one.
    Load(FolderSource),
    /// Not answered.
    Prefetch(Box<Request>),
    /// Answered by nothing, or an error.
    Unload(String),
    /// Answered by true if it was done, or an error.
    UnloadIdle(String),
    /// Answered by nothing, or an error.
    UnloadAll,
    /// Answered by nothing, or an error.
    FreeCaches,
    /// Answered by a list.
    Loaded,
    /// Answered by figures, or an error.
    Memory,
}

/// The first line of a connection.
#[derive(Serialize)]
struct OpeningFrame<'a> {
    version: &'a str,
    call: &'a SocketCall,
}

/// The version in a first line. It is read alone first, because the call of another version may not be readable.
#[derive(Deserialize)]
struct OpeningVersion {
    version: String,
}

/// The call in a first line of this version.
#[derive(Deserialize)]
struct OpeningCall {
    call: SocketCall,
}

/// A control message while an answer is generated.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlFrame {
    /// End it.
    Cancel,
    /// End its thought.
    EndThinking,
}

/// The greeting of a process that shares its engine.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Its [`VERSION`].
    pub version: String,
    /// The engine's general capabilities for models of this computer.
    pub capabilities: Capabilities,
}

/// The folder of the socket in a data folder.
pub fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("run")
}

/// The socket in its folder.
pub fn socket(folder: &Path) -> PathBuf {
    folder.join("engine.sock")
}

/// A value as a line.
///
/// # Errors
/// `FileTooLarge` for one that the other side would not read.
pub fn line<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    match line.len() {
        ..=LONGEST_FRAME => Ok(line),
        _ => Err(too_long()),
    }
}

/// A call as the first line of a connection.
pub fn opening(call: &SocketCall) -> Result<Vec<u8>> {
    let version = VERSION;
    line(&OpeningFrame { version, call })
}

/// The error of a frame that is longer than [`LONGEST_FRAME`].
pub fn too_long() -> Error {
    Error::from(ErrorKind::FileTooLarge)
}

/// The user of this process.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Refuses another side that is not of this user. File modes alone do not tell: some file systems keep none.
pub fn check_peer(stream: &UnixStream, user: u32) -> Result<()> {
    let peer = stream.peer_cred()?.uid();
    if peer == user {
        return Ok(());
    }
    let message = format!("the other side is a process of user {peer}");
    Err(Error::new(ErrorKind::PermissionDenied, message))
}

/// Both directions of a connection.
pub fn split(stream: UnixStream) -> (JsonLines, OwnedWriteHalf) {
    let (read, write) = stream.into_split();
    let lines = JsonLines {
        reader: BufReader::new(read),
        begun: Vec::new(),
    };
    (lines, write)
}

/// Sends a value.
pub async fn send<T: Serialize>(to: &mut OwnedWriteHalf, value: &T) -> Result<()> {
    to.write_all(&line(value)?).await
}

/// The lines of a connection.
pub struct JsonLines {
    reader: BufReader<OwnedReadHalf>,
    /// A line of which more is to come.
    begun: Vec<u8>,
}

impl JsonLines {
    /// The next value; `None` if the other side has closed. Nothing is lost if this is given up while it waits.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let line = self.next_line().await?;
        line.map(|line| parse(&line)).transpose()
    }

    /// The call of a first line; `None` if the other side has closed.
    ///
    /// # Errors
    /// Also if the other side is of another version.
    pub async fn opening(&mut self) -> Result<Option<SocketCall>> {
        let Some(line) = self.next_line().await? else {
            return Ok(None);
        };
        let OpeningVersion { version } = parse(&line)?;
        if version != VERSION {
            let message = format!("the other side is of version {version:?}");
            return Err(Error::new(ErrorKind::InvalidData, message));
        }
        let OpeningCall { call } = parse(&line)?;
        Ok(Some(call))
    }

    async fn next_line(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            let available = self.reader.fill_buf().await?;
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.begun.len() + taken > LONGEST_FRAME {
                return Err(too_long());
            }
            self.begun.extend_from_slice(&available[..taken]);
            self.reader.consume(taken);
            if end.is_some() || taken == 0 {
                let line = std::mem::take(&mut self.begun);
                return Ok((!line.is_empty()).then_some(line));
            }
        }
    }
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T> {
    serde_json::from_slice(line).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}
