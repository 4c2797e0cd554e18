//! The side of an answer of a head that drafts from the model's own states (multi-token prediction).

use mlx::parameters::Parameters;
use mlx::tensor::{eval, Tensor};

use crate::cache::Cache;
use crate::error::Result;
use crate::models::{DraftHead, Model};
use crate::sequence::state::SequenceState;

/// A text as a head reads it: for each position the model's state, together with the token after it.
pub struct HeadSequence {
    caches: Vec<Cache>,
    /// The first position that it has read, and the first one that it has not.
    read: (usize, usize),
    /// Its own state after the last of them, `[1, width]`; the model's if it attends to the model's keys.
    last: Option<Tensor>,
}

impl HeadSequence {
    /// A text of which these caches have read the first `read` positions.
    pub fn new(caches: Vec<Cache>, read: usize) -> Self {
        Self {
            caches,
            read: (0, read),
            last: None,
        }
    }

    /// How many positions it has read, or left out.
    pub fn read(&self) -> usize {
        self.read.1
    }

    /// Its caches, and how many positions they have read, if it has read the text from its beginning.
    pub fn whole(&mut self) -> Option<(&mut [Cache], usize)> {
        let (first, end) = self.read;
        (first == 0 && !self.caches.is_empty()).then_some((&mut self.caches[..], end))
    }

    /// Reads the states of `state` that it has not read. It goes on where it was, or begins anew if some were missed.
    ///
    /// # Errors
    /// If MLX fails; then the text cannot be continued.
    pub fn read_on(
        &mut self,
        head: &DraftHead,
        model: &Model,
        state: &mut SequenceState,
        tokens: &[u32],
    ) -> Result<()> {
        let Some((from, states)) = state.take_states()? else {
            return Ok(());
        };
        if from != self.read.1 {
            (self.caches, self.read) = (head.caches(), (from, from));
        }
        let rows = states.dim(0) as usize;
        let last = |states: &Tensor| states.slice(0, rows as i32 - 1, rows as i32);
        let last = match head {
            DraftHead::Layers(head) => {
                let after = model.ids(&tokens[from + 1..=from + rows])?;
                let embedded = model.embedded(&after)?;
                last(&head.forward(&model.normed(&states)?, &embedded, &mut self.caches)?)?
            }
            DraftHead::Assistant(_) => model.normed(&last(&states)?)?,
        };
        eval(self.caches.iter().flat_map(Parameters::tensors).chain([&last]))?;
        self.read.1 += rows;
        self.last = Some(last);
        Ok(())
    }

    /// The `count` tokens that follow these, all but the last of which the model has read; nothing if the model's last
    /// state is not known.
    ///
    /// # Errors
    /// If MLX fails; then the text cannot be continued.
    pub fn draft(
        &mut self,
        head: &DraftHead,
        model: &Model,
        state: &mut SequenceState,
        tokens: &[u32],
        count: usize,
    ) -> Result<Vec<u32>> {
        self.read_on(head, model, state, tokens)?;
        let Some(mut own) = self.last.clone().filter(|_| self.read.1 + 1 == tokens.len()) else {
            return Ok(Vec::new());
        };
        let mut drafted = Vec::with_capacity(count);
        match head {
            DraftHead::Layers(head) => {
                for index in 0..count {
                    let token = model.output(&own)?.argmax(-1, false)?;
                    if index + 1 < count {
                        own = head.forward(&own, &model.embedded(&token)?, &mut self.caches)?;
                    }
                    drafted.push(token);
                }
            }
            DraftHead::Assistant(assistant) => {
                let keys = model.last_keys(state.caches())?;
                let mut token = model.ids(&tokens[tokens.len() - 1..])?;
                for _ in 0..count {
                    (token, own) = assistant.forward(&own, &model.embedded(&token)?, &keys, self.read.1)?;
                    drafted.push(token.clone());
                }
            }
        }
        eval(&drafted)?;
        // The model's states take the place of its own.
        self.caches
            .iter_mut()
            .try_for_each(|cache| cache.drop_last(count - 1))?;
        let ids = drafted.iter().map(|token| Ok(token.to_u32()?[0]));
        ids.collect()
    }
}
