//! The sign-ins that wait for a browser.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// The sign-ins that wait for a browser, by server. A new one ends the one before it.
#[derive(Default)]
pub(super) struct SignIns(Mutex<HashMap<String, Arc<Notify>>>);

impl SignIns {
    /// Begins one.
    pub(super) fn begin(&self, id: &str) -> Arc<Notify> {
        self.end(id);
        let ended = Arc::new(Notify::new());
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(id.to_owned(), ended.clone());
        ended
    }

    /// Ends the one of a server.
    pub(super) fn end(&self, id: &str) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(running) = running {
            running.notify_one();
        }
    }
}
