//! The models that draft the answers of others: loaded where there is room, and left out where there is none.

use std::rc::Rc;
use std::sync::Arc;

use protocol::{EngineEvent, Notice, NoticeCode};

use super::{Listener, Worker};
use crate::answer::job::JobContext;
use crate::error::{Error, Result};
use crate::loaded::{LoadedModel, ModelFiles};
use crate::schedule::loaded_models::LoadPlan;

impl Worker {
    /// The draft model of an answer of this model, loaded if it was not. The job is told if it cannot be used, and is
    /// answered without it.
    ///
    /// # Errors
    /// [`Error::Cancelled`] alone.
    pub(super) fn draft_model(
        &mut self,
        loaded: &LoadedModel,
        files: Result<Arc<ModelFiles>>,
        job: &JobContext,
    ) -> Result<Option<Rc<LoadedModel>>> {
        match files.and_then(|files| self.load_beside(loaded, files, job)) {
            Ok(model) => Ok(Some(model)),
            Err(Error::Cancelled) => Err(Error::Cancelled),
            Err(error) => {
                let message = format!("The draft model was not used: {error}");
                let notice = Notice::new(NoticeCode::DraftModelUnused, message);
                job.send(EngineEvent::Notice(notice.with("reason", error.to_string())));
                Ok(None)
            }
        }
    }

    fn load_beside(
        &mut self,
        loaded: &LoadedModel,
        files: Arc<ModelFiles>,
        job: &JobContext,
    ) -> Result<Rc<LoadedModel>> {
        let mut waiting = self.queue.iter();
        if waiting.any(|waiting| waiting.draining().contains(&files.source)) {
            return Err(Error::NoRoomBeside);
        }
        if self.models.find(&files.source).is_none() {
            match self.models.plan_load(&files.source)? {
                LoadPlan::Evict(others) if !others.contains(&loaded.files.source) => {}
                LoadPlan::Evict(_) | LoadPlan::WaitFor(_) => return Err(Error::NoRoomBeside),
            }
        }
        let (model, _) = self.load_unless_loaded(files, &Listener::Job(job))?;
        Ok(model)
    }
}
