//! Attention and Mamba 2 beside each other (Falcon-H1).

use crate::config::layers::attention::AttentionConfig;
use crate::config::layers::mamba2::Mamba2Config;
use crate::memory::{CacheFormat, MixerCost, Part, Prefill};

/// Both read the same, and what they give is added.
#[derive(Debug, Clone, PartialEq)]
pub struct JointConfig {
    /// `self_attn`.
    pub attention: AttentionConfig,
    /// `mamba`.
    pub mamba: Mamba2Config,
}

impl MixerCost for JointConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        let mut parts = self.attention.cost().weights(hidden);
        parts.extend(self.mamba.weights(hidden));
        parts
    }

    fn cache(&self, format: &CacheFormat, positions: u64) -> u64 {
        self.attention.cost().cache(format, positions) + self.mamba.cache(format, positions)
    }

    fn prefill(&self, pass: &mut Prefill<'_>, keys_alone: bool) {
        // The normed stream, which both read, and what the first one gave.
        let beside = 2 * pass.rows * pass.hidden * pass.element;
        pass.hold_in_one_layer(beside + self.mamba.held(pass));
        self.attention.cost().prefill(pass, keys_alone);
        self.mamba.prefill(pass, keys_alone);
        pass.in_place(1);
    }

    fn window(&self) -> Option<u64> {
        self.attention.window.map(u64::from)
    }
}
