//! The gated delta net of Qwen 3.5, Qwen 3 Next, OLMo Hybrid and Kimi Linear: a short convolution makes queries, keys
//! and values of the last tokens, and the gated delta rule carries a matrix per head from token to token in place of a
//! cache of keys.

use checkpoint::config::decoder::{ChannelDecays, DeltaNetConfig, DeltaProjections};
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
    /// decays; or what `z` and `a` are made of.
    in_proj: Linear,
    /// The second projections of `z` and of `a`, if these have two.
    from_ranks: Option<[Linear; 2]>,
    /// Numbers of `z` and of `a` that `in_proj` makes.
    gate_widths: [i32; 2],
    /// Numbers of a key that have a decay of their own, or one decay for all.
    decay_width: i32,
    /// The logarithm of the strongest decay, if there is one.
    lower_bound: Option<Tensor>,
    /// True if the gate of the output is a logistic function.
    logistic: bool,
    conv1d: ShortConv,
    /// Makes unit vectors.
    unit_norm: RmsNorm,
    /// Added to `a`, `[value heads]`, or `[value heads, key width]`.
    dt_bias: Tensor,
    /// How fast heads forget: minus e to `A_log`, `[value heads]`, or `[value heads, 1]`; without the sign if there is
    /// a strongest decay.
    speeds: Tensor,
    zero: Tensor,
    rule: DeltaRule,
    norm: RmsNorm,
    /// The factor of the rates, if they reach beyond 1.
    doubled: Option<Tensor>,
    out_proj: Linear,
}

impl DeltaNet {
    /// Loads what stands below `path`: `in_proj_*`, `conv1d`, `A_log`, `dt_bias`, `norm` and `out_proj`; or what
    /// [`in_proj`] lists, with `o_norm` and `o_proj` if each number of a key has a decay of its own.
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
        let channels = config.channels;
        let (norm, out_proj) = channels.map_or(("norm", "out_proj"), |_| ("o_norm", "o_proj"));
        let mut numbers = |name: &str, count: i32| {
            let name = format!("{path}.{name}");
            // Kimi's files have axes of one beside.
            let shape = weights
                .shape(&name)
                .filter(|shape| shape.iter().product::<i32>() == count);
            let shape = shape.map_or_else(|| vec![count], <[i32]>::to_vec);
            Ok::<_, error::Error>(weights.take(&name, &shape)?.to_f32()?)
        };
        let decay_width = channels.map_or(1, |_| key_width);
        let (a_log, dt_bias) = (
            numbers("A_log", value_heads)?,
            numbers("dt_bias", value_heads * decay_width)?,
        );
        let lower_bound = channels.and_then(|channels| channels.lower_bound);
        let sign = lower_bound.map_or(-1.0, |_| 1.0);
        // Limited so that no decay becomes infinite times zero.
        let speeds: Vec<f32> = a_log.iter().map(|a| sign * a.exp().min(1e30)).collect();
        let (speeds, dt_bias) = match channels {
            Some(_) => (
                Tensor::from_f32(&speeds, &[value_heads, 1]),
                Tensor::from_f32(&dt_bias, &[value_heads, key_width]),
            ),
            None => (
                Tensor::from_f32(&speeds, &[value_heads]),
                Tensor::from_f32(&dt_bias, &[value_heads]),
            ),
        };
        let rank = channels.and_then(|channels| channels.rank).map(|rank| rank as i32);
        let (values, decays) = (value_heads * value_width, value_heads * decay_width);
        let from_ranks = match rank {
            Some(rank) => Some([
                Linear::load(weights, &format!("{path}.g_b_proj"), rank, values)?,
                Linear::load(weights, &format!("{path}.f_b_proj"), rank, decays)?,
            ]),
            None => None,
        };
        let norm = weights
            .take(&format!("{path}.{norm}.weight"), &[value_width])?
            .astype(Dtype::Float32)?;
        let root = (key_width as f32).sqrt();
        let unit = vec![1.0 / root; key_width as usize];
        let net = Self {
            key_heads,
            value_heads,
            key_width,
            value_width,
            in_proj,
            from_ranks,
            gate_widths: rank.map_or([values, decays], |rank| [rank, rank]),
            decay_width,
            lower_bound: Tensor::optional_scalar(lower_bound, Dtype::Float32)?,
            logistic: config.logistic,
            conv1d,
            unit_norm: RmsNorm::new(Tensor::from_f32(&unit, &[key_width]), UNIT_EPS / key_width as f32),
            dt_bias,
            speeds,
            zero: Tensor::scalar(0.0, Dtype::Float32)?,
            rule: DeltaRule::new(),
            // Queries ought to be shorter by the root of the width. The norm undoes that up to what it adds to the
            // mean.
            norm: RmsNorm::new(norm, config.norm_eps * key_width as f32),
            doubled: config
                .negates
                .then(|| Tensor::scalar(2.0, Dtype::Float32))
                .transpose()?,
            out_proj: Linear::load(weights, &format!("{path}.{out_proj}"), values, hidden)?,
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
        let [gate, decays] = self.gate_widths;
        let z = mixed + gate;
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
        let (gate, b) = (all.slice(1, mixed, z)?, all.slice(1, z, z + heads)?);
        let a = all.slice(1, z + heads, z + heads + decays)?;
        let (gate, a) = match &self.from_ranks {
            Some([of_gate, of_decays]) => (of_gate.forward(&gate)?, of_decays.forward(&a)?),
            None => (gate, a),
        };
        let betas = b.astype(Dtype::Float32)?.sigmoid()?;
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
            log_decays: self.log_decays(&a.astype(Dtype::Float32)?)?,
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
        let gate = gate.astype(Dtype::Float32)?;
        let share = match self.logistic {
            true => gate.sigmoid()?,
            false => gate.sigmoid()?.mul(&gate)?,
        };
        self.out_proj.forward(&share.mul(&normed)?.astype(x.dtype())?)
    }

    /// The logarithms of the decays, `[rows, value heads]` or `[rows, value heads, key width]`, by `a`, in 32 bits.
    fn log_decays(&self, a: &Tensor) -> Result<Tensor> {
        let a = match self.decay_width {
            1 => a.add(&self.dt_bias)?,
            width => a.reshape(&[a.dim(0), self.value_heads, width])?.add(&self.dt_bias)?,
        };
        match &self.lower_bound {
            Some(strongest) => a.mul(&self.speeds)?.sigmoid()?.mul(strongest),
            // The logarithm of 1 + e to the input.
            None => a.logaddexp(&self.zero)?.mul(&self.speeds),
        }
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
        DeltaProjections::Single => {
            let (gate, decays) = match config.channels {
                None => (rows("g_proj", values), rows("a_proj", value_heads)),
                Some(ChannelDecays { rank: None, .. }) => {
                    let decays = value_heads * config.key_width as i32;
                    (rows("g_proj", values), rows("f_proj", decays))
                }
                Some(ChannelDecays { rank: Some(rank), .. }) => {
                    (rows("g_a_proj", rank as i32), rows("f_a_proj", rank as i32))
                }
            };
            vec![
                rows("q_proj", keys),
                rows("k_proj", keys),
                rows("v_proj", values),
                gate,
                rows("b_proj", value_heads),
                decays,
            ]
        }
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
