//! Attention to the states of a vision encoder, `cross_attn` (Llama 3.2 Vision).

use super::attention::AttentionConfig;
use crate::config::limits::check_width;
use crate::error::Error;
use crate::memory::{CacheFormat, MixerCost, Part, Prefill, ScoreShape};

/// Attention to the states of a tower, whose queries and keys are normed by head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossAttentionConfig {
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub key_heads: u32,
    /// Width of a head.
    pub head_dim: u32,
    /// The most states of one image.
    pub states: u32,
}

impl CrossAttentionConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        // The same shapes as of attention to tokens.
        AttentionConfig::new(self.heads, self.key_heads, self.head_dim, None).check(&[])?;
        check_width("max_num_tiles", self.states.into())
    }
}

impl CrossAttentionConfig {
    /// Numbers of all queries, and of all keys, for one position.
    fn widths(&self) -> (u64, u64) {
        let width = u64::from(self.head_dim);
        (u64::from(self.heads) * width, u64::from(self.key_heads) * width)
    }
}

impl MixerCost for CrossAttentionConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        let (queries, keys) = self.widths();
        vec![
            Part::matrix(queries, hidden),
            Part::matrix(keys, hidden),
            Part::matrix(keys, hidden),
            Part::matrix(hidden, queries),
        ]
    }

    /// Keys and values of one image, however long the text is.
    fn cache(&self, format: &CacheFormat, _positions: u64) -> u64 {
        2 * self.widths().1 * u64::from(self.states) * format.element
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _keys_alone: bool) {
        let (queries, _) = self.widths();
        pass.product(pass.hidden, queries);
        pass.norm(queries, false);
        pass.attend(&ScoreShape {
            heads: self.heads.into(),
            width: self.head_dim.into(),
            value_width: self.head_dim.into(),
            seen: self.states.into(),
            sinks: false,
            capped: false,
            striped: false,
            masked: false,
        });
        pass.product(queries, pass.hidden);
        pass.make(pass.hidden);
    }
}
