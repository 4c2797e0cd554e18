//! Constraints on the tokens of an answer, in addition to the sampler.

mod answer;
mod begin;
mod call;

use std::thread::JoinHandle;

use constraint::{AnswerGrammar, Vocabulary};
use prompt::{ChannelParser, ChatProcessor, Piece};

use crate::error::{Error, Result};
use crate::loaded::LoadedModel;
use crate::sequence::sampler::Mask;

pub use begin::begin;

/// Limits the tokens of an answer.
pub trait OutputConstraint {
    /// Lets the parser read the next id. A violation of the grammar shows when the next mask is requested.
    fn read(&mut self, parser: &mut ChannelParser, id: u32) -> Vec<Piece>;

    /// The tokens that may come next; `None` if all of them may.
    ///
    /// # Errors
    /// If what was written does not follow the grammar, or that grew too complex.
    fn mask(&mut self, parser: &ChannelParser) -> Result<Option<Mask>>;

    /// True if a mask would have to be waited for, because its grammar is still being compiled.
    fn compiling(&self) -> bool;
}

/// A grammar that is compiled during the prefill.
pub enum LazyGrammar {
    /// `None` if that could not be begun.
    Compiling(Option<JoinHandle<constraint::Result<AnswerGrammar>>>),
    /// As far as the answer has come.
    Ready(Box<AnswerGrammar>),
    /// The error of the next mask.
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
        let (tokenizer, rows) = (processor.tokenizer().clone(), loaded.model().vocabulary() as usize);
        let vocabulary = loaded.vocabulary.clone();
        let compile = move || {
            let vocabulary = vocabulary.get_or_init(|| Vocabulary::new(&tokenizer.vocabulary(), &stops, rows));
            compile(vocabulary.as_ref().map_err(Clone::clone)?)
        };
        let thread = std::thread::Builder::new().name("grammar".into()).spawn(compile);
        Self::Compiling(thread.ok())
    }

    /// True while it is being compiled.
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
