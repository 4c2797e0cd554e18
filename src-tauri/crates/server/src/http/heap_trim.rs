//! Gives memory back to the system after large requests: allocators keep what a body of megabytes took.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// The size from which a body is large, in bytes.
pub(crate) const LARGE: u64 = 4 << 20;

/// Calls a function some time after large requests, once for all of that time.
#[derive(Debug, Clone)]
pub(crate) struct HeapTrim {
    trim: Option<fn()>,
    /// The time after a large request, in which others may end too.
    delay: Duration,
    due: Arc<AtomicBool>,
}

impl HeapTrim {
    /// Calls this function, if there is one. It may take a while, and runs on a thread of its own.
    pub(crate) fn new(trim: Option<fn()>, delay: Duration) -> Self {
        Self {
            trim,
            delay,
            due: Arc::default(),
        }
    }

    /// Watches a request whose body has at most this many bytes, if the client told; `None` for a small one.
    pub(crate) fn watch(&self, bytes: Option<u64>) -> Option<LargeRequest> {
        let large = self.trim.is_some() && bytes.is_none_or(|bytes| bytes > LARGE);
        large.then(|| LargeRequest(self.clone()))
    }

    fn soon(&self) {
        let (Some(trim), Ok(runtime)) = (self.trim, tokio::runtime::Handle::try_current()) else {
            return;
        };
        if self.due.swap(true, Ordering::Relaxed) {
            return;
        }
        let (due, delay) = (self.due.clone(), self.delay);
        runtime.spawn(async move {
            tokio::time::sleep(delay).await;
            due.store(false, Ordering::Relaxed);
            tokio::task::spawn_blocking(trim);
        });
    }
}

/// A large request until its answer is sent.
#[derive(Debug)]
pub(crate) struct LargeRequest(HeapTrim);

impl Drop for LargeRequest {
    fn drop(&mut self) {
        self.0.soon();
    }
}
