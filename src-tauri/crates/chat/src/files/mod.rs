//! Images and text files of messages.

pub(crate) mod images;
mod preview_cache;
pub(crate) mod previews;
pub(crate) mod texts;

use std::sync::Arc;

use crate::core::Core;
use crate::files::preview_cache::Previews;

/// Images and text files of messages.
#[derive(Clone)]
pub struct Files {
    core: Arc<Core>,
    /// The previews that windows were shown last.
    previews: Arc<Previews>,
}

impl Files {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            previews: Arc::default(),
        }
    }
}
