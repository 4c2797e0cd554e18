//! Time limits of a call.

use std::time::Duration;

/// Time limits for the stages of one call. Connecting has its own limit, 15 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the response head has arrived, for each hop separately.
    pub head: Duration,
    /// From the head to the first bytes of the body; `None` takes `stall`.
    pub first_bytes: Option<Duration>,
    /// Between two pieces of the body; `None` is no limit.
    pub stall: Option<Duration>,
}

impl Default for Timeouts {
    /// 30 seconds for the head, no limit for the body.
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            first_bytes: None,
            stall: None,
        }
    }
}
