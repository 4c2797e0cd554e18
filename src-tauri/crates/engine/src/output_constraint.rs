//! What limits the tokens of an answer, beside the sampler.

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use constraint::{AnswerGrammar, Vocabulary};
use prompt::{ChannelParser, ChatProcessor, Piece};
use protocol::Request;

use crate::answer_constraint::AnswerConstraint;
use crate::call_constraint::CallConstraint;
use crate::error::{Error, Result};
use crate::load::LoadedModel;
use crate::sampler::Mask;

/// Limits the tokens of an answer.
pub trait OutputConstraint {
    /// Lets the parser read the next id. What does not follow the grammar shows when the next mask is asked for.
    fn read(&mut self, parser: &mut ChannelParser, id: u32) -> Vec<Piece>;

    /// What may come next; `None` if anything may.
    ///
    /// # Errors
    /// If what was written does not follow the grammar, or that grew too complex.
    fn mask(&mut self, parser: &ChannelParser) -> Result<Option<Mask>>;

    /// Whether a mask would be waited for, because its grammar is still being compiled.
    fn compiling(&self) -> bool;
}

/// What the answer to a request is limited to.
pub fn begin(loaded: &LoadedModel, processor: &ChatProcessor, request: &Request) -> Option<Box<dyn OutputConstraint>> {
    if let Some(calls) = CallConstraint::begin(loaded, processor, request) {
        return Some(Box::new(calls));
    }
    let schema = request.schema.clone()?;
    Some(Box::new(AnswerConstraint::begin(loaded, processor, schema)))
}

/// The vocabulary of a model, made when an answer first has to follow a grammar.
pub type LazyVocabulary = Arc<OnceLock<constraint::Result<Vocabulary>>>;

/// A grammar that is compiled beside the prefill.
pub enum LazyGrammar {
    /// `None` if that could not be begun.
    Compiling(Option<JoinHandle<constraint::Result<AnswerGrammar>>>),
    /// As far as the answer has come.
    Ready(Box<AnswerGrammar>),
    /// What the next mask is refused with.
    Failed(Error),
}

impl LazyGrammar {
    /// Begins to compile a grammar over this model's vocabulary.
    pub fn begin(
        loaded: &LoadedModel,
        processor: &ChatProcessor,
        compile: impl FnOnce(&Vocabulary) -> constraint::Result<AnswerGrammar> + Send + 'static,
    ) -> Self {
        let stops: Vec<u32> = processor.stops().ids.keys().copied().collect();
        let (tokenizer, rows) = (processor.tokenizer().clone(), loaded.model.vocabulary() as usize);
        let vocabulary = loaded.vocabulary.clone();
        let compile = move || {
            let vocabulary = vocabulary.get_or_init(|| Vocabulary::new(&tokenizer.vocabulary(), &stops, rows));
            compile(vocabulary.as_ref().map_err(Clone::clone)?)
        };
        let thread = std::thread::Builder::new().name("grammar".into()).spawn(compile);
        Self::Compiling(thread.ok())
    }

    /// Whether it is still being compiled.
    pub fn compiling(&self) -> bool {
        matches!(self, Self::Compiling(Some(thread)) if !thread.is_finished())
    }

    /// The grammar, which is waited for.
    ///
    /// # Errors
    /// If it could not be compiled, or was left.
    pub fn get(&mut self) -> Result<&mut AnswerGrammar> {
        if let Self::Compiling(thread) = self {
            let compiled = thread.take().map(JoinHandle::join);
            *self = match compiled {
                Some(Ok(Ok(grammar))) => Self::Ready(Box::new(grammar)),
                Some(Ok(Err(error))) => Self::Failed(error.into()),
                Some(Err(_)) | None => Self::Failed(Error::Panicked("the grammar was not compiled".into())),
            };
        }
        match self {
            Self::Ready(grammar) => Ok(grammar),
            failed => match std::mem::replace(failed, Self::Failed(constraint::Error::NotFollowed.into())) {
                Self::Failed(error) => Err(error),
                Self::Compiling(_) | Self::Ready(_) => Err(constraint::Error::NotFollowed.into()),
            },
        }
    }

    /// Lets the grammar take what was written; what it may not take shows when it is next asked for.
    pub fn take(&mut self, take: impl FnOnce(&mut AnswerGrammar) -> constraint::Result<bool>) {
        let taken = self.get().and_then(|grammar| match take(grammar)? {
            true => Ok(()),
            false => Err(constraint::Error::NotFollowed.into()),
        });
        if let Err(error) = taken {
            *self = Self::Failed(error);
        }
    }
}
