use std::io::{self, IsTerminal, Write};

use serde_json::Value;

/// Prints one JSON object as a line, at once.
///
/// # Errors
/// When standard output is closed.
pub fn line(value: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()
}

/// Prints text without a line end, at once.
///
/// # Errors
/// When standard output is closed.
pub fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The text in the soft color of thoughts and remarks, if the terminal has colors.
pub fn soft(text: &str) -> String {
    if io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        format!("\x1b[2m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
