//! The gated delta net of Qwen 3.5, Qwen 3 Next and OLMo Hybrid: a short convolution makes queries, keys and values of the last
//! tokens, and the gated delta rule carries a matrix per head from token to token in place of a cache of keys.

use checkpoint::config::decoder::{DeltaNetConfig, DeltaProjections};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::Cache;
use crate::error;
use crate::layers::{each_sequence, DeltaRule, DeltaRuleInputs, Linear, Projection, RmsNorm, ShortConv};
use crate::models::decoder::load_context::LoadContext;

/// Added to the squares of queries and keys before they become unit vectors; no config tells it.
const UNIT_EPS: f32 = 1e-6;

/// From the convolution to the gated norm everything is 32 bit: the state sums up a complete text.
#[derive(Parameters)]
pub struct DeltaNet {
    key_heads: i32,
    value_heads: i32,
    key_width: i32,
    value_width: i32,
    /// The joined projection of queries, keys and values, the gate `z` of the output, `b` of the rates and `a` of the
    /// decays.
    in_proj: Linear,
    conv1d: ShortConv,
    /// Makes unit vectors.
    unit_norm: RmsNorm,
    /// Added to `a`, `[value heads]`.
    dt_bias: Tensor,
    /// How fast heads forget: minus e to `A_log`, `[value heads]`.
    minus_speeds: Tensor,
    zero: Tensor,
    rule: DeltaRule,
    norm: RmsNorm,
    /// The factor of the rates, if they reach beyond 1.
    doubled: Option<Tensor>,
    out_proj: Linear,
}

impl DeltaNet {
    /// Loads what stands below `path`: `in_proj_*`, `conv1d`, `A_log`, `dt_bias`, `norm` and `out_proj`.
    pub fn load(config: &DeltaNetConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (key_heads, value_heads) = (config.key_heads as i32, config.value_heads as i32);
        let (key_width, value_width) = (config.key_width as i32, config.value_width as i32);
        let hidden = loading.config.hidden_size as i32;
        let mixed = 2 * key_heads * key_width + value_heads * value_width;
        let in_proj = Linear::load_rows(loading.weights, &in_proj(config, path), hidden)?;

        let weights = &mut *loading.weights;
        let (kernel, wide) = (config.kernel as i32, Some(Dtype::Float32));
        let joined = format!("{path}.conv1d");
        let apart = config.projections == DeltaProjections::Single && !weights.has(&format!("{joined}.weight"));
        let conv1d = match apart {
            true => {
                let (keys, values) = (key_heads * key_width, value_heads * value_width);
                let parts = [("q", keys), ("k", keys), ("v", values)];
                let parts = parts.map(|(name, channels)| (format!("{path}.{name}_conv1d"), channels));
                ShortConv::load_joined(weights, &parts, kernel, wide)?
            }
            false => ShortConv::load(weights, &joined, mixed, kernel, wide)?,
        };
        let mut per_head =
            |name: &str| Ok::<_, error::Error>(weights.take(&format!("{path}.{name}"), &[value_heads])?.to_f32()?);
        let (a_log, dt_bias) = (per_head("A_log")?, per_head("dt_bias")?);
        // Limited so that no decay becomes infinite times zero.
        let minus_speeds: Vec<f32> = a_log.iter().map(|a| -a.exp().min(1e30)).collect();
        let norm = weights
            .take(&format!("{path}.norm.weight"), &[value_width])?
            .astype(Dtype::Float32)?;
        let root = (key_width as f32).sqrt();
        let unit = vec![1.0 / root; key_width as usize];
        let net = Self {
            key_heads,
            value_heads,
            key_width,
            value_width,
            in_proj,
            conv1d,
            unit_norm: RmsNorm::new(Tensor::from_f32(&unit, &[key_width]), UNIT_EPS / key_width as f32),
            dt_bias: Tensor::from_f32(&dt_bias, &[value_heads]),
            minus_speeds: Tensor::from_f32(&minus_speeds, &[value_heads]),
            zero: Tensor::scalar(0.0, Dtype::Float32)?,
            rule: DeltaRule::new(),
            // Queries ought to be shorter by the root of the width. The norm undoes that up to what it adds to the
            // mean.
            norm: RmsNorm::new(norm, config.norm_eps * key_width as f32),
            doubled: config
                .negates
                .then(|| Tensor::scalar(2.0, Dtype::Float32))
                .transpose()?,
            out_proj: Linear::load(weights, &format!("{path}.out_proj"), value_heads * value_width, hidden)?,
        };
        weights.materialize(net.tensors())?;
        Ok(net)
    }

    /// `[rows, hidden]` to the same.
    pub fn forward(&self, x: &Tensor, caches: &mut [&mut Cache]) -> Result<Tensor> {
        let length = x.dim(0);
        let (keys, values, heads) = (
            self.key_heads * self.key_width,
            self.value_heads * self.value_width,
            self.value_heads,
        );
        // The end of each part of the projection.
        let mixed = 2 * keys + values;
        let (z, a) = (mixed + values, mixed + values + 2 * heads);
        let all = self.in_proj.forward(x)?;

        let mixing = all.slice(1, 0, mixed)?;
        let filtered = each_sequence(caches, |rows, cache| {
            self.conv1d.forward(&rows.of(&mixing)?, &mut cache.recurrent().conv)
        })?;
        let filtered = filtered.sigmoid()?.mul(&filtered)?;
        let units = filtered
            .slice(1, 0, 2 * keys)?
            .reshape(&[length, 2 * self.key_heads, self.key_width])?;
        let units = self.unit_norm.forward(&units)?;
        let b_a = all.slice(1, z, a)?.astype(Dtype::Float32)?;
        // The logarithm of 1 + e to the input.
        let speed = b_a
            .slice(1, heads, 2 * heads)?
            .add(&self.dt_bias)?
            .logaddexp(&self.zero)?;
        let betas = b_a.slice(1, 0, heads)?.sigmoid()?;
        let betas = match &self.doubled {
            Some(factor) => betas.mul(factor)?,
            None => betas,
        };
        let tokens = DeltaRuleInputs {
            queries: units.slice(1, 0, self.key_heads)?,
            keys: units.slice(1, self.key_heads, 2 * self.key_heads)?,
            values: filtered
                .slice(1, 2 * keys, mixed)?
                .reshape(&[length, heads, self.value_width])?,
            log_decays: speed.mul(&self.minus_speeds)?,
            betas,
        };
        let outputs = each_sequence(caches, |rows, cache| {
            let tokens = DeltaRuleInputs {
                queries: rows.of(&tokens.queries)?,
                keys: rows.of(&tokens.keys)?,
                values: rows.of(&tokens.values)?,
                log_decays: rows.of(&tokens.log_decays)?,
                betas: rows.of(&tokens.betas)?,
            };
            let cache = cache.recurrent();
            cache.advance(tokens.keys.dim(0) as usize);
            self.rule.forward(&tokens, &mut cache.state)
        })?;

        let normed = self.norm.forward(&outputs)?.reshape(&[length, values])?;
        let gate = all.slice(1, mixed, z)?.astype(Dtype::Float32)?;
        let gated = gate.sigmoid()?.mul(&gate)?.mul(&normed)?;
        self.out_proj.forward(&gated.astype(x.dtype())?)
    }
}

/// The projections of the input and the order of their rows: queries, keys, values, `z`, `b`, `a`.
fn in_proj(config: &DeltaNetConfig, path: &str) -> Vec<Projection> {
    let (key_heads, value_heads) = (config.key_heads as i32, config.value_heads as i32);
    let (keys, values) = (
        key_heads * config.key_width as i32,
        value_heads * config.value_width as i32,
    );
    let rows = |name: &str, outputs: i32| Projection::new(format!("{path}.{name}"), outputs);
    match config.projections {
        DeltaProjections::Apart => vec![
            rows("in_proj_qkv", 2 * keys + values),
            rows("in_proj_z", values),
            rows("in_proj_b", value_heads),
            rows("in_proj_a", value_heads),
        ],
        DeltaProjections::Single => vec![
            rows("q_proj", keys),
            rows("k_proj", keys),
            rows("v_proj", values),
            rows("g_proj", values),
            rows("b_proj", value_heads),
            rows("a_proj", value_heads),
        ],
        DeltaProjections::ByKeyHead => {
            let (query, value, shared) = (config.key_width as i32, values / key_heads, value_heads / key_heads);
            vec![
                rows("in_proj_qkvz", 2 * keys + 2 * values).deinterleaved(&[
                    0..query,
                    query..2 * query,
                    2 * query..2 * query + value,
                    2 * query + value..2 * query + 2 * value,
                ]),
                rows("in_proj_ba", 2 * value_heads).deinterleaved(&[0..shared, shared..2 * shared]),
            ]
        }
    }
}
