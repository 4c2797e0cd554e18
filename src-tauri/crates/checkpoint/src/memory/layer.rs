//! The cost of a layer, and the traits by which each kind of layer tells it.

use super::{CacheFormat, Part, Prefill};

/// One layer.
pub(crate) struct LayerCost {
    pub mixer: Box<dyn MixerCost>,
    /// If there are several, they read the same input.
    pub feed_forwards: Vec<Box<dyn FeedForwardCost>>,
    /// Matrices beside those of mixer and networks: connections of streams, tables of runs.
    pub beside: Vec<Part>,
    /// Numbers of 32 bits that it carries from token to token beside the cache of its mixer.
    pub carried: u64,
    /// True if the output of a part is normed before it is added.
    pub normed_after: bool,
    /// True if mixer and feed-forward networks read the same normed stream, and what they give is added at once.
    pub parallel: bool,
}

/// The cost of a layer's mixer, implemented next to its config.
pub(crate) trait MixerCost {
    /// The matrices of its weights.
    fn weights(&self, hidden: u64) -> Vec<Part>;

    /// Bytes of its cache after `positions`.
    fn cache(&self, format: &CacheFormat, positions: u64) -> u64;

    /// Records its allocations for a chunk of the prompt, from the normed stream on. With `keys_alone` only its cache
    /// is filled: nothing reads the output of the last layer.
    fn prefill(&self, pass: &mut Prefill<'_>, keys_alone: bool);

    /// Positions that it sees if it slides.
    fn window(&self) -> Option<u64> {
        None
    }

    /// True if it has no cache of its own: it reads the keys and values of an earlier layer, or none.
    fn shares_keys(&self) -> bool {
        false
    }

    /// True if there is none.
    fn is_absent(&self) -> bool {
        false
    }
}

/// A layer without a mixer.
pub(crate) struct NoMixer;

impl MixerCost for NoMixer {
    fn weights(&self, _hidden: u64) -> Vec<Part> {
        Vec::new()
    }

    fn cache(&self, _format: &CacheFormat, _positions: u64) -> u64 {
        0
    }

    fn prefill(&self, _pass: &mut Prefill<'_>, _keys_alone: bool) {}

    fn shares_keys(&self) -> bool {
        true
    }

    fn is_absent(&self) -> bool {
        true
    }
}

/// The cost of a layer's feed-forward network.
pub(crate) trait FeedForwardCost {
    /// The matrices of its weights.
    fn weights(&self, hidden: u64) -> Vec<Part>;

    /// Records its allocations for a chunk of the prompt, from the normed stream on.
    fn prefill(&self, pass: &mut Prefill<'_>, normed_after: bool);
}
