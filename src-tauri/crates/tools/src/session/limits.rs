//! Time limits of a session.

use std::time::Duration;

/// Time limits.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the start until the server is ready.
    pub start: Duration,
    /// Of a list.
    pub list: Duration,
    /// Of a call that says nothing; each progress begins it anew.
    pub call: Duration,
    /// Of a call as a whole.
    pub whole_call: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(30),
            list: Duration::from_secs(30),
            call: Duration::from_secs(60),
            whole_call: Duration::from_secs(600),
        }
    }
}
