//! The reading of the images of one collection, as long as there is something to tell of it.

use api::ImageReading;
use tokio::sync::watch;

/// The reading of the images of a collection.
pub(super) struct ImageWork {
    /// How far it is.
    pub view: ImageReading,
    /// Becomes true once nobody wants it any more.
    pub stop: watch::Sender<bool>,
}

impl ImageWork {
    pub(super) fn view(&self) -> ImageReading {
        self.view.clone()
    }

    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }
}
