//! The pictures of an answer's prompt.

use std::time::Duration;

use protocol::{EngineEvent, Stage};

use super::Generation;
use crate::cache::Prefix;
use crate::error::{Error, Result};
use crate::memory;
use crate::sequence::{backend, PromptImage};
use crate::tensor::device;

/// How long is waited for a picture that is being unfolded: others may have a token by then.
const PREPARING: Duration = Duration::from_millis(1);

impl Generation {
    /// What is known of its tokens, with the pictures among them.
    pub fn prefix(&self) -> Prefix<'_> {
        Prefix {
            tokens: &self.tokens,
            images: self.images.as_ref().map_or(&[], |(_, keys)| keys),
        }
    }

    /// How far to read from `from` if `to` was meant.
    pub(super) fn chunk_end(&self, from: usize, to: usize) -> usize {
        self.images.as_ref().map_or(to, |(images, _)| images.chunk_end(from, to))
    }

    /// Looks at the first picture whose tokens are about to be read and that nobody has looked at; returns whether there was one.
    ///
    /// # Errors
    /// If MLX fails.
    pub(super) fn look(&mut self, from: usize, to: usize) -> Result<bool> {
        let Some((images, _)) = &self.images else { return Ok(false) };
        let Some(index) = images.unseen(from, to) else { return Ok(false) };
        let report = |done: usize| {
            self.job.send(EngineEvent::Progress {
                stage: Stage::Looking,
                done: done as u64,
                total: images.len() as u64,
            });
        };
        // It may have to be unfolded first, and comes again then.
        if self.looking != Some(index) {
            report(index);
            self.check_looking(images.image(index))?;
        }
        match self.loaded.look(images, index, &mut || self.job.check_cancelled()) {
            Ok(true) => report(index + 1),
            Ok(false) => std::thread::sleep(PREPARING),
            // It ends as any that was cancelled, before anything else is done.
            Err(Error::Cancelled) => {}
            Err(error) => return Err(error),
        }
        self.looking = Some(index);
        Ok(true)
    }

    /// Refuses a picture that there is no memory to look at, with the figures.
    fn check_looking(&self, image: &PromptImage) -> Result<()> {
        let Some(guard) = self.job.shared.memory_guard() else {
            return Ok(());
        };
        let patches = image
            .plan
            .views
            .iter()
            .map(|view| u64::from(view.patches.0) * u64::from(view.patches.1));
        let more = self.loaded.files.config.looking_memory(patches.max().unwrap_or(0), backend());
        guard
            .before_chunk(more, device().name(), memory::figures()?.active)
            .map_err(Error::MemoryShort)
    }
}
