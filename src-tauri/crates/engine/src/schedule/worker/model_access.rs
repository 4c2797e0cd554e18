//! The worker as calls use it.

use std::rc::Rc;
#[cfg(feature = "test-support")]
use std::time::Duration;

use protocol::FolderSource;

use crate::error::Result;
use crate::loaded::LoadedModel;
use crate::schedule::command::ModelAccess;
#[cfg(feature = "test-support")]
use crate::schedule::scheduler::Preemptions;
use crate::schedule::worker::listener::Listener;
use crate::schedule::worker::Worker;

impl ModelAccess for Worker {
    fn ensure_loaded(&mut self, source: &FolderSource) -> Result<Rc<LoadedModel>> {
        let files = self.model_files(source)?;
        let (events, _) = protocol::mailbox();
        Ok(self.load_unless_loaded(files, &Listener::Load(&events))?.0)
    }

    #[cfg(feature = "test-support")]
    fn loaded(&self) -> Vec<Rc<LoadedModel>> {
        self.models.iter().cloned().collect()
    }

    fn unload_all(&mut self) {
        self.unload_all();
    }

    #[cfg(feature = "test-support")]
    fn preemptions(&self) -> (usize, usize) {
        let add = |sum: (usize, usize), more: Preemptions| (sum.0 + more.preempted, sum.1 + more.dropped);
        self.models.preemptions().fold((0, 0), add)
    }

    #[cfg(feature = "test-support")]
    fn set_gaps(&mut self, gap: Duration) {
        self.models.set_gaps(gap);
    }
}
