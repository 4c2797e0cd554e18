//! The images of an answer's prompt.

use std::rc::Rc;
use std::time::Duration;

use mlx::device::device;
use mlx::memory;
use protocol::{EngineEvent, ImageDetail, Stage};

use super::Generation;
use crate::answer::job::JobContext;
use crate::backend::backend;
use crate::error::{Error, Result};
use crate::loaded::LoadedModel;
use crate::models::vision::LayerHook;
use crate::sequence::prefix::Prefix;
use crate::sequence::{PromptImage, PromptImages};

/// How long is waited for an image that is being decoded: others may have a token by then.
const PREPARING: Duration = Duration::from_millis(1);

/// The encoding of an image of a prompt by the vision encoder, during which others may go on.
pub struct ImageEncoding {
    loaded: Rc<LoadedModel>,
    images: Rc<PromptImages>,
    index: usize,
    job: Rc<JobContext>,
}

impl ImageEncoding {
    /// Lets the vision encoder encode it, or waits a moment if the image is still being decoded. `hook` is called
    /// between two layers. A cancelled one ends without an error: its answer ends as any that was cancelled, before
    /// anything else is done.
    ///
    /// # Errors
    /// If the image cannot be prepared, or MLX fails.
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
    /// Its known tokens with the images among them.
    pub fn prefix(&self) -> Prefix<'_> {
        Prefix {
            tokens: &self.tokens,
            images: self.prompt.keys(),
        }
    }

    /// How far to read from `from` if `to` was meant.
    pub(super) fn chunk_end(&self, from: usize, to: usize) -> usize {
        self.prompt
            .images
            .as_ref()
            .map_or(to, |(images, _)| images.chunk_end(from, to))
    }

    /// True if all tokens of its prompt see each other.
    pub(super) fn reads_whole_prompt(&self) -> bool {
        self.prompt
            .images
            .as_ref()
            .is_some_and(|(images, _)| images.reads_whole_prompt())
    }

    /// The first image whose tokens are about to be read and that is not encoded yet.
    ///
    /// # Errors
    /// If there is no memory to encode it.
    pub(super) fn next_image_encoding(&mut self, from: usize, to: usize) -> Result<Option<ImageEncoding>> {
        let Some((images, _)) = &self.prompt.images else {
            return Ok(None);
        };
        let Some(index) = images.unencoded(from, to) else {
            return Ok(None);
        };
        let encoding = ImageEncoding {
            loaded: self.loaded.clone(),
            images: images.clone(),
            index,
            job: self.job.clone(),
        };
        // It may have to be decoded first, and comes again then.
        if self.prompt.encoding_image != Some(index) {
            encoding.report(index);
            self.check_encoding_memory(images.image(index))?;
        }
        self.prompt.encoding_image = Some(index);
        Ok(Some(encoding))
    }

    /// Refuses an image that there is no memory to encode, with the figures and with the detail at which there is.
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
            None => "send a smaller image, or close other programs",
        };
        let message = format!(
            "looking at an image this closely takes about {} MB of memory, more than is free; nothing is lost: {remedy}",
            needed(patches) / 1_000_000
        );
        Err(Error::MemoryShort(protocol::Error { message, ..refused }))
    }
}
