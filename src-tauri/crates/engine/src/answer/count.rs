//! Counts a request's tokens on the pool's threads, so that neither a model is loaded nor the worker waited for.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use prompt::{ChatProcessor, RenderLimits};
use protocol::{FolderSource, Priority, Request, TokenCount};
use tokio::sync::Semaphore;

use crate::answer::images;
use crate::answer::request::{folder, read_prompt};
use crate::error::{Error, Result};
use crate::pool::Pool;
use crate::state::EngineState;

/// Counts in the pool at a time: one, and one that is next. The others wait for a place, so that requests wait for no
/// more than these.
const PLACES: usize = 2;

/// Counts, and remembers the tokenizer and template that it used last. Clones share them.
#[derive(Clone)]
pub struct Counter {
    known: Arc<Mutex<Option<Known>>>,
    places: Arc<Semaphore>,
    pool: Pool,
    shared: Arc<EngineState>,
}

/// A model with its tokenizer and template.
type Known = (FolderSource, Arc<ChatProcessor>);

impl Counter {
    /// Nothing is known yet.
    pub fn new(pool: Pool, shared: Arc<EngineState>) -> Self {
        Self {
            known: Arc::default(),
            places: Arc::new(Semaphore::new(PLACES)),
            pool,
            shared,
        }
    }

    /// Tokens of the rendered conversation of this request. A caller that drops this loses its place, and what was begun
    /// for it ends.
    pub fn count(&self, request: Request) -> BoxFuture<'static, protocol::Result<TokenCount>> {
        let counter = self.clone();
        Box::pin(async move {
            let _place = counter.places.acquire().await.map_err(|_| Error::WorkerGone)?;
            let (reader, shared) = (counter.clone(), counter.shared.clone());
            // A count is no answer: it leaves a thread to those that wait for one.
            let priority = request.priority.max(Priority::Api);
            let counting = counter
                .pool
                .submit(priority, move || shared.closing(), move || reader.count_now(request));
            Ok(counting.wait().await?)
        })
    }

    fn count_now(&self, mut request: Request) -> Result<TokenCount> {
        let (images, _) = images::prepare(&mut request)?;
        let prompt = read_prompt(&*self.processor(folder(&request)?)?, &request, &images.plans())?;
        Ok(TokenCount {
            tokens: u32::try_from(prompt.ids.len()).unwrap_or(u32::MAX),
            estimated: false,
        })
    }

    fn processor(&self, source: &FolderSource) -> Result<Arc<ChatProcessor>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((of, processor)) if of == source => Ok(processor.clone()),
            _ => {
                // The next count will use it, so that it is read to the end if the caller leaves.
                let read = || ChatProcessor::open(&source.path);
                let processor = Arc::new(RenderLimits::request().within(read)?);
                *known = Some((source.clone(), processor.clone()));
                Ok(processor)
            }
        }
    }
}
