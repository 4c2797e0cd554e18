//! The memory of a vision encoder: its weights, and encoding one image.

use super::Backend;

/// The most tokens of an image in normal detail.
const TOKENS: u64 = 2048;

/// The most bytes of attention scores in memory at once; queries beyond that are computed in turns.
pub const MAX_VISION_SCORES: u64 = 256 << 20;

/// A vision encoder as far as memory depends on it.
pub(crate) struct VisionCost {
    pub layers: u64,
    /// Width of its stream.
    pub hidden: u64,
    /// Width of its feed-forward networks.
    pub width: u64,
    /// Projections of its feed-forward networks: 2, or 3 if they are gated.
    pub projections: u64,
    pub heads: u64,
    /// Numbers outside the layers: patches, positions, and the projector to the language part.
    pub others: u64,
    /// Patches that become one token.
    pub patches_of_token: u64,
    /// The most tokens of an image.
    pub tokens: u64,
    /// Rows of all views together, for encoders that do not take one view at a time (Llama 3.2 Vision).
    pub together: Option<u64>,
}

impl VisionCost {
    /// No layers and nothing else, in normal detail.
    pub(crate) const EMPTY: Self = Self {
        layers: 0,
        hidden: 0,
        width: 0,
        projections: 0,
        heads: 0,
        others: 0,
        patches_of_token: 1,
        tokens: TOKENS,
        together: None,
    };

    /// Joined to the language part by blocks of `merge` patches along a side; its width is taken to be about that of a
    /// block.
    pub(crate) fn joined(self, merge: u32) -> Self {
        let patches_of_token = u64::from(merge).pow(2);
        let block = self.hidden * patches_of_token;
        Self {
            others: self.others + block * block,
            patches_of_token,
            ..self
        }
    }

    /// Number of weights.
    pub(crate) fn parameters(&self) -> u64 {
        self.layers * self.hidden * (4 * self.hidden + self.projections * self.width) + self.others
    }

    /// Bytes of the weights in memory. Conversions leave vision encoders in 16 bits.
    pub(crate) fn weights(&self, backend: Backend) -> u64 {
        let layers = self.parameters() - self.others;
        layers * 2 + self.others * element(backend)
    }

    /// The most bytes that encoding an image in normal detail takes.
    pub(crate) fn encoding(&self, backend: Backend) -> u64 {
        self.encoding_patches(self.tokens * self.patches_of_token, backend)
    }

    /// Bytes that encoding `patches` takes: states, queries, keys and values, the inside of the feed-forward network,
    /// and scores.
    pub(crate) fn encoding_patches(&self, patches: u64, backend: Backend) -> u64 {
        let patches = self.together.unwrap_or(patches);
        let scores = (patches * patches * self.heads * 4).min(MAX_VISION_SCORES);
        // Rotations and norms are computed in 32 bits.
        patches * (10 * self.hidden + 3 * self.width) * element(backend).max(4) + scores
    }
}

fn element(backend: Backend) -> u64 {
    match backend {
        Backend::Cpu => 4,
        Backend::Metal | Backend::Cuda => 2,
    }
}
