//! The short convolution of LFM 2 in place of attention: `out(C · conv(B · x))`, with `B`, `C` and `x` projected from
//! the input.

use checkpoint::config::decoder::GatedConvConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::Cache;
use crate::error;
use crate::layers::{each_sequence, Linear, ShortConv};
use crate::models::decoder::load_context::LoadContext;

/// A gated short convolution over the full width of the stream.
#[derive(Parameters)]
pub struct GatedConv {
    width: i32,
    /// Makes `B`, `C` and `x` side by side.
    in_proj: Linear,
    conv: ShortConv,
    /// True if a token is in the middle of those that it sees.
    centered: bool,
    out_proj: Linear,
}

impl GatedConv {
    /// Loads what stands below `path`: `in_proj`, `conv` and `out_proj`.
    pub fn load(config: &GatedConvConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let width = loading.config.hidden_size as i32;
        let weights = &mut *loading.weights;
        if config.bias {
            for part in ["in_proj", "conv", "out_proj"] {
                weights.require(&format!("{path}.{part}.bias"))?;
            }
        }
        let conv = Self {
            width,
            in_proj: Linear::load(weights, &format!("{path}.in_proj"), width, 3 * width)?,
            conv: ShortConv::load(weights, &format!("{path}.conv"), width, config.kernel as i32, None)?,
            centered: config.centered,
            out_proj: Linear::load(weights, &format!("{path}.out_proj"), width, width)?,
        };
        weights.materialize(conv.tensors())?;
        Ok(conv)
    }

    /// `[rows, width]` to the same.
    pub fn forward(&self, x: &Tensor, caches: &mut [&mut Cache]) -> Result<Tensor> {
        let all = self.in_proj.forward(x)?;
        let part = |index: i32| all.slice(1, index * self.width, (index + 1) * self.width);
        let gated = part(0)?.mul(&part(2)?)?;
        if self.centered {
            let filtered = self.conv.centered(&gated)?;
            return self.out_proj.forward(&part(1)?.mul(&filtered)?);
        }
        let filtered = each_sequence(caches, |rows, cache| {
            let (gated, cache) = (rows.of(&gated)?, cache.recurrent());
            cache.advance(gated.dim(0) as usize);
            self.conv.forward(&gated, &mut cache.conv)
        })?;
        self.out_proj.forward(&part(1)?.mul(&filtered)?)
    }
}
