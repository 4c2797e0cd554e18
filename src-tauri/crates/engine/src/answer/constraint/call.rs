//! An answer that has to be a call: nothing but a thought comes before its opening marker, and every call follows what
//! its tool declares.

use constraint::AnswerGrammar;
use prompt::{ChannelParser, ChatProcessor, ParserState, Piece};
use protocol::Request;

use crate::answer::constraint::answer::AnswerConstraint;
use crate::answer::constraint::{LazyGrammar, OutputConstraint};
use crate::error::Result;
use crate::loaded::LoadedModel;
use crate::sequence::sampler::Mask;

/// The calls of one answer and how far they have come.
pub struct CallConstraint {
    /// The tokens around a call; without one that closes it, the answer ends with it.
    opening: u32,
    closing: Option<u32>,
    /// Of a call that has not begun.
    grammar: LazyGrammar,
    /// True if no grammar describes the calls of these tools; `None` until that is known.
    in_words: Option<bool>,
    /// The constraint of the answer in that case.
    otherwise: Option<AnswerConstraint>,
    /// Of the call that is open.
    open: Option<LazyGrammar>,
    /// True once a tool was called.
    called: bool,
    /// True once there was a thought.
    thought: bool,
    /// The tokens that end the answer.
    stops: Vec<u32>,
    /// Line ends, which stand between calls.
    breaks: Vec<u32>,
    rows: usize,
}

impl CallConstraint {
    /// Begins to compile what the tools declare; `None` if no call is required, or no grammar can say how this model
    /// writes those of these tools.
    pub fn begin(loaded: &LoadedModel, processor: &ChatProcessor, request: &Request) -> Option<Self> {
        let written = processor
            .call_form()
            .filter(|_| request.call_required && !request.tools.is_empty())?;
        let body = written.body.clone();
        let schema = request.schema.clone();
        let (opening, closing, tools) = (written.opening, written.closing, request.tools.clone());
        Some(Self {
            opening,
            closing,
            // Some tools take seconds to check, which other answers do not wait for.
            grammar: LazyGrammar::begin(loaded, processor, move |vocabulary| {
                constraint::check_calls(&body, &tools)?;
                vocabulary.call_grammar(&body, &tools)
            }),
            in_words: None,
            otherwise: schema.map(|schema| AnswerConstraint::begin(loaded, processor, schema)),
            open: None,
            called: false,
            thought: false,
            stops: processor.stops().ids.keys().copied().collect(),
            breaks: processor.encode("\n").unwrap_or_default(),
            rows: loaded.model().vocabulary() as usize,
        })
    }

    /// True if no grammar can describe how these tools are called, so that only the prompt demands a call; known once
    /// the grammar was compiled.
    fn in_words(&mut self) -> bool {
        let grammar = &mut self.grammar;
        *self.in_words.get_or_insert_with(|| match grammar.get() {
            Ok(_) => false,
            Err(error) => {
                tracing::info!(%error, "a call is required in words alone");
                true
            }
        })
    }

    /// A mask of these tokens alone.
    fn only(&self, ids: impl Iterator<Item = u32>) -> Mask {
        let mut mask = vec![false; self.rows];
        allow(&mut mask, ids);
        Mask::Only(mask)
    }
}

fn allow(mask: &mut [bool], ids: impl Iterator<Item = u32>) {
    for id in ids {
        if let Some(allowed) = mask.get_mut(id as usize) {
            *allowed = true;
        }
    }
}

impl OutputConstraint for CallConstraint {
    fn read(&mut self, parser: &mut ChannelParser, id: u32) -> Vec<Piece> {
        if self.in_words() {
            return match &mut self.otherwise {
                Some(answer) => answer.read(parser, id),
                None => parser.push(id),
            };
        }
        match &mut self.open {
            Some(_) if self.closing == Some(id) => {
                self.open = None;
                self.called = true;
            }
            Some(open) => open.take(|grammar| grammar.take(id)),
            None if id == self.opening && parser.state() != ParserState::Thought => {
                let begun = self.grammar.get().map(|grammar| grammar.copy());
                self.open = Some(match begun {
                    Ok(grammar) => LazyGrammar::Ready(Box::new(grammar)),
                    Err(error) => LazyGrammar::Failed(error),
                });
            }
            None => {}
        }
        parser.push(id)
    }

    fn compiling(&self) -> bool {
        // The schema counts only if the tools have no grammar, which is known once they were compiled.
        let otherwise =
            self.in_words != Some(false) && self.otherwise.as_ref().is_some_and(|answer| answer.compiling());
        self.grammar.compiling() || otherwise
    }

    fn mask(&mut self, parser: &ChannelParser) -> Result<Option<Mask>> {
        if self.in_words() {
            return match &mut self.otherwise {
                Some(answer) => answer.mask(parser),
                None => Ok(None),
            };
        }
        if let Some(open) = &mut self.open {
            let grammar: &mut AnswerGrammar = open.get()?;
            let (mut mask, whole) = (grammar.mask()?, grammar.is_whole()?);
            if let Some(closing) = self.closing {
                for stop in &self.stops {
                    if let Some(allowed) = mask.get_mut(*stop as usize) {
                        *allowed = false;
                    }
                }
                allow(&mut mask, Some(closing).filter(|_| whole).into_iter());
            }
            return Ok(Some(Mask::Only(mask)));
        }
        self.thought |= parser.state() == ParserState::Thought;
        let calls = std::iter::once(self.opening);
        let thoughts = parser.thought_openers().filter(|_| !self.thought);
        Ok(match parser.state() {
            _ if self.called => Some(self.only(calls.chain(self.stops.iter().chain(&self.breaks).copied()))),
            // A thought has to end before anything is called.
            ParserState::Thought => Some(Mask::Without(self.stops.iter().copied().chain(calls).collect())),
            ParserState::InBlock => None,
            ParserState::Answer => Some(self.only(calls.chain(thoughts))),
        })
    }
}
