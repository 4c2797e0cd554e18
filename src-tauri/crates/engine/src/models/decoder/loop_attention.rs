//! Attention of the second loop through the layers, which sees a few of its own keys and all of the first loop's. A
//! gate for each head mixes what it finds in both (IQuest Loop).

use checkpoint::config::decoder::AttentionConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::KvView;
use crate::error;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::step::Step;

/// The gates of one layer, and what it sees of its own.
#[derive(Parameters)]
pub(super) struct LoopAttention {
    layer: usize,
    /// Positions of its own keys that a query sees, itself included.
    pub(super) window: u32,
    /// The index of the mask for these.
    pub(super) mask: usize,
    /// `[1, heads, 1, width]`.
    weight: Tensor,
    /// `[1, heads, 1]`.
    bias: Tensor,
}

impl LoopAttention {
    /// Loads `gate_projections.N.weight` `[heads, width]` and its bias, if the model has such loops.
    pub(super) fn load(
        config: &AttentionConfig,
        layer: usize,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Option<Self>> {
        let Some(window) = loading.config.loop_window else {
            return Ok(None);
        };
        let (heads, width) = (config.heads as i32, config.head_dim as i32);
        let path = format!("gate_projections.{layer}");
        let weight = loading.weights.take(&format!("{path}.weight"), &[heads, width])?;
        let bias = loading.weights.take(&format!("{path}.bias"), &[heads])?;
        // That of the first loop comes first.
        loading.mask(config.window);
        let looped = Self {
            layer,
            window,
            mask: loading.mask(Some(window)),
            weight: weight.reshape(&[1, heads, 1, width])?,
            bias: bias.reshape(&[1, heads, 1])?,
        };
        loading.weights.materialize(looped.tensors())?;
        Ok(Some(looped))
    }

    /// Keeps what a sequence sees in the first loop.
    pub(super) fn keep(&self, step: &Step<'_>, seen: KvView) {
        let mut kept = step.first_loop.borrow_mut();
        let layers = kept.len().max(self.layer + 1);
        kept.resize_with(layers, Vec::new);
        kept[self.layer].push(seen);
    }

    /// The keys and values that a sequence saw there.
    pub(super) fn first(&self, step: &Step<'_>, sequence: usize) -> KvView {
        step.first_loop.borrow()[self.layer][sequence].clone()
    }

    /// Mixes what queries `[1, heads, length, width]` found in all keys of the first loop with what they found near,
    /// both `[length, heads · width]`.
    pub(super) fn mix(&self, queries: &Tensor, far: &Tensor, near: &Tensor) -> Result<Tensor> {
        let &[_, heads, length, width] = queries.shape() else {
            unreachable!("heads have four axes")
        };
        let gate = queries.mul(&self.weight)?.sum(3, false)?.add(&self.bias)?.sigmoid()?;
        let gate = gate.swapaxes(1, 2)?.reshape(&[length, heads, 1])?;
        let apart = |x: &Tensor| x.reshape(&[length, heads, width]);
        let near = apart(near)?;
        let mixed = apart(far)?.sub(&near)?.mul(&gate)?.add(&near)?;
        mixed.reshape(&[length, heads * width])
    }
}
