//! The context in which the parts of a layer are loaded.

use checkpoint::config::decoder::DecoderConfig;
use mlx::Dtype;

use crate::layers::Rope;
use crate::weights::Weights;

/// Everything that the parts of a layer need in addition to their own config while they are loaded.
pub(super) struct LoadContext<'a, 'w> {
    pub(super) config: &'a DecoderConfig,
    pub(super) weights: &'a mut Weights<'w>,
    /// Type of activations and of what is not quantized.
    pub(super) dtype: Dtype,
    pub(super) ropes: &'a [Rope],
    /// The windows met so far; attention refers to its mask by the index.
    pub(super) windows: &'a mut Vec<Option<u32>>,
    /// The caches of the layers met so far.
    pub(super) caches: usize,
}

impl LoadContext<'_, '_> {
    /// The index of the mask for this window.
    pub(super) fn mask(&mut self, window: Option<u32>) -> usize {
        let known = self.windows.iter().position(|other| *other == window);
        known.unwrap_or_else(|| {
            self.windows.push(window);
            self.windows.len() - 1
        })
    }
}
