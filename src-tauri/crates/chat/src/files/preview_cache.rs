//! Previews of images in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

/// The most previews in memory; each has about 40 kB.
const PREVIEWS_KEPT: usize = 200;

/// The previews that were asked for last, and the turn to make one: an image that is unfolded takes up to 300 MB.
#[derive(Debug)]
pub(super) struct Previews {
    kept: Mutex<VecDeque<(String, Arc<[u8]>)>>,
    pub(super) turn: Semaphore,
}

impl Default for Previews {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            turn: Semaphore::new(1),
        }
    }
}

impl Previews {
    pub(super) fn find(&self, attachment: &str) -> Option<Arc<[u8]>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(known, _)| known == attachment);
        found.map(|(_, bytes)| bytes.clone())
    }

    pub(super) fn keep(&self, attachment: &str, preview: &Arc<[u8]>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known != attachment);
        kept.push_front((attachment.to_owned(), preview.clone()));
        kept.truncate(PREVIEWS_KEPT);
    }
}
