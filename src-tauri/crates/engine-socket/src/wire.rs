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

/// A request of another process: the first line of its connection.
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
pub fn line<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
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
        self.reader.read_until(b'\n', &mut self.begun).await?;
        let line = std::mem::take(&mut self.begun);
        if line.is_empty() {
            return Ok(None);
        }
        serde_json::from_slice(&line)
            .map(Some)
            .map_err(|error| Error::new(ErrorKind::InvalidData, error))
    }
}
