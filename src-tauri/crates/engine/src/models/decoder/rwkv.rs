//! The two parts of a layer of RWKV 7. Each sees the token before its own; one carries a matrix in each head, which a
//! rule of its own changes with each token.

use checkpoint::config::decoder::{ChannelMixConfig, EncoderActivation, RwkvConfig, TimeMixConfig};
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::Cache;
use crate::error;
use crate::layers::{each_sequence, Linear, Pointwise, Wkv, WkvInputs};
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::step::Step;
use crate::weights::Weights;

/// Added to the variance in the norm of what a head found; 64 times that of the stream in the published code.
const HEAD_EPS: f32 = 64e-5;

/// The logarithm of the strongest decay, minus the root of e's inverse.
const STRONGEST: f32 = -0.606_531;

/// The least length of a key that becomes a unit vector, squared.
const LEAST_SQUARE: f32 = 1e-14;

/// A part of a layer.
#[derive(Parameters)]
pub(super) enum Rwkv {
    Time(Box<TimeMix>),
    Channel(Box<ChannelMix>),
}

/// The part with heads. From its projections to the norm everything is 32 bit: the state sums up a complete text.
#[derive(Parameters)]
pub(super) struct TimeMix {
    heads: i32,
    width: i32,
    /// The shares of the token before in what each product reads: for queries, decays, keys, values, rates and the
    /// gate, `[1, hidden]` each.
    shares: Vec<Tensor>,
    r_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    decays: SmallProduct,
    rates: SmallProduct,
    /// The shares of the first layer's values in those of another one.
    first_values: Option<SmallProduct>,
    gate: SmallProduct,
    /// Factors of the keys that are asked for, of the rates in keys, and of queries in what passes by the state,
    /// `[heads, width]`.
    k_k: Tensor,
    k_a: Tensor,
    r_k: Tensor,
    /// Factors and summands of the norm of each head.
    norm: [Tensor; 2],
    /// Ones and zeros `[width]`.
    plain: [Tensor; 2],
    strongest: Tensor,
    one: Tensor,
    least: Tensor,
    rule: Wkv,
}

/// Two products by way of a few numbers.
#[derive(Parameters)]
struct SmallProduct {
    into: Linear,
    back: Linear,
}

/// The part without heads.
#[derive(Parameters)]
pub(super) struct ChannelMix {
    /// `[1, hidden]`.
    share: Tensor,
    activation: Pointwise,
    key: Linear,
    value: Linear,
}

impl Rwkv {
    /// Loads what stands below `layer`: `attn` or `ffn`.
    pub(super) fn load(config: &RwkvConfig, layer: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        Ok(match config {
            RwkvConfig::Time(config) => Self::Time(Box::new(TimeMix::load(config, &format!("{layer}.attn"), loading)?)),
            RwkvConfig::Channel(config) => {
                Self::Channel(Box::new(ChannelMix::load(config, &format!("{layer}.ffn"), loading)?))
            }
        })
    }

    /// `[rows, hidden]` to the same.
    pub(super) fn forward(&self, x: &Tensor, step: &Step<'_>, caches: &mut [&mut Cache]) -> Result<Tensor> {
        let difference = before(x, caches)?.sub(x)?;
        match self {
            Self::Time(mix) => mix.forward(x, &difference, step, caches),
            Self::Channel(mix) => mix.forward(x, &difference),
        }
    }
}

/// The token before each of the rows, zeros before the first one.
fn before(x: &Tensor, caches: &mut [&mut Cache]) -> Result<Tensor> {
    each_sequence(caches, |rows, cache| {
        let (x, cache) = (rows.of(x)?, cache.recurrent());
        let length = x.dim(0);
        cache.advance(length as usize);
        let last = x.slice(0, length - 1, length)?;
        // A slice would keep all rows alive.
        let last = if length == 1 { last } else { last.contiguous()? };
        let earlier = match cache.conv.replace(last) {
            Some(earlier) => earlier,
            None => Tensor::zeros(&[1, x.dim(1)], x.dtype())?,
        };
        match length {
            1 => Ok(earlier),
            _ => concatenate(&[&earlier, &x.slice(0, 0, length - 1)?], 0),
        }
    })
}

/// A vector for each row, `[1, width]`, of any shape in the file.
fn row(weights: &mut Weights<'_>, name: &str, width: i32) -> error::Result<Tensor> {
    let shape = weights
        .shape(name)
        .filter(|shape| shape.iter().product::<i32>() == width);
    let shape = shape.map_or_else(|| vec![width], <[i32]>::to_vec);
    Ok(weights.take(name, &shape)?.reshape(&[1, width])?)
}

impl SmallProduct {
    fn load(weights: &mut Weights<'_>, path: &str, hidden: i32, rank: u32) -> error::Result<Self> {
        Ok(Self {
            into: Linear::load(weights, &format!("{path}.lora.0"), hidden, rank as i32)?,
            back: Linear::load(weights, &format!("{path}.lora.2"), rank as i32, hidden)?,
        })
    }

    /// The same with a function of the few numbers.
    fn forward(&self, x: &Tensor, between: impl FnOnce(Tensor) -> Result<Tensor>) -> Result<Tensor> {
        self.back.forward(&between(self.into.forward(x)?)?)
    }
}

impl TimeMix {
    fn load(config: &TimeMixConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (heads, width, hidden) = (
            config.heads as i32,
            config.head_dim as i32,
            loading.config.hidden_size as i32,
        );
        let weights = &mut *loading.weights;
        let at = |name: &str| format!("{path}.{name}");
        let shares = ["x_r", "x_w", "x_k", "x_v", "x_a", "x_g"]
            .into_iter()
            .map(|name| row(weights, &at(name), hidden))
            .collect::<error::Result<_>>()?;
        let mut by_head = |name: &str| -> error::Result<Tensor> {
            let numbers = row(weights, &at(name), hidden)?.astype(Dtype::Float32)?;
            Ok(numbers.reshape(&[heads, width])?)
        };
        let (k_k, k_a, r_k) = (by_head("k_k")?, by_head("k_a")?, by_head("r_k")?);
        let norm = [by_head("g_norm.weight")?, by_head("g_norm.bias")?];
        let ranks = config.ranks;
        let mut small = |name: &str, rank: u32| SmallProduct::load(weights, &at(name), hidden, rank);
        let first_values = match config.first {
            true => None,
            false => Some(small("v_lora", ranks.values)?),
        };
        let (decays, rates, gate) = (
            small("w_lora", ranks.decays)?,
            small("a_lora", ranks.rates)?,
            small("g_lora", ranks.gate)?,
        );
        let mut square = |name: &str| Linear::load(weights, &at(name), hidden, hidden);
        let scalar = |number: f32| Tensor::scalar(number, Dtype::Float32);
        let mix = Self {
            heads,
            width,
            shares,
            r_proj: square("r_proj")?,
            k_proj: square("k_proj")?,
            v_proj: square("v_proj")?,
            o_proj: square("o_proj")?,
            decays,
            rates,
            first_values,
            gate,
            k_k,
            k_a,
            r_k,
            norm,
            plain: [
                scalar(1.0)?.broadcast(&[width])?.contiguous()?,
                Tensor::zeros(&[width], Dtype::Float32)?,
            ],
            strongest: scalar(STRONGEST)?,
            one: scalar(1.0)?,
            least: scalar(LEAST_SQUARE)?,
            rule: Wkv::new(),
        };
        loading.weights.materialize(mix.tensors())?;
        Ok(mix)
    }

    fn forward(&self, x: &Tensor, difference: &Tensor, step: &Step<'_>, caches: &mut [&mut Cache]) -> Result<Tensor> {
        let (rows, hidden) = (x.dim(0), x.dim(1));
        let mixed = |index: usize| x.add(&difference.mul(&self.shares[index])?);
        let wide = |x: &Tensor| x.astype(Dtype::Float32)?.reshape(&[rows, self.heads, self.width]);
        let of_values = mixed(3)?;
        let queries = wide(&self.r_proj.forward(&mixed(0)?)?)?;
        let keys = wide(&self.k_proj.forward(&mixed(2)?)?)?;
        let values = wide(&self.v_proj.forward(&of_values)?)?;
        let decays = self.decays.forward(&mixed(1)?, |x| x.tanh())?;
        let log_decays = wide(&decays)?.sigmoid()?.mul(&self.strongest)?;
        let rates = wide(&self.rates.forward(&mixed(4)?, Ok)?)?.sigmoid()?;
        let gate = self.gate.forward(&mixed(5)?, |x| x.sigmoid())?;
        let values = match &self.first_values {
            None => {
                step.first_values.replace(Some(values.clone()));
                values
            }
            Some(shares) => {
                let shares = wide(&shares.forward(&of_values, Ok)?)?.sigmoid()?;
                match &*step.first_values.borrow() {
                    Some(first) => values.add(&first.sub(&values)?.mul(&shares)?)?,
                    None => values,
                }
            }
        };
        let unit = keys.mul(&self.k_k)?;
        let length = unit.square()?.sum(2, true)?.maximum(&self.least)?.rsqrt()?;
        let unit = unit.mul(&length)?;
        let keys = keys.mul(&rates.sub(&self.one)?.mul(&self.k_a)?.add(&self.one)?)?;
        let passing = queries.mul(&keys)?.mul(&self.r_k)?.sum(2, true)?.mul(&values)?;
        let tokens = WkvInputs {
            log_decays,
            asked: unit.negative()?,
            added: unit.mul(&rates)?,
            queries,
            keys,
            values,
        };
        let found = each_sequence(caches, |rows, cache| {
            let tokens = tokens.map(|x| rows.of(x))?;
            self.rule.forward(&tokens, &mut cache.recurrent().state)
        })?;
        let ([weight, bias], [ones, zeros]) = (&self.norm, &self.plain);
        let normed = found.fast_layer_norm(ones, zeros, HEAD_EPS)?.mul(weight)?.add(bias)?;
        let found = normed.add(&passing)?.reshape(&[rows, hidden])?.astype(x.dtype())?;
        self.o_proj.forward(&found.mul(&gate)?)
    }
}

impl ChannelMix {
    fn load(config: &ChannelMixConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (hidden, width) = (loading.config.hidden_size as i32, config.width as i32);
        let weights = &mut *loading.weights;
        let mix = Self {
            share: row(weights, &format!("{path}.x_k"), hidden)?,
            activation: Pointwise::new(EncoderActivation::SquaredRelu, loading.dtype)?,
            key: Linear::load(weights, &format!("{path}.key"), hidden, width)?,
            value: Linear::load(weights, &format!("{path}.value"), width, hidden)?,
        };
        loading.weights.materialize(mix.tensors())?;
        Ok(mix)
    }

    fn forward(&self, x: &Tensor, difference: &Tensor) -> Result<Tensor> {
        let mixed = x.add(&difference.mul(&self.share)?)?;
        self.value.forward(&self.key.activated(&mixed, &self.activation)?)
    }
}
