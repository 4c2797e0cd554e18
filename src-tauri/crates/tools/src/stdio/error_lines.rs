//! The last lines that a server wrote to its standard error: often the only place where it says why it does not work.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes that are kept.
const KEPT: usize = 64 << 10;

/// The end of a server's standard error.
#[derive(Debug, Clone, Default)]
pub struct ErrorLines(Arc<Mutex<VecDeque<u8>>>);

impl ErrorLines {
    /// Reads until the stream ends.
    pub(crate) async fn read(self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 8 << 10];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&buffer[..count]);
            let excess = kept.len().saturating_sub(KEPT);
            kept.drain(..excess);
        }
    }

    /// Adds a line of Ponder's own, which a person finds where the server's words are.
    pub fn note(&self, line: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.back().is_some_and(|last| *last != b'\n') {
            kept.push_back(b'\n');
        }
        kept.extend(format!("Ponder: {line}\n").as_bytes());
    }

    /// The kept bytes, as text.
    pub fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The last lines that say something, at most so many.
    pub fn last(&self, count: usize) -> Vec<String> {
        let text = self.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let first = lines.len().saturating_sub(count);
        lines[first..].iter().map(|line| (*line).to_owned()).collect()
    }
}
