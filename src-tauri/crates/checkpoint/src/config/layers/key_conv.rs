//! Queries that gate what short convolutions find in keys and values, `local_mixer` (Gear).

use crate::config::limits::{check_head, check_kernel, check_key_heads, check_width};
use crate::error::Error;
use crate::memory::{CacheFormat, MixerCost, Part, Prefill};

/// A mixer of the last tokens: `sigmoid(query · conv(key)) · conv(value)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyConvConfig {
    /// Heads of queries.
    pub heads: u32,
    /// Heads of keys and values, each of which several of those share.
    pub key_heads: u32,
    /// Width of each.
    pub head_dim: u32,
    /// Tokens that the convolutions see.
    pub kernel: u32,
    /// True if the convolutions and the projections must have a bias.
    pub bias: bool,
}

impl KeyConvConfig {
    /// Numbers of all queries, and of all keys or all values.
    fn widths(&self) -> [u64; 2] {
        [self.heads, self.key_heads].map(|heads| u64::from(heads) * u64::from(self.head_dim))
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check_key_heads("num_key_value_heads", self.heads, self.key_heads)?;
        check_head("head_dim", self.head_dim)?;
        let [queries, keys] = self.widths();
        check_width("head_dim", queries.saturating_add(keys.saturating_mul(2)))?;
        check_kernel("conv_L_cache", self.kernel)
    }
}

impl MixerCost for KeyConvConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        let [queries, keys] = self.widths();
        vec![
            Part::matrix(queries + 2 * keys, hidden),
            Part::plain(2 * keys, self.kernel.into()),
            Part::matrix(hidden, queries),
        ]
    }

    fn cache(&self, format: &CacheFormat, _positions: u64) -> u64 {
        u64::from(self.kernel - 1) * 2 * self.widths()[1] * format.element
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _keys_alone: bool) {
        let [queries, keys] = self.widths();
        pass.product(pass.hidden, queries + 2 * keys);
        pass.norm(queries, false);
        pass.norm(keys, false);
        pass.make(2 * keys);
        pass.short_conv(2 * keys, self.kernel.into(), pass.element);
        pass.make(queries);
        pass.in_place(2);
        pass.product(queries, pass.hidden);
    }
}
