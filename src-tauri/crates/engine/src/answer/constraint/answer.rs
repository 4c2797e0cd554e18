//! An answer that follows a schema: where its grammar is awake, and what may come next. The grammar sleeps through
//! thoughts, headers and calls, which the channel parser knows.

use prompt::{ChannelParser, ChatProcessor, ParserState, Piece};
use serde_json::Value;

use crate::answer::constraint::{LazyGrammar, OutputConstraint};
use crate::error::Result;
use crate::loaded::LoadedModel;
use crate::sequence::sampler::Mask;

/// The grammar of one answer and how far that has come.
pub struct AnswerConstraint {
    grammar: LazyGrammar,
    stops: Vec<u32>,
    /// True once the answer's text has begun.
    begun: bool,
    /// True once a tool was called.
    called: bool,
    /// True once there was a thought.
    thought: bool,
}

impl AnswerConstraint {
    /// Begins to compile a schema for an answer of this model.
    pub fn begin(loaded: &LoadedModel, processor: &ChatProcessor, schema: Value) -> Self {
        Self {
            grammar: LazyGrammar::begin(loaded, processor, move |vocabulary| vocabulary.grammar(&schema)),
            stops: processor.stops().ids.keys().copied().collect(),
            begun: false,
            called: false,
            thought: false,
        }
    }

    /// True if the answer may begin with this token; the grammar then takes it.
    fn begins(&mut self, id: u32) -> bool {
        let taken = self.grammar.get().and_then(|grammar| Ok(grammar.take(id)?));
        taken.unwrap_or_else(|error| {
            self.grammar = LazyGrammar::Failed(error);
            false
        })
    }
}

impl OutputConstraint for AnswerConstraint {
    fn read(&mut self, parser: &mut ChannelParser, id: u32) -> Vec<Piece> {
        if self.begun {
            self.grammar.take(|grammar| grammar.take(id));
            return parser.push(id);
        }
        let opens = parser
            .thought_openers()
            .chain(parser.openers())
            .any(|opener| opener == id);
        if parser.state() == ParserState::Answer && !opens && self.begins(id) {
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
                    self.grammar.take(|grammar| grammar.take_text(text.trim_start()));
                    self.begun = true;
                    parser.begin_verbatim();
                }
                _ => {}
            }
        }
        pieces
    }

    fn compiling(&self) -> bool {
        self.grammar.compiling()
    }

    fn mask(&mut self, parser: &ChannelParser) -> Result<Option<Mask>> {
        self.thought |= parser.state() == ParserState::Thought;
        match parser.state() {
            ParserState::InBlock if !self.begun => return Ok(None),
            // A thought has to end before the answer does.
            ParserState::Thought if !self.begun && !self.stops.is_empty() => {
                return Ok(Some(Mask::Without(self.stops.clone())))
            }
            ParserState::Thought if !self.begun => return Ok(None),
            _ => {}
        }
        let (begun, called, thought) = (self.begun, self.called, self.thought);
        let mut mask = self.grammar.get()?.mask()?;
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
}
