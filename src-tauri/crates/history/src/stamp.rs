//! Times and ids of rows.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time by the computer's clock, in Unix milliseconds.
pub fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}

/// A number that no other file has, by all chance.
pub(crate) fn new_file_id() -> u32 {
    (uuid::Uuid::now_v7().as_u128() as u32 >> 1).max(1)
}

/// A new id; of one process, younger ids sort after older ones.
pub(crate) fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
