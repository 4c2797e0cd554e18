//! An answer that follows a schema: where its grammar is awake, and what may come next. The grammar sleeps through thoughts, headers and
//! calls, which the channel parser knows.

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use constraint::{AnswerGrammar, Vocabulary};
use prompt::{ChannelParser, Piece, Place};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::load::LoadedModel;
use crate::sampler::Mask;

/// The vocabulary of a model, made when an answer first has to follow a schema.
pub type LazyVocabulary = Arc<OnceLock<constraint::Result<Vocabulary>>>;

/// The grammar of one answer and how far that has come.
pub struct Constraint {
    grammar: Grammar,
    stops: Vec<u32>,
    /// Whether the answer's text has begun.
    begun: bool,
    /// Whether something was called.
    called: bool,
    /// Whether there was a thought.
    thought: bool,
}

enum Grammar {
    /// Being compiled beside the prefill; `None` if that could not be begun.
    Compiling(Option<JoinHandle<constraint::Result<AnswerGrammar>>>),
    Ready(Box<AnswerGrammar>),
    Failed(Error),
}

impl Constraint {
    /// Begins to compile a schema for an answer of this model.
    ///
    /// # Errors
    /// If the model is not one that chats.
    pub fn begin(loaded: &LoadedModel, schema: Value) -> Result<Self> {
        let processor = loaded.files.chat()?;
        let stops: Vec<u32> = processor.stops().ids.keys().copied().collect();
        let (tokenizer, rows) = (processor.tokenizer().clone(), loaded.model.vocabulary() as usize);
        let (vocabulary, ends) = (loaded.vocabulary.clone(), stops.clone());
        let compile = move || {
            let vocabulary = vocabulary.get_or_init(|| Vocabulary::new(&tokenizer.vocabulary(), &ends, rows));
            vocabulary.as_ref().map_err(Clone::clone)?.grammar(&schema)
        };
        let thread = std::thread::Builder::new().name("schema".into()).spawn(compile);
        Ok(Self {
            grammar: Grammar::Compiling(thread.ok()),
            stops,
            begun: false,
            called: false,
            thought: false,
        })
    }

    /// Lets the parser read the next id. What does not follow the schema shows when the next mask is asked for.
    pub fn read(&mut self, parser: &mut ChannelParser, id: u32) -> Vec<Piece> {
        if self.begun {
            self.take(|grammar| grammar.take(id));
            return parser.push(id);
        }
        let opens = parser.thought_openers().chain(parser.openers()).any(|opener| opener == id);
        if parser.place() == Place::Answer && !opens && self.begins(id) {
            self.begun = true;
            parser.begin_verbatim();
            return parser.push(id);
        }
        let pieces = parser.push(id);
        for piece in &pieces {
            match piece {
                Piece::ToolCall { .. } => self.called = true,
                // The same id may close a thought and begin the answer.
                Piece::Text(text) if !text.trim_start().is_empty() => {
                    self.take(|grammar| grammar.take_text(text.trim_start()));
                    self.begun = true;
                    parser.begin_verbatim();
                }
                _ => {}
            }
        }
        pieces
    }

    /// What may come next; `None` if anything may.
    ///
    /// # Errors
    /// If what was written does not follow the schema, or the grammar grew too complex.
    pub fn mask(&mut self, parser: &ChannelParser) -> Result<Option<Mask>> {
        self.thought |= parser.place() == Place::Thought;
        match parser.place() {
            Place::Within if !self.begun => return Ok(None),
            // A thought has to end before the answer does.
            Place::Thought if !self.begun && !self.stops.is_empty() => return Ok(Some(Mask::Without(self.stops.clone()))),
            Place::Thought if !self.begun => return Ok(None),
            _ => {}
        }
        let (begun, called, thought) = (self.begun, self.called, self.thought);
        let mut mask = self.grammar()?.mask()?;
        if !begun {
            let ends = self.stops.iter().copied().filter(|_| called);
            // A model that would rather not begin with a brace would think again and again.
            let thoughts = parser.thought_openers().filter(|_| !thought);
            for id in thoughts.chain(parser.openers()).chain(ends) {
                if let Some(allowed) = mask.get_mut(id as usize) {
                    *allowed = true;
                }
            }
        }
        Ok(Some(Mask::Only(mask)))
    }

    /// Whether the answer's first token is this one.
    fn begins(&mut self, id: u32) -> bool {
        let taken = self.grammar().and_then(|grammar| Ok(grammar.take(id)?));
        taken.unwrap_or_else(|error| {
            self.grammar = Grammar::Failed(error);
            false
        })
    }

    fn take(&mut self, take: impl FnOnce(&mut AnswerGrammar) -> constraint::Result<bool>) {
        let taken = self.grammar().and_then(|grammar| match take(grammar)? {
            true => Ok(()),
            false => Err(constraint::Error::NotFollowed.into()),
        });
        if let Err(error) = taken {
            self.grammar = Grammar::Failed(error);
        }
    }

    /// The grammar, which is waited for.
    fn grammar(&mut self) -> Result<&mut AnswerGrammar> {
        if let Grammar::Compiling(thread) = &mut self.grammar {
            let compiled = thread.take().map(JoinHandle::join);
            self.grammar = match compiled {
                Some(Ok(Ok(grammar))) => Grammar::Ready(Box::new(grammar)),
                Some(Ok(Err(error))) => Grammar::Failed(error.into()),
                Some(Err(_)) | None => Grammar::Failed(Error::Panicked("the schema was not compiled".into())),
            };
        }
        match &mut self.grammar {
            Grammar::Ready(grammar) => Ok(grammar),
            failed => match std::mem::replace(failed, Grammar::Failed(constraint::Error::NotFollowed.into())) {
                Grammar::Failed(error) => Err(error),
                Grammar::Compiling(_) | Grammar::Ready(_) => Err(constraint::Error::NotFollowed.into()),
            },
        }
    }
}
