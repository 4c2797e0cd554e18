//! Gemma 3n: several streams of which a layer computes one, predicting the others before and correcting them after
//! (AltUp), with a shortcut around its attention (Laurel) and networks that let only their greatest gates through.
//! Reference: transformers' `modeling_gemma3n.py`.

use checkpoint::config::gemma4::AltUpConfig;
use mlx::ops::stack;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::attention::{Attention, LayerPass};
use super::inputs::InputGate;
use super::load_context::LoadContext;
use crate::error;
use crate::layers::{Gelu, Linear, ResidualStream, RmsNorm};
use crate::weights::Weights;

/// The least mean square that a stream is divided by the root of.
const LEAST: f32 = 1e-5;

/// The layers, with the way from one stream to several before them and back after them.
#[derive(Parameters)]
pub(super) struct AltUpLayers {
    /// The projections that make the other streams from the first.
    projections: Vec<Linear>,
    /// The projections of the other streams at the end.
    unembed_projections: Vec<Linear>,
    layers: Vec<Layer>,
}

impl AltUpLayers {
    /// Loads the projections; the layers are loaded one by one.
    pub(super) fn load(altup: &AltUpConfig, hidden: i32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let mut projections = |name: &str| {
            let others = 0..altup.streams as usize - 1;
            let projections = others.map(|index| Linear::load(weights, &format!("{name}.{index}"), hidden, hidden));
            projections.collect::<error::Result<Vec<_>>>()
        };
        Ok(Self {
            projections: projections("altup_projections")?,
            unembed_projections: projections("altup_unembed_projections")?,
            layers: Vec::new(),
        })
    }

    pub(super) fn load_layer(&mut self, altup: &AltUpConfig, loading: &mut LoadContext<'_, '_>) -> error::Result<()> {
        self.layers.push(Layer::load(altup, loading)?);
        Ok(())
    }

    /// The streams `[rows, streams, hidden]` that begin with `h` `[rows, hidden]`.
    pub(super) fn begin(&self, h: &Tensor) -> Result<Tensor> {
        let others = self.projections.iter().map(|other| like(h, &other.forward(h)?));
        let all: Vec<Tensor> = std::iter::once(Ok(h.clone())).chain(others).collect::<Result<_>>()?;
        stack(&all.iter().collect::<Vec<_>>(), 1)
    }

    /// One stream `[rows, hidden]` of all.
    pub(super) fn end(&self, streams: &Tensor) -> Result<Tensor> {
        let stream = |index: usize| one_of(streams, index as i32);
        let first = stream(0)?;
        let mut sum = first.clone();
        for (index, projection) in self.unembed_projections.iter().enumerate() {
            sum = sum.add(&like(&first, &projection.forward(&stream(index + 1)?)?)?)?;
        }
        sum.mul(&Tensor::scalar(1.0 / streams.dim(1) as f32, sum.dtype())?)
    }

    pub(super) fn layer(&self, index: usize) -> &Layer {
        &self.layers[index]
    }
}

/// Stream `index` `[rows, hidden]` of all.
fn one_of(streams: &Tensor, index: i32) -> Result<Tensor> {
    streams
        .slice(1, index, index + 1)?
        .reshape(&[streams.dim(0), streams.dim(2)])
}

/// The mean square of each row in 32 bit floats, `[rows, 1]`.
fn mean_square(x: &Tensor) -> Result<Tensor> {
    let share = Tensor::scalar(1.0 / x.dim(-1) as f32, Dtype::Float32)?;
    x.astype(Dtype::Float32)?.square()?.sum(-1, true)?.mul(&share)
}

/// `x` brought to the magnitude of `pattern`, row by row.
fn like(pattern: &Tensor, x: &Tensor) -> Result<Tensor> {
    let wanted = mean_square(pattern)?;
    // The root of the one over the root of the other.
    let floor = Tensor::scalar(f32::MIN_POSITIVE, Dtype::Float32)?;
    let root = wanted.mul(&wanted.maximum(&floor)?.rsqrt()?)?;
    let least = Tensor::scalar(LEAST, Dtype::Float32)?;
    let found = mean_square(x)?.maximum(&least)?.rsqrt()?;
    x.mul(&root.mul(&found)?.astype(x.dtype())?)
}

#[derive(Parameters)]
pub(super) struct Layer {
    active: i32,
    input_layernorm: RmsNorm,
    self_attn: Attention,
    laurel: Laurel,
    post_attention_layernorm: RmsNorm,
    pre_feedforward_layernorm: RmsNorm,
    mlp: Mlp,
    post_feedforward_layernorm: RmsNorm,
    altup: AltUp,
    /// `[hidden]`.
    correct_output_scale: Option<Tensor>,
    input_gate: InputGate,
    /// The root of a half.
    half: Tensor,
    /// 0 for the first stream and 1 for the others, `[1, streams, 1]`.
    others: Tensor,
}

impl Layer {
    fn load(altup: &AltUpConfig, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let dtype = loading.weights.dtype(&loading.path("input_layernorm.weight"));
        let scale = loading.path("altup.correct_output_scale");
        let take = || loading.weights.take(&scale, &[loading.config.hidden_size as i32]);
        let scale = altup.scaled.then(take).transpose()?;
        loading.weights.materialize(&scale)?;
        let width = loading.config.hidden_size_per_layer_input.unwrap_or(0);
        let mut others = vec![1.0; altup.streams as usize];
        others[0] = 0.0;
        Ok(Self {
            active: altup.active as i32,
            input_layernorm: loading.norm("input_layernorm")?,
            self_attn: Attention::load(loading)?,
            laurel: Laurel::load(altup, loading)?,
            post_attention_layernorm: loading.norm("post_attention_layernorm")?,
            pre_feedforward_layernorm: loading.norm("pre_feedforward_layernorm")?,
            mlp: Mlp::load(altup, loading)?,
            post_feedforward_layernorm: loading.norm("post_feedforward_layernorm")?,
            altup: AltUp::load(altup, loading)?,
            correct_output_scale: scale,
            input_gate: InputGate::load(width, loading)?,
            half: Tensor::scalar(0.5f32.sqrt(), dtype)?,
            others: Tensor::from_f32(&others, &[1, others.len() as i32, 1]).astype(dtype)?,
        })
    }

    /// Takes the streams `[rows, streams, hidden]` through this layer, which has inputs `[rows, width]` of its own;
    /// keys and values as [`Attention::forward`] has them.
    pub(super) fn forward(&self, streams: &Tensor, input: &Tensor, pass: &mut LayerPass<'_>) -> Result<Tensor> {
        let predicted = self.altup.predict(streams, self.active)?;
        let active = one_of(&predicted, self.active)?;
        let stream = &mut ResidualStream::new(active.clone());
        let attended = self.self_attn.forward(stream, &self.input_layernorm, pass)?;
        let h = active.add(&self.post_attention_layernorm.forward(&attended)?)?;
        let shortcut = self.laurel.forward(&self.input_layernorm.forward(&active)?)?;
        let h = h.add(&shortcut)?.mul(&self.half)?;
        let fed = self.mlp.forward(&self.pre_feedforward_layernorm.forward(&h)?)?;
        let computed = h.add(&self.post_feedforward_layernorm.forward(&fed)?)?;
        let corrected = self.altup.correct(&predicted, &active, &computed)?;
        let mut first = one_of(&corrected, self.active)?;
        if let Some(scale) = &self.correct_output_scale {
            first = first.mul(scale)?;
        }
        let projected = self.input_gate.forward(&mut ResidualStream::new(first), input)?;
        let projected = self.input_gate.output_norm().forward(&projected)?;
        let to_others = projected.reshape(&[projected.dim(0), 1, projected.dim(1)])?;
        corrected.add(&to_others.mul(&self.others)?)
    }
}

/// `x + norm(right(left(x)))`.
#[derive(Parameters)]
struct Laurel {
    linear_left: Linear,
    linear_right: Linear,
    post_laurel_norm: RmsNorm,
}

impl Laurel {
    fn load(altup: &AltUpConfig, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (hidden, rank) = (loading.hidden(), altup.laurel_rank as i32);
        Ok(Self {
            linear_left: loading.linear("laurel.linear_left", hidden, rank)?,
            linear_right: loading.linear("laurel.linear_right", rank, hidden)?,
            post_laurel_norm: loading.norm("laurel.post_laurel_norm")?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let narrow = self.linear_right.forward(&self.linear_left.forward(x)?)?;
        x.add(&self.post_laurel_norm.forward(&narrow)?)
    }
}

/// A gated network, of whose gates only those far above the mean pass in some layers.
#[derive(Parameters)]
struct Mlp {
    /// gate_proj and up_proj side by side.
    gate_up_proj: Linear,
    gelu: Gelu,
    down_proj: Linear,
    /// How many standard deviations above the mean a gate has to be.
    cutoff: Option<Tensor>,
}

impl Mlp {
    fn load(altup: &AltUpConfig, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        // The quantile of a normal distribution.
        let quantile = |part: f32| {
            let root = Tensor::scalar(std::f32::consts::SQRT_2, Dtype::Float32)?;
            Tensor::scalar(2.0 * part - 1.0, Dtype::Float32)?.erfinv()?.mul(&root)
        };
        let part = altup.sparsity[loading.layer];
        let cutoff = (part > 0.0).then(|| quantile(part)).transpose()?;
        loading.weights.materialize(&cutoff)?;
        let (gate_up_proj, down_proj) = loading.network()?;
        Ok(Self {
            gate_up_proj,
            gelu: loading.gelu.clone(),
            down_proj,
            cutoff,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let both = self.gate_up_proj.forward(x)?;
        let width = both.dim(-1) / 2;
        let (mut gate, up) = (both.slice(1, 0, width)?, both.slice(1, width, 2 * width)?);
        if let Some(cutoff) = &self.cutoff {
            let share = Tensor::scalar(1.0 / width as f32, Dtype::Float32)?;
            let wide = gate.astype(Dtype::Float32)?;
            let mean = wide.sum(-1, true)?.mul(&share)?;
            let apart = wide.sub(&mean)?;
            let variance = apart.square()?.sum(-1, true)?.mul(&share)?;
            let floor = Tensor::scalar(f32::MIN_POSITIVE, Dtype::Float32)?;
            let deviation = variance.mul(&variance.maximum(&floor)?.rsqrt()?)?;
            let zero = Tensor::scalar(0.0, Dtype::Float32)?;
            let passing = apart.sub(&deviation.mul(cutoff)?)?.maximum(&zero)?;
            gate = passing.astype(gate.dtype())?;
        }
        self.down_proj.forward(&self.gelu.times(&gate, &up)?)
    }
}

/// How streams predict and correct each other. Products of this few numbers are computed in 32 bits.
#[derive(Parameters)]
struct AltUp {
    /// The norm before it, over the width.
    norm: RmsNorm,
    modality_router: Linear,
    /// To `streams · streams`.
    prediction_coefs: Linear,
    /// To `streams`.
    correction_coefs: Linear,
}

impl AltUp {
    fn load(altup: &AltUpConfig, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (hidden, streams) = (loading.hidden(), altup.streams as i32);
        let factors = loading.path("altup.router_norm.weight");
        let factors = loading.weights.take(&factors, &[hidden])?;
        let factors = factors.mul(&Tensor::scalar(1.0 / hidden as f32, factors.dtype())?)?;
        let norm = RmsNorm::new(factors, loading.config.rms_norm_eps);
        loading.weights.materialize(norm.tensors())?;
        Ok(Self {
            norm,
            modality_router: loading.linear("altup.modality_router", hidden, streams)?,
            prediction_coefs: loading.linear("altup.prediction_coefs", streams, streams * streams)?,
            correction_coefs: loading.linear("altup.correction_coefs", streams, streams)?,
        })
    }

    /// `[rows, streams]` in the type of `x` `[rows, hidden]`.
    fn modalities(&self, x: &Tensor) -> Result<Tensor> {
        let routed = self.modality_router.forward(&self.norm.forward(x)?)?;
        routed.astype(Dtype::Float32)?.tanh()?.astype(x.dtype())
    }

    /// Each stream and what all make of it, `[rows, streams, hidden]`.
    fn predict(&self, streams: &Tensor, active: i32) -> Result<Tensor> {
        let count = streams.dim(1);
        let modalities = self.modalities(&one_of(streams, active)?)?;
        let shares = self.prediction_coefs.forward(&modalities)?;
        let shares = shares
            .reshape(&[streams.dim(0), count, count])?
            .astype(Dtype::Float32)?;
        let wide = streams.astype(Dtype::Float32)?;
        shares.matmul(&wide)?.add(&wide)?.astype(streams.dtype())
    }

    /// The predicted streams, moved by what the computed one differs from what was predicted of it.
    fn correct(&self, predicted: &Tensor, active: &Tensor, computed: &Tensor) -> Result<Tensor> {
        let (rows, count, hidden) = (predicted.dim(0), predicted.dim(1), predicted.dim(2));
        let shares = self.correction_coefs.forward(&self.modalities(computed)?)?;
        let shares = shares
            .astype(Dtype::Float32)?
            .add(&Tensor::scalar(1.0, Dtype::Float32)?)?;
        let shares = shares.reshape(&[rows, count, 1])?;
        let moved = computed.sub(active)?.reshape(&[rows, 1, hidden])?;
        let moved = moved.astype(Dtype::Float32)?.mul(&shares)?;
        moved.add(&predicted.astype(Dtype::Float32)?)?.astype(predicted.dtype())
    }
}
