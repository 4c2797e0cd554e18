//! The recurrent block of RecurrentGemma: `out(gelu(y(x)) · unit(conv(x(x))))`, with a unit that carries one number per
//! channel from token to token.

use checkpoint::config::decoder::{EncoderActivation, RgLruConfig};
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::Cache;
use crate::error;
use crate::layers::{each_sequence, linear_recurrence, Linear, Pointwise, ShortConv};
use crate::models::decoder::load_context::LoadContext;

/// How fast a unit forgets at most (`c` in the paper).
const SPEED: f32 = 8.0;

/// The smallest square of an input's factor, whose root has a finite inverse.
const SMALLEST: f32 = 1e-30;

/// From the convolution on everything is 32 bit: the state sums up a complete text.
#[derive(Parameters)]
pub struct RgLru {
    width: i32,
    heads: i32,
    /// linear_x and linear_y side by side.
    in_proj: Linear,
    gelu: Pointwise,
    conv1d: ShortConv,
    /// The gates of the inputs and those of the decays, `[heads, head width, 2 · head width]`.
    gates: Tensor,
    /// `[heads, 1, 2 · head width]`.
    gate_biases: Tensor,
    /// The logarithms of the strongest decays, `[width]`.
    log_decays: Tensor,
    one: Tensor,
    smallest: Tensor,
    out_proj: Linear,
}

impl RgLru {
    /// Loads what stands below `path`: `linear_x`, `linear_y`, `conv_1d`, `rg_lru` and `linear_out`.
    pub fn load(config: &RgLruConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (width, heads) = (config.width as i32, config.heads as i32);
        let (hidden, head) = (loading.config.hidden_size as i32, width / heads);
        let weights = &mut *loading.weights;
        let at = |name: &str| format!("{path}.{name}");
        for part in ["linear_x", "linear_y", "conv_1d", "linear_out"] {
            weights.require(&at(&format!("{part}.bias")))?;
        }
        let wide = Dtype::Float32;
        let in_proj = Linear::load_joined(weights, &[(at("linear_x"), width), (at("linear_y"), width)], hidden)?;
        let conv1d = ShortConv::load(weights, &at("conv_1d"), width, config.kernel as i32, Some(wide))?;
        let mut pair = |end: &str, shape: &[i32]| -> error::Result<[Tensor; 2]> {
            let mut of = |gate: &str| -> error::Result<Tensor> {
                let gate = weights.take(&at(&format!("rg_lru.{gate}_gate_{end}")), shape)?;
                Ok(gate.astype(wide)?)
            };
            Ok([of("input")?, of("recurrent")?])
        };
        let [inputs, decays] = pair("weight", &[heads, head, head])?;
        let [input_biases, decay_biases] = pair("bias", &[heads, head])?;
        let speeds = weights.take(&at("rg_lru.recurrent_param"), &[width])?.to_f32()?;
        // The logarithm of 1 + e to the parameter, without overflow.
        let softplus = |x: &f32| x.max(0.0) + (-x.abs()).exp().ln_1p();
        let log_decays: Vec<f32> = speeds.iter().map(|speed| -SPEED * softplus(speed)).collect();
        let unit = Self {
            width,
            heads,
            in_proj,
            gelu: Pointwise::new(EncoderActivation::GeluTanh, wide)?,
            conv1d,
            gates: concatenate(&[&inputs, &decays], 2)?,
            gate_biases: concatenate(&[&input_biases, &decay_biases], 1)?.reshape(&[heads, 1, 2 * head])?,
            log_decays: Tensor::from_f32(&log_decays, &[width]),
            one: Tensor::scalar(1.0, wide)?,
            smallest: Tensor::scalar(SMALLEST, wide)?,
            out_proj: Linear::load(weights, &at("linear_out"), width, hidden)?,
        };
        weights.materialize(unit.tensors())?;
        Ok(unit)
    }

    /// `[rows, hidden]` to the same.
    pub fn forward(&self, x: &Tensor, caches: &mut [&mut Cache]) -> Result<Tensor> {
        let (length, head) = (x.dim(0), self.width / self.heads);
        let all = self.in_proj.forward(x)?;
        let mixing = all.slice(1, 0, self.width)?;
        let filtered = each_sequence(caches, |rows, cache| {
            self.conv1d.forward(&rows.of(&mixing)?, &mut cache.recurrent().conv)
        })?;
        let by_head = filtered.reshape(&[length, self.heads, head])?.swapaxes(0, 1)?;
        let gates = by_head.matmul(&self.gates)?.add(&self.gate_biases)?.sigmoid()?;
        let gates = gates.swapaxes(0, 1)?;
        let gate = |start: i32| gates.slice(2, start, start + head)?.reshape(&[length, self.width]);
        let inputs = filtered.mul(&gate(0)?)?;
        let decays = gate(head)?.mul(&self.log_decays)?.exp()?;
        // The input is scaled so that the state keeps its size; the first token of a text is not.
        let left = self.one.sub(&decays.square()?)?.maximum(&self.smallest)?;
        let scaled = inputs.mul(&left.mul(&left.rsqrt()?)?)?;
        let outputs = each_sequence(caches, |rows, cache| {
            let (decays, scaled) = (rows.of(&decays)?, rows.of(&scaled)?);
            let (length, cache) = (scaled.dim(0), cache.recurrent());
            cache.advance(length as usize);
            let scaled = match (&cache.state, length) {
                (Some(_), _) => scaled,
                (None, 1) => rows.of(&inputs)?,
                (None, _) => {
                    let first = rows.of(&inputs)?.slice(0, 0, 1)?;
                    concatenate(&[&first, &scaled.slice(0, 1, length)?], 0)?
                }
            };
            linear_recurrence(&decays, &scaled, &mut cache.state)
        })?;
        let beside = all.slice(1, self.width, 2 * self.width)?.astype(Dtype::Float32)?;
        let gated = self.gelu.forward(&beside)?.mul(&outputs)?;
        self.out_proj.forward(&gated.astype(x.dtype())?)
    }
}
