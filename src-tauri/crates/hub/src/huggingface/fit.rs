//! Whether a model fits that is on this computer or on the hub.

use api::MemoryFit;
use checkpoint::{is_weight_file, Header};
use net::Purpose;

use super::api::checked;
use crate::cache::{Commit, FilePath, RepositoryId};
use crate::memory_fit::{fit_of_folder, memory_fit, Measured, Memory, Question};
use crate::{Error, Hub, RepoFiles};

/// What is asked for of a weight file first, in bytes: most headers are shorter.
const FIRST_PART: u64 = 256 << 10;

impl Hub {
    /// Whether a model fits this computer: by the files of one that is here, by the config of one on the hub and the headers of
    /// its weights. `engine_bytes` are free once the loaded model is gone.
    ///
    /// # Errors
    /// [`Error::WillNotRun`] with the reason; whatever keeps the hub from answering.
    pub async fn memory_fit(
        &self,
        reference: &str,
        question: &Question,
        engine_bytes: u64,
    ) -> Result<MemoryFit, Error> {
        let memory = Memory::now(question.backend, engine_bytes)?;
        match self.folder().find(reference) {
            Ok(model) => {
                let measured = self.measured().of(&model.reference, model.revision.as_deref());
                let (path, question) = (model.path, *question);
                let reckoned = tokio::task::spawn_blocking(move || fit_of_folder(&path, &question, &memory, measured));
                reckoned
                    .await
                    .map_err(|error| Error::MemoryUnknown(error.to_string()))?
            }
            Err(Error::NotFound { .. }) => {
                self.memory_fit_on_hub(&RepositoryId::new(reference)?, question, &memory)
                    .await
            }
            Err(error) => Err(error),
        }
    }

    /// What models took on this computer.
    pub fn measured(&self) -> Measured {
        Measured::in_folder(self.data_dir())
    }

    /// Keeps the most memory that a loaded model took, as the engine tells it, for the next [`Hub::memory_fit`].
    ///
    /// # Errors
    /// [`Error::Write`] if the data folder cannot be written.
    pub fn remember_measured(&self, reference: &str, revision: Option<&str>, bytes: u64) -> Result<(), Error> {
        self.measured().remember(reference, revision, bytes)
    }

    async fn memory_fit_on_hub(
        &self,
        id: &RepositoryId,
        question: &Question,
        memory: &Memory,
    ) -> Result<MemoryFit, Error> {
        // A slider asks many times a second; what was seen of the model answers without the hub.
        let cached = match self.cached_config(id.as_str()) {
            Some(cached) => cached,
            None => {
                let model = self.describe(id.as_str()).await?;
                let unread = || match model.problem {
                    Some(problem) => Error::Unread(problem),
                    None => Error::Gated {
                        id: id.to_string(),
                        host: self.net().endpoint().host(),
                        with_token: false,
                    },
                };
                self.cached_config(id.as_str()).ok_or_else(unread)?
            }
        };
        let (config, stored) = cached?;
        Ok(memory_fit(&config, stored, question, memory, None))
    }

    /// Bytes of the tensors that the text model of a repository reads. Of a file whose header cannot be had, all of it.
    pub async fn stored_on_hub(&self, id: &RepositoryId, listing: &RepoFiles) -> u64 {
        let mut sum = 0u64;
        for file in listing.files.iter().filter(|file| is_weight_file(file.path.as_str())) {
            let text = match self.tensors_of(id, &listing.commit, &file.path).await {
                Ok(text) => text,
                Err(error) => {
                    tracing::warn!(
                        "the header of {} of {id} could not be read: {error}",
                        file.path.as_str()
                    );
                    None
                }
            };
            sum = sum.saturating_add(text.map_or(file.bytes, |text| text.min(file.bytes)));
        }
        sum
    }

    async fn tensors_of(&self, id: &RepositoryId, commit: &Commit, path: &FilePath) -> Result<Option<u64>, Error> {
        let start = self.beginning(id, commit, path, FIRST_PART).await?;
        let Some(length) = start.first_chunk().and_then(|first: &[u8; 8]| Header::length(*first)) else {
            return Ok(None);
        };
        let end = 8 + length;
        let whole = if end <= start.len() as u64 {
            start
        } else {
            self.beginning(id, commit, path, end).await?
        };
        Ok(whole
            .get(8..end as usize)
            .and_then(Header::parse)
            .map(|header| header.text_bytes()))
    }

    /// The first bytes of a file, at most so many. A server that sends more than was asked for is not listened to any longer.
    async fn beginning(
        &self,
        id: &RepositoryId,
        commit: &Commit,
        path: &FilePath,
        most: u64,
    ) -> Result<Vec<u8>, Error> {
        let address = self.file_address(id, commit, path);
        let answer = self
            .net()
            .get(&address, Purpose::ModelInfo)
            .range(0, Some(most - 1))
            .send()
            .await?;
        let mut answer = checked(answer, id)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 >= most {
                bytes.truncate(most as usize);
                break;
            }
        }
        Ok(bytes)
    }
}
