//! The state of quitting.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// The state of quitting.
#[derive(Default)]
pub struct Quit {
    /// True once the page took the question.
    pub taken: AtomicBool,
    /// Cancels the wait for running work.
    pub waiting: Mutex<CancellationToken>,
}

impl Quit {
    /// Cancels quitting, because a window was opened again.
    pub fn call_off(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    pub fn wait_anew(&self) -> CancellationToken {
        let token = CancellationToken::new();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *waiting, token.clone()).cancel();
        token
    }
}
