//! Waiting times that several parts of the schedule share.

use std::time::Duration;

/// How long to wait before memory that was refused is asked for again, unless an answer ends first.
pub const RETRY: Duration = Duration::from_millis(250);

/// How long to sleep while an image is still being decoded: other work may come up meanwhile.
pub const IMAGE_POLL: Duration = Duration::from_millis(1);
