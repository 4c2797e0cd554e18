//! The memory that a model needs, for models on this computer and on the hub.

use std::sync::Arc;

use api::MemoryFit;

use crate::cache::RepositoryId;
use crate::error::Error;
use crate::huggingface::catalog::Catalog;
use crate::local::model_folder::ModelFolder;
use crate::memory_fit::{fit_of_folder, memory_fit, Measured, Memory, Question};

/// The memory that models need on this computer, estimated and measured.
#[derive(Debug)]
pub struct ModelMemory {
    local: ModelFolder,
    catalog: Arc<Catalog>,
    measured: Measured,
}

impl ModelMemory {
    pub(crate) fn new(local: ModelFolder, catalog: Arc<Catalog>, measured: Measured) -> Self {
        Self {
            local,
            catalog,
            measured,
        }
    }

    /// The fit of a model on this computer: from its files if it is here, else from its config on the hub and the
    /// headers of its weights. `engine_bytes` count as free, because the loaded model is unloaded first.
    ///
    /// # Errors
    /// [`Error::WillNotRun`] with the reason; whatever keeps the hub from answering.
    pub async fn fit(&self, reference: &str, question: &Question, engine_bytes: u64) -> Result<MemoryFit, Error> {
        let memory = Memory::now(question.backend, engine_bytes)?;
        match self.local.find(reference) {
            Ok(model) => {
                let measured = self.measured.of(&model.reference, model.revision.as_deref());
                let (path, question) = (model.path, *question);
                let fit = tokio::task::spawn_blocking(move || fit_of_folder(&path, &question, &memory, measured));
                fit.await.map_err(|error| Error::MemoryUnknown(error.to_string()))?
            }
            Err(Error::NotFound(_)) => {
                let (config, stored) = self.catalog.config(&RepositoryId::new(reference)?).await?;
                Ok(memory_fit(&config, stored, question, &memory, None))
            }
            Err(error) => Err(error),
        }
    }

    /// Stores the peak memory of a loaded model, in bytes, for later estimates.
    ///
    /// # Errors
    /// [`Error::Write`] if the data folder cannot be written.
    pub fn record_peak(&self, reference: &str, revision: Option<&str>, bytes: u64) -> Result<(), Error> {
        self.measured.record(reference, revision, bytes)
    }
}
