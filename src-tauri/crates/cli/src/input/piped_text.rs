use std::io::{self, IsTerminal, Read};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result};

/// The time after which a person is told what the command waits for.
const PATIENCE: Duration = Duration::from_secs(2);

/// The text on standard input; `None` at a terminal, or if there is none. A caller that keeps the input open without
/// writing to it is told how to end it.
///
/// # Errors
/// When it cannot be read, is not UTF-8, or is longer than a document may be.
pub fn piped_text() -> Result<Option<String>> {
    if io::stdin().is_terminal() {
        return Ok(None);
    }
    let (done, read) = channel();
    std::thread::spawn(move || {
        // One byte more than any document may have: an input that never ends is refused like one that is too long.
        let mut bytes = Vec::new();
        let most = documents::MAX_BYTES as u64 + 1;
        let outcome = io::stdin().take(most).read_to_end(&mut bytes).map(|_| bytes);
        // The receiver waits for it.
        let _ = done.send(outcome);
    });
    let mut outcome = read.recv_timeout(PATIENCE);
    if matches!(outcome, Err(RecvTimeoutError::Timeout)) {
        eprintln!("(Reading standard input. Press Ctrl+D to end it, or add </dev/null to skip it)");
        outcome = read.recv().map_err(Into::into);
    }
    let bytes = outcome
        .context("standard input cannot be read")?
        .context("standard input cannot be read")?;
    let most = documents::MAX_BYTES;
    anyhow::ensure!(
        bytes.len() <= most,
        "standard input is longer than {} MB",
        most / 1_000_000
    );
    let text = String::from_utf8(bytes)
        .context("standard input is not UTF-8. Use --file - for other encodings and documents")?;
    let text = text.trim_end_matches('\n');
    Ok((!text.trim().is_empty()).then(|| text.to_owned()))
}
