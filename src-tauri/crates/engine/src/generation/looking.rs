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

/// A look at a picture of a prompt, which others may go on beside.
pub struct Look {
    loaded: Rc<LoadedModel>,
    images: Rc<PromptImages>,
    index: usize,
    job: Rc<JobContext>,
}

impl Look {
    /// Lets the tower look, or waits a moment if the picture is still being unfolded. `hook` is called between two layers. A cancelled look
    /// ends without an error: its answer ends as any that was cancelled, before anything else is done.
    ///
    /// # Errors
    /// If the picture cannot be prepared, or MLX fails.
    pub fn run(&self, hook: &mut LayerHook<'_>) -> Result<()> {
        let looked = self.loaded.look(&self.images, self.index, &mut |states| {
            self.job.check_cancelled()?;
            hook(states)
        });
        match looked {
            Ok(true) => self.report(self.index + 1),
            Ok(false) => std::thread::sleep(PREPARING),
            Err(Error::Cancelled) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn report(&self, done: usize) {
        self.job.send(EngineEvent::Progress {
            stage: Stage::Looking,
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

    /// The first picture whose tokens are about to be read and that nobody has looked at.
    ///
    /// # Errors
    /// If there is no memory to look at it.
    pub(super) fn next_look(&mut self, from: usize, to: usize) -> Result<Option<Look>> {
        let Some((images, _)) = &self.images else { return Ok(None) };
        let Some(index) = images.unseen(from, to) else { return Ok(None) };
        let look = Look {
            loaded: self.loaded.clone(),
            images: images.clone(),
            index,
            job: self.job.clone(),
        };
        // It may have to be unfolded first, and comes again then.
        if self.looking != Some(index) {
            look.report(index);
            self.check_looking(images.image(index))?;
        }
        self.looking = Some(index);
        Ok(Some(look))
    }

    /// Refuses a picture that there is no memory to look at, with the figures and with the detail at which there is.
    fn check_looking(&self, image: &PromptImage) -> Result<()> {
        let Some(guard) = self.job.shared.memory_guard() else {
            return Ok(());
        };
        let held = memory::figures()?.active;
        let needed = |patches| self.loaded.files.config.looking_memory(patches, backend());
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
