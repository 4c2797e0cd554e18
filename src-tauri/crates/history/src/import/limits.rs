//! Limits of what a file of chats may say.

/// The latest time that is believed, in Unix milliseconds.
const LATEST: i64 = 8_000_000_000_000;

/// A time that is believed.
pub(super) fn believed(at: i64) -> i64 {
    at.clamp(0, LATEST)
}

/// A text as one line of at most `longest` characters.
pub(super) fn one_line(text: &str, longest: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(longest).collect()
}
