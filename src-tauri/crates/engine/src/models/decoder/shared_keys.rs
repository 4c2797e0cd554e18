//! Keys and values that other layers read, or that are rounded (AFM 7).

use checkpoint::config::decoder::{AttentionConfig, KeySource};
use mlx::parameters::Parameters;
use mlx::recording;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::KvView;
use crate::error;
use crate::layers::{join_sequences, scaled_dot_product_attention, sequence_rows};
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::step::Step;

/// A 32 bit float of this size has no digits after the point, so that adding it rounds to the nearest even number.
const WHOLE: f32 = 12_582_912.0;

/// The rounding of keys and values to 8 bits.
#[derive(Parameters)]
pub(super) struct Rounding {
    /// The factors of keys and of values, in 32 bits.
    factors: [Tensor; 2],
    least: Tensor,
    greatest: Tensor,
    whole: Tensor,
}

impl Rounding {
    /// Loads `quant_key_scale` and `quant_value_scale` below `path`, if the layer rounds.
    pub(super) fn load(
        config: &AttentionConfig,
        path: &str,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Option<Self>> {
        if !config.rounded {
            return Ok(None);
        }
        let mut factor = |name: &str| -> error::Result<Tensor> {
            let name = format!("{path}.{name}");
            let shape = loading.weights.shape(&name).map(<[i32]>::to_vec).unwrap_or_default();
            let shape = if shape.is_empty() { vec![] } else { vec![1] };
            Ok(loading.weights.take(&name, &shape)?.astype(Dtype::Float32)?)
        };
        let scalar = |number: f32| Tensor::scalar(number, Dtype::Float32);
        let rounding = Self {
            factors: [factor("quant_key_scale")?, factor("quant_value_scale")?],
            least: scalar(-128.0)?,
            greatest: scalar(127.0)?,
            whole: scalar(WHOLE)?,
        };
        loading.weights.materialize(rounding.tensors())?;
        Ok(Some(rounding))
    }

    /// Keys and values, rounded.
    pub(super) fn apply(&self, keys: &Tensor, values: &Tensor) -> Result<(Tensor, Tensor)> {
        let round = |x: &Tensor, factor: &Tensor| {
            let bounded = x
                .astype(Dtype::Float32)?
                .div(factor)?
                .clip(&self.least, &self.greatest)?;
            bounded
                .add(&self.whole)?
                .sub(&self.whole)?
                .mul(factor)?
                .astype(x.dtype())
        };
        Ok((round(keys, &self.factors[0])?, round(values, &self.factors[1])?))
    }
}

/// True if the layer has queries alone.
pub(super) fn reads_earlier(config: &AttentionConfig) -> bool {
    config.keys == KeySource::Earlier
}

impl Step<'_> {
    /// Keeps what a sequence sees in a layer for layers after it.
    pub(super) fn keep_seen(&self, sequence: usize, seen: &KvView) {
        let mut kept = self.kept.borrow_mut();
        kept.truncate(sequence);
        kept.push(seen.clone());
    }

    /// Attention of the queries of all sequences to what the last layer that keeps it saw, `[rows, heads · width]`.
    pub(super) fn attend_kept(&self, queries: &Tensor, scale: f32, mask: usize) -> Result<Tensor> {
        if recording::is_on() {
            return Err(mlx::Error::Unsupported(
                "a recorded step with keys of other layers".into(),
            ));
        }
        let kept = self.kept.borrow();
        let attended = sequence_rows(self.sequences)
            .zip(kept.iter())
            .map(|(rows, seen)| scaled_dot_product_attention(&rows.of(queries)?, seen, scale, &self.masks[mask], None))
            .collect::<Result<_>>()?;
        join_sequences(attended)
    }
}
