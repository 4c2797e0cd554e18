//! The tokens of a model as the grammar reads them.

use std::sync::Arc;

use llguidance::toktrie::{ApproximateTokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use protocol::CallBody;
use serde_json::Value;

use crate::answer_grammar::AnswerGrammar;
use crate::error::{Error, Result};
use crate::schema::{call_parser, factory, parser};

/// A model's tokens, sorted by their bytes. Made once for a tokenizer: it takes half a second for 150,000 tokens.
pub struct Vocabulary {
    factory: ParserFactory,
    stops: Arc<[u32]>,
    rows: usize,
}

impl Vocabulary {
    /// The vocabulary of these tokens, by id, each as the bytes that it spells; control tokens and those without a text
    /// are empty. `stops` end an answer; the model gives logits for `rows` tokens.
    ///
    /// # Errors
    /// [`Error::NoStopToken`].
    pub fn new(tokens: &[Vec<u8>], stops: &[u32], rows: usize) -> Result<Self> {
        let stops: Arc<[u32]> = stops
            .iter()
            .copied()
            .filter(|id| (*id as usize) < rows.min(tokens.len()))
            .collect();
        let Some(first) = stops.first() else {
            return Err(Error::NoStopToken);
        };
        let info = TokRxInfo::new(tokens.len() as u32, *first);
        let trie = TokTrie::from(&info, tokens).with_eos_tokens(&stops);
        let tokens: llguidance::toktrie::TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let factory = factory(&tokens).map_err(|error| Error::Schema(error.to_string()))?;
        Ok(Self { factory, stops, rows })
    }

    /// The grammar of one answer in the form of this schema.
    ///
    /// # Errors
    /// [`Error::Schema`] for a schema that cannot be honored.
    pub fn grammar(&self, schema: &Value) -> Result<AnswerGrammar> {
        let matcher = Matcher::new(Ok(parser(&self.factory, schema)?));
        Ok(AnswerGrammar::new(matcher, self.stops.clone(), self.rows))
    }

    /// The grammar of one call of one of these tools, without its markers. An end of the answer may follow once the
    /// call is complete.
    ///
    /// # Errors
    /// [`Error::Schema`] if the arguments of a tool cannot be honored.
    pub fn call_grammar(&self, body: &CallBody, tools: &[Value]) -> Result<AnswerGrammar> {
        let matcher = Matcher::new(Ok(call_parser(&self.factory, body, tools)?));
        Ok(AnswerGrammar::new(matcher, self.stops.clone(), self.rows))
    }

    /// The tokens that end an answer.
    pub fn stops(&self) -> &Arc<[u32]> {
        &self.stops
    }
}

impl std::fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vocabulary")
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}
