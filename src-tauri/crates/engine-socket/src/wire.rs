//! What is said over the socket: a line of JSON for each value.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::{Capabilities, EmbeddingRequest, FolderSource, ModelSource, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::UnixStream;

/// Both sides have to be of one version, because they speak in the types of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a process asks for: the first line of its connection.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Who is there? Answered by [`Greeting`].
    Greet,
    /// What can be done with this model? Answered by [`Capabilities`].
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
    /// Answered by whether it was done, or an error.
    UnloadIdle(String, Duration),
    /// Answered by nothing, or an error.
    UnloadAll,
    /// Answered by nothing, or an error.
    FreeCaches,
    /// Answered by a list.
    Loaded,
    /// Answered by figures, or an error.
    Memory,
}

/// What a process may say while its answer is made.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// End it.
    Cancel,
    /// End its thought.
    EndThinking,
}

/// Who is there.
#[derive(Debug, Serialize, Deserialize)]
pub struct Greeting {
    /// Its [`VERSION`].
    pub version: String,
    /// What can be done with models of this computer.
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
pub fn split(stream: UnixStream) -> (Lines, OwnedWriteHalf) {
    let (read, write) = stream.into_split();
    let lines = Lines {
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
pub struct Lines {
    reader: BufReader<OwnedReadHalf>,
    /// A line of which more is to come.
    begun: Vec<u8>,
}

impl Lines {
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
