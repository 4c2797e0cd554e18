//! Two stacks of layers that a step goes through in turn (HRM Text): each reads the sum of what both gave last, and
//! gives its last states, normed.

use checkpoint::config::decoder::DecoderConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::{of_layer, Cache};
use crate::error;
use crate::layers::ResidualStream;
use crate::models::decoder::step::Step;
use crate::models::decoder::Decoder;
use crate::weights::Weights;

/// The stacks of a model.
#[derive(Parameters)]
pub(super) struct Cycles {
    /// Layers of each.
    layers: usize,
    /// The states that stand for the low stack's before it is gone through, `[1, hidden]`.
    low: Tensor,
}

impl Cycles {
    /// Loads `z_L_init`, if the model has stacks.
    pub(super) fn load(config: &DecoderConfig, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Option<Self>> {
        if config.cycles.is_none() {
            return Ok(None);
        }
        let hidden = config.hidden_size as i32;
        let low = weights.take("z_L_init", &[hidden])?;
        Ok(Some(Self {
            layers: config.layers.len() / 2,
            low: low.astype(dtype)?.reshape(&[1, hidden])?,
        }))
    }
}

impl Decoder {
    /// States `[rows, hidden]` before the norm of the last stack, of embeddings `[rows, hidden]`.
    pub(super) fn forward_cycles(
        &self,
        cycles: &Cycles,
        embedded: Tensor,
        step: &Step<'_>,
        sequences: &mut [&mut [Cache]],
    ) -> Result<Tensor> {
        let mut low = cycles.low.broadcast(embedded.shape())?;
        let (mut high, mut last) = (embedded.clone(), embedded);
        let steps: Vec<(usize, usize)> = self.order.run().collect();
        for stack in steps.chunks(cycles.layers) {
            let mut stream = ResidualStream::new(low.add(&high)?);
            for (index, layer) in stack {
                let caches = &mut of_layer(sequences, self.order.caches(*index));
                self.layers[*layer].forward(&mut stream, step, &self.residual_add, caches)?;
            }
            last = stream.sum()?.clone();
            let normed = self.norm.forward(&last)?;
            match stack.first() {
                Some((_, layer)) if *layer < cycles.layers => low = normed,
                _ => high = normed,
            }
        }
        Ok(last)
    }
}
