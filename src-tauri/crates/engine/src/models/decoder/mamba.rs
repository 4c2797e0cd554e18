//! Mamba: a short convolution makes values of the last tokens, and a row of numbers per channel that fade from token to
//! token takes the place of a cache of keys.

use checkpoint::config::decoder::{MambaConfig, ScanInputNorms};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::Cache;
use crate::error;
use crate::layers::{each_sequence, ones, selective_scan, Linear, RmsNorm, SelectiveScanInputs, ShortConv};
use crate::models::decoder::load_context::LoadContext;

/// From the convolution to the gate everything but the small projections is 32 bit: the state sums up a complete text.
#[derive(Parameters)]
pub struct Mamba {
    inner: i32,
    state_width: i32,
    rank: i32,
    /// Makes what the convolution reads, and the gate.
    in_proj: Linear,
    conv1d: ShortConv,
    /// Makes what steps are projected from, and the places that are written and read.
    x_proj: Linear,
    /// The norms of these three.
    norms: Option<[RmsNorm; 3]>,
    dt_proj: Linear,
    /// Minus e to `A_log`, `[inner, state width]`.
    minus_speeds: Tensor,
    zero: Tensor,
    /// How much of a value passes by the state, `D`, `[inner]`.
    passing: Tensor,
    out_proj: Linear,
}

impl Mamba {
    /// Loads what stands below `path`: `in_proj`, `conv1d`, `x_proj`, `dt_proj`, `A_log`, `D`, norms and `out_proj`.
    pub fn load(config: &MambaConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (inner, state_width, rank) = (config.inner as i32, config.state_width as i32, config.rank as i32);
        let hidden = loading.config.hidden_size as i32;
        let weights = &mut *loading.weights;
        let at = |name: &str| format!("{path}.{name}");
        let required = [
            ("in_proj", config.bias),
            ("out_proj", config.bias),
            ("conv1d", config.conv_bias),
            ("dt_proj", true),
        ];
        for (part, _) in required.into_iter().filter(|(_, required)| *required) {
            weights.require(&at(&format!("{part}.bias")))?;
        }
        let in_proj = Linear::load(weights, &at("in_proj"), hidden, 2 * inner)?;
        let wide = Some(Dtype::Float32);
        let conv1d = ShortConv::load(weights, &at("conv1d"), inner, config.kernel as i32, wide)?;
        let x_proj = Linear::load(weights, &at("x_proj"), inner, rank + 2 * state_width)?;
        let dt_proj = Linear::load(weights, &at("dt_proj"), rank, inner)?;
        let parts = [
            ("dt_layernorm", rank),
            ("b_layernorm", state_width),
            ("c_layernorm", state_width),
        ];
        let mut norms = Vec::new();
        for (name, width) in parts {
            norms.extend(match config.norms {
                ScanInputNorms::None => None,
                ScanInputNorms::Bare(eps) => Some(RmsNorm::new(ones(width, Dtype::Float32)?, eps)),
                ScanInputNorms::Weighted(eps) => {
                    let factors = weights.take(&at(&format!("{name}.weight")), &[width])?;
                    Some(RmsNorm::new(factors.astype(Dtype::Float32)?, eps))
                }
            });
        }
        // Limited so that no decay becomes infinite times zero.
        let a_log = weights.take(&at("A_log"), &[inner, state_width])?.to_f32()?;
        let minus_speeds: Vec<f32> = a_log.iter().map(|a| -a.exp().min(1e30)).collect();
        let mamba = Self {
            inner,
            state_width,
            rank,
            in_proj,
            conv1d,
            x_proj,
            norms: <[RmsNorm; 3]>::try_from(norms).ok(),
            dt_proj,
            minus_speeds: Tensor::from_f32(&minus_speeds, &[inner, state_width]),
            zero: Tensor::scalar(0.0, Dtype::Float32)?,
            passing: weights.take(&at("D"), &[inner])?.astype(Dtype::Float32)?,
            out_proj: Linear::load(weights, &at("out_proj"), inner, hidden)?,
        };
        weights.materialize(mamba.tensors())?;
        Ok(mamba)
    }

    /// `[rows, hidden]` to the same.
    pub fn forward(&self, x: &Tensor, caches: &mut [&mut Cache]) -> Result<Tensor> {
        let all = self.in_proj.forward(x)?;
        let mixing = all.slice(1, 0, self.inner)?;
        let filtered = each_sequence(caches, |rows, cache| {
            self.conv1d.forward(&rows.of(&mixing)?, &mut cache.recurrent().conv)
        })?;
        let values = filtered.sigmoid()?.mul(&filtered)?;
        let made = self
            .x_proj
            .forward(&values.astype(x.dtype())?)?
            .astype(Dtype::Float32)?;
        // The end of each part of the projection.
        let (places, queries) = (self.rank + self.state_width, self.rank + 2 * self.state_width);
        let mut parts = [
            made.slice(1, 0, self.rank)?,
            made.slice(1, self.rank, places)?,
            made.slice(1, places, queries)?,
        ];
        if let Some(norms) = &self.norms {
            for (part, norm) in parts.iter_mut().zip(norms) {
                *part = norm.forward(part)?;
            }
        }
        let [steps, places, queries] = parts;
        let steps = self
            .dt_proj
            .forward(&steps.astype(x.dtype())?)?
            .astype(Dtype::Float32)?;
        let tokens = SelectiveScanInputs {
            // The logarithm of 1 + e to the input.
            steps: steps.logaddexp(&self.zero)?,
            values,
            places,
            queries,
        };
        let outputs = each_sequence(caches, |rows, cache| {
            let tokens = SelectiveScanInputs {
                values: rows.of(&tokens.values)?,
                steps: rows.of(&tokens.steps)?,
                places: rows.of(&tokens.places)?,
                queries: rows.of(&tokens.queries)?,
            };
            let cache = cache.recurrent();
            cache.advance(tokens.values.dim(0) as usize);
            selective_scan(&tokens, &self.minus_speeds, &mut cache.state)
        })?;
        let outputs = outputs.add(&tokens.values.mul(&self.passing)?)?;
        let gate = all.slice(1, self.inner, 2 * self.inner)?.astype(Dtype::Float32)?;
        let gated = gate.sigmoid()?.mul(&gate)?.mul(&outputs)?;
        self.out_proj.forward(&gated.astype(x.dtype())?)
    }
}
