//! How far an answer has come in its grammar, and what may come next.

use std::sync::Arc;

use llguidance::Matcher;

use crate::error::{Error, Result};

/// The grammar of one answer. Tokens of its text go through [`take`](Self::take), what ends it does not.
pub struct AnswerGrammar {
    matcher: Matcher,
    stops: Arc<[u32]>,
    rows: usize,
    /// The cost of its lexer until now, in llguidance's units of about a hundred bytes.
    spent: u64,
}

/// The most that the lexer of one answer may cost: a pattern that never repeats itself would fill the memory.
const MOST_SPENT: u64 = 3_000_000;

impl AnswerGrammar {
    /// The same grammar, as far as this one has come.
    pub fn copy(&self) -> Self {
        Self {
            matcher: self.matcher.deep_clone(),
            stops: self.stops.clone(),
            rows: self.rows,
            spent: self.spent,
        }
    }

    pub(crate) fn new(matcher: Matcher, stops: Arc<[u32]>, rows: usize) -> Self {
        Self {
            matcher,
            stops,
            rows,
            spent: 0,
        }
    }

    /// Takes the next token, if it may come here; returns whether it did.
    ///
    /// # Errors
    /// [`Error::TooComplex`].
    pub fn take(&mut self, id: u32) -> Result<bool> {
        Ok(!self.stops.contains(&id) && self.take_all(&[id])?)
    }

    /// Takes text that came as other tokens, if it may come here as a whole; returns whether it may. After text that
    /// may not the grammar is of no use.
    ///
    /// # Errors
    /// [`Error::TooComplex`].
    pub fn take_text(&mut self, text: &str) -> Result<bool> {
        let tokens = self.matcher.tok_env().map_err(too_complex)?;
        let tokens = tokens.tok_trie().greedy_tokenize(text.as_bytes());
        self.take_all(&tokens)
    }

    fn take_all(&mut self, ids: &[u32]) -> Result<bool> {
        if self.matcher.is_stopped() {
            return match self.matcher.stop_reason().is_ok() {
                true => Ok(false),
                false => Err(too_complex(self.matcher.stop_reason())),
            };
        }
        Ok(self.matcher.try_consume_tokens(ids).map_err(too_complex)? == ids.len())
    }

    /// True for each of the `rows` tokens that may come next; tokens that end an answer may once it is complete.
    ///
    /// # Errors
    /// [`Error::TooComplex`].
    pub fn mask(&mut self) -> Result<Vec<bool>> {
        let mut mask = vec![false; self.rows];
        let allowed = self.matcher.compute_mask_or_eos().map_err(too_complex)?;
        self.spent += self.matcher.last_step_stats().map_err(too_complex)?.lexer_cost;
        if self.spent > MOST_SPENT {
            return Err(too_complex("a \"pattern\" takes too much work"));
        }
        allowed.iter_set_entries(|id| {
            if let Some(allowed) = mask.get_mut(id) {
                *allowed = true;
            }
        });
        Ok(mask)
    }

    /// The cost of its lexer until now, in llguidance's units.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// True if the answer is complete.
    ///
    /// # Errors
    /// [`Error::TooComplex`].
    pub fn is_whole(&mut self) -> Result<bool> {
        match self.matcher.is_stopped() {
            true => Ok(self.matcher.stop_reason().is_ok()),
            false => self.matcher.is_accepting().map_err(too_complex),
        }
    }
}

/// llguidance's message in one line, without parser states and the generated text.
fn too_complex(reason: impl std::fmt::Display) -> Error {
    Error::TooComplex(reason.to_string().lines().next().unwrap_or_default().to_owned())
}

impl std::fmt::Debug for AnswerGrammar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerGrammar")
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}
