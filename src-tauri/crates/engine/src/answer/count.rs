//! Counts a request's tokens on threads of its own, so that neither a model is loaded nor the worker waited for.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use prompt::ChatProcessor;
use protocol::{FolderSource, Request, TokenCount};
use tokio::sync::oneshot;

use crate::answer::images;
use crate::answer::request::{folder, read_prompt};
use crate::error::{catch_panic, Error, Result};

/// Counts, and remembers the tokenizer and template that it used last. Clones share them.
#[derive(Clone, Default)]
pub struct Counter(Arc<Mutex<Option<Known>>>);

/// A model with its tokenizer and template.
type Known = (FolderSource, Arc<ChatProcessor>);

impl Counter {
    /// Tokens of the rendered conversation of this request.
    pub fn count(&self, request: Request) -> BoxFuture<'static, protocol::Result<TokenCount>> {
        let (sender, answer) = oneshot::channel();
        let counter = self.clone();
        // Reading a large tokenizer takes a good part of a second, which must not hold up an async thread.
        let thread = std::thread::Builder::new().name("count".into()).spawn(move || {
            // The receiver may be gone.
            let _ = sender.send(catch_panic(|| counter.count_now(request)));
        });
        Box::pin(async move {
            if let Err(error) = thread {
                tracing::warn!(%error, "no thread could be started to count tokens");
            }
            Ok(answer.await.unwrap_or(Err(Error::WorkerGone))?)
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
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((of, processor)) if of == source => Ok(processor.clone()),
            _ => {
                let processor = Arc::new(ChatProcessor::open(&source.path)?);
                *known = Some((source.clone(), processor.clone()));
                Ok(processor)
            }
        }
    }
}
