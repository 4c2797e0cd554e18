//! Times in files of other programs, where some of them, or all, may be missing.

use serde_json::Value;

use super::limits::believed;

/// The times of a chat of another program, in Unix milliseconds.
pub(super) struct Times {
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    /// True if the file has no date of the chat or of a message in it.
    undated: bool,
}

impl Times {
    /// The times that the file has for a chat; else those of its messages; else that of the import, because nobody
    /// looks for a chat in 1970 that was imported today.
    pub(super) fn new(
        created: Option<i64>,
        updated: Option<i64>,
        messages: impl Iterator<Item = i64>,
        imported_at: i64,
    ) -> Self {
        // Some programs write 0 for a message without a time.
        let likely = messages.filter(|at| *at > 0 && believed(*at) == *at);
        let known: Vec<i64> = likely.chain(updated).collect();
        let (first, last) = (known.iter().min().copied(), known.iter().max().copied());
        Self {
            created_at: created.or(first).unwrap_or(imported_at),
            updated_at: updated.or(created).or(last).unwrap_or(imported_at),
            undated: created.is_none() && known.is_empty(),
        }
    }

    /// The time of a message: its own, or else that of the chat. In a chat without dates, where no message has a
    /// likely time either, messages ascend.
    pub(super) fn of_message(&self, own: Option<i64>, place: usize) -> i64 {
        match self.undated {
            true => self.of_place(place),
            false => own.unwrap_or(self.created_at),
        }
    }

    /// A time that keeps the order of messages, of which nobody says when they were written.
    pub(super) fn of_place(&self, place: usize) -> i64 {
        self.created_at.saturating_add(place as i64)
    }
}

/// A time in Unix milliseconds: seconds, milliseconds, or a text as of ISO 8601.
pub(super) fn time(value: Option<&Value>) -> Option<i64> {
    let value = value?;
    if let Some(written) = value.as_str() {
        return Some(written.parse::<jiff::Timestamp>().ok()?.as_millisecond());
    }
    let number = value.as_f64().filter(|number| number.is_finite())?;
    // Seconds of our age have ten digits, milliseconds thirteen.
    Some(if number.abs() < 1e11 { number * 1000.0 } else { number } as i64)
}
