//! Prefetching, "reading ahead" in the windows: reads what the next prompt of a conversation will begin with while no
//! request waits.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use mlx::memory;
use mlx::memory::clear_after_chunk;
use prompt::NextPrompt;
use protocol::{KvBits, Priority, Request};

use crate::answer::images::RequestImages;
use crate::answer::request::render_request;
use crate::error::{catch_panic, Result};
use crate::loaded::LoadedModel;
use crate::pool::{Pending, Pool};
use crate::schedule::limits::{POLL, PREFETCH_GAP};
use crate::schedule::loaded_models::LoadedModels;
use crate::schedule::pace::Pace;
use crate::sequence::prefix::{ImageKey, Prefix};
use crate::sequence::{PromptImages, SequenceState};
use crate::state::{EngineState, PendingPrefetch};

/// A conversation that is being prefetched.
struct Prefetch {
    next_prompt: NextPrompt,
    /// The images in it, if there are any.
    images: Option<(Rc<PromptImages>, Vec<ImageKey>)>,
    /// Images of the question that the user is about to ask, to be encoded when everything is read.
    ahead: Vec<PromptImages>,
    kv_bits: Option<KvBits>,
    state: SequenceState,
    pace: Pace,
}

impl Prefetch {
    /// Begins to read the conversation as it was rendered; `None` if all of that is in the prefix cache, and no image of
    /// the question was attached, or if the model reads prompts as a whole alone.
    fn begin(
        loaded: &LoadedModel,
        request: &Request,
        images: &RequestImages,
        next_prompt: NextPrompt,
    ) -> Result<Option<Self>> {
        if loaded.reads_whole_prompts() {
            // Nothing of a prompt is that of a longer one.
            return Ok(None);
        }
        let alone = images.ahead.iter().map(|image| {
            let image = image.alone();
            let tokens = image.run.end;
            loaded.images(vec![image], tokens)
        });
        let ahead = alone.collect::<Result<Vec<_>>>()?;
        let images = loaded.prompt_images(images.placed(&next_prompt.images), next_prompt.ids.len())?;
        let images = images.map(|images| (images.clone(), images.keys()));
        if next_prompt.ids.len() >= request.context_of(loaded.files.config.context) as usize {
            return Ok(None);
        }
        let cached = loaded.prefix_cache.borrow_mut().lookup(
            prefix(&next_prompt.ids, &images),
            next_prompt.ids.len(),
            request.kv_bits,
        )?;
        let state = match cached {
            Some((positions, _)) if positions == next_prompt.ids.len() && ahead.is_empty() => return Ok(None),
            Some((positions, caches)) => SequenceState::from_caches(caches, positions),
            None => SequenceState::new(loaded.model(), request.kv_bits),
        };
        let state = state.with_images(images.as_ref().map(|(images, _)| images.clone()));
        Ok(Some(Self {
            next_prompt,
            images,
            ahead,
            kv_bits: request.kv_bits,
            state,
            pace: Pace::default(),
        }))
    }

    /// Reads one chunk and returns whether there is more to read. At each boundary, such as the end of the system
    /// prompt, which other conversations share, and at the end a copy goes into the prefix cache.
    fn read_chunk(&mut self, loaded: &LoadedModel) -> Result<bool> {
        let NextPrompt { ids, boundaries, .. } = &self.next_prompt;
        let from = self.state.offset();
        if from == ids.len() {
            return self.encode_ahead(loaded);
        }
        let next = boundaries.iter().copied().find(|boundary| *boundary > from);
        let pause = next.unwrap_or(ids.len());
        let to = (from + self.pace.chunk(Some(PREFETCH_GAP))).min(pause).min(ids.len());
        let to = match &self.images {
            Some((images, _)) => {
                let to = images.chunk_end(from, to).min(ids.len());
                if let Some(index) = images.unencoded(from, to) {
                    encode_image(loaded, images, index)?;
                    return Ok(true);
                }
                to
            }
            None => to,
        };
        let start = Instant::now();
        self.state.read(loaded.stepping(), &ids[from..to])?;
        clear_after_chunk()?;
        self.pace.record_chunk(to - from, start.elapsed());
        let more = to < ids.len() || !self.ahead.is_empty();
        if to == pause {
            self.store(loaded)?;
        }
        Ok(more)
    }

    /// Encodes one of the images that were attached while the user types, and returns whether there is more to do: when
    /// it is asked about, its features are there.
    fn encode_ahead(&mut self, loaded: &LoadedModel) -> Result<bool> {
        if let Some(image) = self.ahead.pop() {
            if !encode_image(loaded, &image, 0)? {
                self.ahead.push(image);
            }
        }
        Ok(!self.ahead.is_empty())
    }

    /// Puts a copy of what has been read into the prefix cache.
    fn store(&mut self, loaded: &LoadedModel) -> Result<()> {
        let read = prefix(&self.next_prompt.ids[..self.state.offset()], &self.images);
        loaded
            .prefix_cache
            .borrow_mut()
            .insert(read, self.kv_bits, self.state.caches())
    }
}

fn prefix<'a>(tokens: &'a [u32], images: &'a Option<(Rc<PromptImages>, Vec<ImageKey>)>) -> Prefix<'a> {
    Prefix {
        tokens,
        images: images.as_ref().map_or(&[], |(_, keys)| keys),
    }
}

/// Encodes an image, or waits a moment if it is still being decoded; returns whether it is encoded. It is never
/// cancelled: a request that comes meanwhile wants it too.
fn encode_image(loaded: &LoadedModel, images: &PromptImages, index: usize) -> Result<bool> {
    let encoded = loaded.encode_image(images, index, &mut |_| Ok(()))?;
    if !encoded {
        std::thread::sleep(POLL);
    }
    Ok(encoded)
}

/// A conversation that will be prefetched.
struct NextPrefetch {
    request: Arc<Request>,
    images: RequestImages,
    /// `None` as long as its model is not loaded.
    pending: Option<PendingPrefetch>,
    /// The conversation as it will be when a question follows, as soon as its model is loaded.
    rendered: Option<Pending<NextPrompt>>,
}

impl NextPrefetch {
    /// Its model, if that is loaded.
    fn loaded(&self, models: &LoadedModels) -> Option<Rc<LoadedModel>> {
        let scheduler = models.find(self.request.model.folder()?)?;
        Some(scheduler.loaded().clone())
    }

    /// Renders the conversation with the files of its model.
    fn render(&self, loaded: &LoadedModel, pool: &Pool, shared: &Arc<EngineState>) -> Pending<NextPrompt> {
        let (files, request, shared) = (loaded.files.clone(), self.request.clone(), shared.clone());
        let plans = self.images.plans();
        pool.submit(
            Priority::Background,
            move || shared.closing(),
            move || Ok(files.chat()?.next_prompt(&render_request(&request, &plans))?),
        )
    }
}

/// The conversation that is being prefetched, or will be.
pub struct Prefetches {
    next: Option<NextPrefetch>,
    current: Option<(Rc<LoadedModel>, Prefetch, PendingPrefetch)>,
    shared: Arc<EngineState>,
    pool: Pool,
}

impl Prefetches {
    /// Nothing to read yet.
    pub fn new(shared: Arc<EngineState>, pool: Pool) -> Self {
        Self {
            next: None,
            current: None,
            shared,
            pool,
        }
    }

    /// True if there is something to read now. A request whose model is not loaded does not count.
    pub fn has_work(&self, models: &LoadedModels) -> bool {
        let next = self.next.as_ref();
        self.current.is_some() || next.is_some_and(|next| next.pending.is_some() || next.loaded(models).is_some())
    }

    /// Gives up what is being read, and reads the beginning of the prompt after this request instead, when there is
    /// nothing else to do.
    pub fn replace(
        &mut self,
        request: Arc<Request>,
        images: RequestImages,
        pending: PendingPrefetch,
        models: &LoadedModels,
    ) {
        self.stop(models);
        self.next = Some(NextPrefetch {
            request,
            images,
            pending: Some(pending),
            rendered: None,
        });
    }

    /// Reads one chunk. A request whose model is not loaded waits until another request loads it, such as while a
    /// question is still written.
    pub fn advance(&mut self, models: &LoadedModels) {
        if let Some(mut next) = self.next.take() {
            match next.loaded(models) {
                Some(loaded) => {
                    next.pending.get_or_insert_with(|| PendingPrefetch::new(&self.shared));
                    let begun = next.rendered.take();
                    let mut rendered = begun.unwrap_or_else(|| next.render(&loaded, &self.pool, &self.shared));
                    if !rendered.poll() {
                        std::thread::sleep(POLL);
                        next.rendered = Some(rendered);
                        self.next = Some(next);
                        return;
                    }
                    // If the template refuses, the request that follows will say so.
                    if let Ok(next_prompt) = rendered.take() {
                        self.begin(loaded, next, next_prompt);
                    }
                }
                None => {
                    next.pending = None;
                    self.next = Some(next);
                }
            }
        }
        let Some((loaded, mut prefetch, pending)) = self.current.take() else {
            return;
        };
        let more = catch_panic(|| prefetch.read_chunk(&loaded));
        pending.count_chunk();
        if unless_failed(&loaded, more) == Some(true) {
            self.current = Some((loaded, prefetch, pending));
        }
    }

    fn begin(&mut self, loaded: Rc<LoadedModel>, next: NextPrefetch, next_prompt: NextPrompt) {
        let NextPrefetch {
            request,
            images,
            pending,
            ..
        } = next;
        let pending = pending.unwrap_or_else(|| PendingPrefetch::new(&self.shared));
        let prefetch = unless_failed(
            &loaded,
            catch_panic(|| Prefetch::begin(&loaded, &request, &images, next_prompt)),
        );
        self.current = prefetch.flatten().map(|prefetch| (loaded, prefetch, pending));
    }

    /// Gives up what is being read or would be, and keeps nothing of it.
    pub fn drop_all(&mut self) {
        self.next = None;
        self.current = None;
    }

    /// Gives up what is being read, and keeps what was. What waits for its model waits on.
    pub fn stop(&mut self, models: &LoadedModels) {
        self.next = self.next.take().filter(|next| next.loaded(models).is_none());
        if let Some((loaded, mut prefetch, _pending)) = self.current.take() {
            let stored = catch_panic(|| prefetch.store(&loaded));
            drop(prefetch);
            unless_failed(&loaded, stored);
        }
    }
}

/// The result of work that no request waits for. A failure empties the prefix cache, because its cause may lie in
/// there.
fn unless_failed<T>(loaded: &LoadedModel, outcome: Result<T>) -> Option<T> {
    outcome
        .map_err(|error| {
            tracing::warn!(%error, "a prefetch failed");
            loaded.prefix_cache.borrow_mut().clear();
            memory::drain();
        })
        .ok()
}
