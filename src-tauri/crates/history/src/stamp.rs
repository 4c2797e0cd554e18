//! Times and ids of rows.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time by the computer's clock, in Unix milliseconds.
pub fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}

/// A new id; of one process, younger ids sort after older ones.
pub(crate) fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
