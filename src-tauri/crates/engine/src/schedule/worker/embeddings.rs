//! Embedding jobs on their way to the model's scheduler.

use mlx::memory;

use super::{Listener, Worker};
use crate::error::{catch_panic, Error};
use crate::schedule::embeddings::{EmbeddingJob, EmbeddingRun, PreparedTexts};

impl Worker {
    /// Admits an embedding job after its model is loaded.
    pub(super) fn begin_embeddings(&mut self, texts: PreparedTexts, job: EmbeddingJob) {
        let source = texts.model.clone();
        let begun = catch_panic(|| {
            let files = self.model_files(&source)?;
            let (loaded, _) = self.load_unless_loaded(files, &Listener::Embedding(&job))?;
            self.models.keep_alive(&source, texts.keep_alive);
            EmbeddingRun::check(&loaded, &texts)?;
            Ok(loaded)
        });
        match (begun, self.models.touch(&source)) {
            (Ok(loaded), Some(scheduler)) => scheduler.admit_embeddings(EmbeddingRun::new(loaded, texts, job)),
            (Ok(_), None) => job.end(Err(Error::WorkerGone)),
            (Err(error), _) => {
                if matches!(error, Error::Mlx(_) | Error::Panicked(_)) {
                    memory::drain();
                }
                job.end(Err(error));
            }
        }
    }
}
