//! Two stacks of layers that a step goes through in turn (HRM Text): each reads the sum of what both gave last, and
//! gives its last states, normed.

use checkpoint::config::decoder::DecoderConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Dtype;

use crate::error;
use crate::weights::Weights;

/// The stacks of a model.
#[derive(Parameters)]
pub(super) struct Cycles {
    /// Layers of each.
    pub(super) layers: usize,
    /// The states that stand for the low stack's before it is gone through, `[1, hidden]`.
    pub(super) low: Tensor,
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
