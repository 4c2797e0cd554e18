//! The pictures of an answer's prompt.

use std::rc::Rc;
use std::time::Duration;

use protocol::{EngineEvent, ImageDetail, Stage};

use super::Generation;
use crate::cache::Prefix;
use crate::error::{Error, Result};
use crate::job::JobContext;
use crate::load::LoadedModel;
use crate::memory;
use crate::models::vision::LayerHook;
use crate::sequence::{backend, PromptImage, PromptImages};
use crate::tensor::device;

/// How long is waited for a picture that is being unfolded: others may have a token by then.
const PREPARING: Duration = Duration::from_millis(1);

/// The encoding of a picture of a prompt by the tower, beside which others may go on.
pub struct ImageEncoding {
    loaded: Rc<LoadedModel>,
    images: Rc<PromptImages>,
    index: usize,
    job: Rc<JobContext>,
}

impl ImageEncoding {
    /// Lets the tower encode it, or waits a moment if the picture is still being unfolded. `hook` is called between two layers. A cancelled one
    /// ends without an error: its answer ends as any that was cancelled, before anything else is done.
    ///
    /// # Errors
    /// If the picture cannot be prepared, or MLX fails.
    pub fn run(&self, hook: &mut LayerHook<'_>) -> Result<()> {
        let encoded = self.loaded.encode_image(&self.images, self.index, &mut |states| {
            self.job.check_cancelled()?;
            hook(states)
        });
        match encoded {
            Ok(true) => self.report(self.index + 1),
            Ok(false) => std::thread::sleep(PREPARING),
            Err(Error::Cancelled) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn report(&self, done: usize) {
        self.job.send(EngineEvent::Progress {
            stage: Stage::EncodeImages,
            done: done as u64,
            total: self.images.len() as u64,
        });
    }
}

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

    /// The first picture whose tokens are about to be read and that is not encoded yet.
    ///
    /// # Errors
    /// If there is no memory to encode it.
    pub(super) fn next_image_encoding(&mut self, from: usize, to: usize) -> Result<Option<ImageEncoding>> {
        let Some((images, _)) = &self.images else { return Ok(None) };
        let Some(index) = images.unseen(from, to) else { return Ok(None) };
        let encoding = ImageEncoding {
            loaded: self.loaded.clone(),
            images: images.clone(),
            index,
            job: self.job.clone(),
        };
        // It may have to be unfolded first, and comes again then.
        if self.encoding_image != Some(index) {
            encoding.report(index);
            self.check_encoding_memory(images.image(index))?;
        }
        self.encoding_image = Some(index);
        Ok(Some(encoding))
    }

    /// Refuses a picture that there is no memory to encode, with the figures and with the detail at which there is.
    fn check_encoding_memory(&self, image: &PromptImage) -> Result<()> {
        let Some(guard) = self.job.shared.memory_guard() else {
            return Ok(());
        };
        let held = memory::figures()?.active;
        let needed = |patches| self.loaded.files.config.image_encoding_memory(patches, backend());
        let check = |patches| guard.before_chunk(needed(patches), device().name(), held);
        let patches = image.plan.most_patches();
        let Err(refused) = check(patches) else {
            return Ok(());
        };
        let less = image.less_detail.iter().find(|(_, patches)| check(*patches).is_ok());
        let remedy = match less {
            Some((ImageDetail::Quick, _)) => "look at it with Quick detail",
            Some(_) => "look at it with Normal detail",
            None => "send a smaller picture, or close other programs",
        };
        let message = format!(
            "looking at a picture this closely takes about {} MB of memory, more than is free; nothing is lost: {remedy}",
            needed(patches) / 1_000_000
        );
        Err(Error::MemoryShort(protocol::Error { message, ..refused }))
    }
}
