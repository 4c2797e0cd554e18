//! The models behind the chats: their capabilities, their use by chats and their stay in memory.

mod usage;

use std::sync::Arc;

use protocol::{Capabilities, Error, Reason, Result};

use crate::core::Core;

/// The models that chats use.
#[derive(Clone)]
pub struct Models {
    core: Arc<Core>,
}

impl Models {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The capabilities of the model of this reference, or of the default model.
    ///
    /// # Errors
    /// `ModelNotFound` and `ModelBroken` from the model folder.
    pub async fn capabilities(&self, reference: Option<&str>) -> Result<Capabilities> {
        let (_, model) = self.core.model(reference).await?;
        Ok(self.core.capabilities(&model).await)
    }

    /// Frees the memory of a model now; its next answer loads it again. Changes nothing if it is not loaded.
    ///
    /// # Errors
    /// `Busy` while it answers, or while another model is being loaded beside it.
    pub async fn unload_idle(&self, reference: &str) -> Result<()> {
        let Some(engine) = self.core.engine.local() else {
            return Ok(());
        };
        if engine.unload_idle(reference).await? || self.core.loaded(reference).is_none() {
            return Ok(());
        }
        let message =
            "the model answers, or another one is being loaded; stop that first, or try again when it has ended";
        Err(Error::because(Reason::ModelAnswering, message))
    }
}
