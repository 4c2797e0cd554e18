//! A projection in place of a mixer or of a network, where a search found that less is enough.

use crate::memory::{CacheFormat, FeedForwardCost, MixerCost, Part, Prefill};

/// A projection `[hidden, hidden]` of the normed stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearConfig {
    /// True if it must have a bias.
    pub bias: bool,
}

impl MixerCost for LinearConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        vec![Part::matrix(hidden, hidden)]
    }

    fn cache(&self, _: &CacheFormat, _: u64) -> u64 {
        0
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _keys_alone: bool) {
        pass.product(pass.hidden, pass.hidden);
    }

    fn shares_keys(&self) -> bool {
        true
    }
}

impl FeedForwardCost for LinearConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        MixerCost::weights(self, hidden)
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _normed_after: bool) {
        pass.product(pass.hidden, pass.hidden);
    }
}
