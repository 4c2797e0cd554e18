use std::fs::File;
use std::io::{self, IsTerminal, Seek, Write};
use std::sync::Arc;

use serde_json::Value;

/// Prints one JSON object as a line, at once.
///
/// # Errors
/// When standard output is closed.
pub fn line(value: &Value) -> io::Result<()> {
    Stream::Out.write(&format!("{value}\n"))
}

/// Prints text without a line end, at once.
///
/// # Errors
/// When standard output is closed.
pub fn text(text: &str) -> io::Result<()> {
    Stream::Out.write(text)
}

/// Prints the outcome of a command: as a line of JSON, or as a line of text.
///
/// # Errors
/// When standard output is closed.
pub fn report(json: bool, value: &Value, outcome: &str) -> io::Result<()> {
    match json {
        true => line(value),
        false => text(&format!("{outcome}\n")),
    }
}

/// The place of an output.
#[derive(Clone, Default)]
pub enum Stream {
    /// Standard output.
    #[default]
    Out,
    /// Standard error.
    Err,
    /// A file that is being written. It has what it had before until then.
    File(Arc<File>),
}

impl Stream {
    /// Prints text without a line end, at once.
    ///
    /// # Errors
    /// When the stream is closed.
    pub fn write(&self, text: &str) -> io::Result<()> {
        let mut stream: Box<dyn Write + '_> = match self {
            Self::Out => Box::new(io::stdout().lock()),
            Self::Err => Box::new(io::stderr().lock()),
            Self::File(file) => {
                let mut file = file.as_ref();
                // A device or a pipe has no length.
                if file.metadata()?.is_file() && file.stream_position()? == 0 {
                    file.set_len(0)?;
                }
                Box::new(file)
            }
        };
        stream.write_all(text.as_bytes())?;
        stream.flush()
    }

    /// The text in the soft color of thoughts and remarks, if the stream is a terminal with colors.
    pub fn soft(&self, text: &str) -> String {
        let is_terminal = match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Err => io::stderr().is_terminal(),
            Self::File(_) => false,
        };
        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        if is_terminal && !is_dumb && std::env::var_os("NO_COLOR").is_none() {
            format!("\x1b[2m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
