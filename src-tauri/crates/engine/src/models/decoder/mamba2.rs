//! Mamba 2: a short convolution makes values and places of the last tokens, and a state per head that fades from token
//! to token takes the place of a cache of keys.

use checkpoint::config::decoder::{Mamba2Config, ScanNorm};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::Cache;
use crate::error;
use crate::layers::{each_sequence, Linear, Projection, RmsNorm, ShortConv, StateSpace, StateSpaceInputs};
use crate::models::decoder::load_context::LoadContext;
use crate::weights::Weights;

/// From the convolution to the norm everything is 32 bit: the state sums up a complete text.
#[derive(Parameters)]
pub struct Mamba2 {
    heads: i32,
    head_width: i32,
    groups: i32,
    state_width: i32,
    /// The joined projection of the gate, of what the convolution reads, and of the steps.
    in_proj: Linear,
    /// The projections of places and steps, if the convolved values make them.
    inputs: Option<ScanInputs>,
    conv1d: ShortConv,
    /// Added to the steps, `[heads]`.
    dt_bias: Tensor,
    /// The smallest and the largest step, where there are such.
    step_limit: Option<(Tensor, Tensor)>,
    /// How fast heads forget: minus e to `A_log`, `[heads]`.
    minus_speeds: Tensor,
    zero: Tensor,
    scan: StateSpace,
    /// How much of a value passes by the state, `D`, `[heads, 1]`.
    passing: Tensor,
    norm: Option<RmsNorm>,
    #[parameters(skip)]
    norm_kind: ScanNorm,
    out_proj: Linear,
}

/// Places and steps that are made of convolved values.
#[derive(Parameters)]
struct ScanInputs {
    bcdt_proj: Linear,
    /// Norms of what is written where, `B`, of what is read where, `C`, and of the steps.
    norms: [RmsNorm; 3],
    dt_proj: Linear,
}

impl Mamba2 {
    /// Loads what stands below `path`: `in_proj`, `conv1d`, `A_log`, `D`, `dt_bias`, `norm` and `out_proj`.
    pub fn load(config: &Mamba2Config, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (heads, head_width) = (config.heads as i32, config.head_width as i32);
        let (inner, channels) = (config.inner() as i32, config.channels() as i32);
        let hidden = loading.config.hidden_size as i32;
        let eps = loading.config.norm.eps;
        let weights = &mut *loading.weights;
        let at = |name: &str| format!("{path}.{name}");
        let required = [
            ("in_proj", config.bias),
            ("out_proj", config.bias),
            ("conv1d", config.conv_bias),
        ];
        for (part, _) in required.into_iter().filter(|(_, required)| *required) {
            weights.require(&at(&format!("{part}.bias")))?;
        }
        let wide = Some(Dtype::Float32);
        let (in_proj, inputs) = match config.step_rank {
            None => (
                Linear::load(weights, &at("in_proj"), hidden, inner + channels + heads)?,
                None,
            ),
            Some(rank) => {
                // The gate of a head lies beside what its convolution reads.
                let parts = [0..head_width, head_width..2 * head_width];
                let rows = Projection::new(at("in_proj"), 2 * inner).deinterleaved(&parts);
                let in_proj = Linear::load_rows(weights, &[rows], hidden)?;
                (
                    in_proj,
                    Some(ScanInputs::load(config, rank as i32, path, weights, eps)?),
                )
            }
        };
        let conv1d = ShortConv::load(weights, &at("conv1d"), channels, config.kernel as i32, wide)?;
        let mut per_head = |name: &str| Ok::<_, error::Error>(weights.take(&at(name), &[heads])?.to_f32()?);
        let [a_log, dt_bias, passing] = [per_head("A_log")?, per_head("dt_bias")?, per_head("D")?];
        // Limited so that no decay becomes infinite times zero.
        let minus_speeds: Vec<f32> = a_log.iter().map(|a| -a.exp().min(1e30)).collect();
        let norm = config.norm.groups().map(|groups| {
            let factors = weights.take(&at("norm.weight"), &[inner])?.astype(Dtype::Float32)?;
            let factors = match groups as i32 {
                1 => factors,
                groups => factors.reshape(&[groups, inner / groups])?,
            };
            Ok::<_, error::Error>(RmsNorm::new(factors, eps))
        });
        let scalar = |number: f32| Tensor::scalar(number, Dtype::Float32);
        let (least, most) = config.step_limit;
        let step_limit = match (least, most) {
            (0.0, f32::INFINITY) => None,
            _ => Some((scalar(least)?, scalar(most)?)),
        };
        let mamba = Self {
            heads,
            head_width,
            groups: config.groups as i32,
            state_width: config.state_width as i32,
            in_proj,
            inputs,
            conv1d,
            dt_bias: Tensor::from_f32(&dt_bias, &[heads]),
            step_limit,
            minus_speeds: Tensor::from_f32(&minus_speeds, &[heads]),
            zero: scalar(0.0)?,
            scan: StateSpace::new(),
            passing: Tensor::from_f32(&passing, &[heads, 1]),
            norm: norm.transpose()?,
            norm_kind: config.norm,
            out_proj: Linear::load(weights, &at("out_proj"), inner, hidden)?,
        };
        weights.materialize(mamba.tensors())?;
        Ok(mamba)
    }

    /// `[rows, hidden]` to the same.
    pub fn forward(&self, x: &Tensor, caches: &mut [&mut Cache]) -> Result<Tensor> {
        let length = x.dim(0);
        let (inner, places) = (self.heads * self.head_width, self.groups * self.state_width);
        // The end of each part of the projection, and of what the convolution makes.
        let mixed = 2 * inner + self.inputs.as_ref().map_or(2 * places, |_| 0);
        let all = self.in_proj.forward(x)?;

        let mixing = all.slice(1, inner, mixed)?;
        let filtered = each_sequence(caches, |rows, cache| {
            self.conv1d.forward(&rows.of(&mixing)?, &mut cache.recurrent().conv)
        })?;
        let filtered = filtered.sigmoid()?.mul(&filtered)?;
        let (written, read, steps) = match &self.inputs {
            Some(inputs) => inputs.of(&filtered.astype(x.dtype())?, self.state_width)?,
            None => {
                let written = inner + places;
                (
                    filtered.slice(1, inner, written)?,
                    filtered.slice(1, written, written + places)?,
                    all.slice(1, mixed, mixed + self.heads)?,
                )
            }
        };
        // The logarithm of 1 + e to the input.
        let steps = steps
            .astype(Dtype::Float32)?
            .add(&self.dt_bias)?
            .logaddexp(&self.zero)?;
        let steps = match &self.step_limit {
            Some((least, most)) => steps.clip(least, most)?,
            None => steps,
        };
        let by_group = |part: &Tensor| part.reshape(&[length, self.groups, self.state_width]);
        let tokens = StateSpaceInputs {
            values: match &self.inputs {
                Some(_) => filtered.reshape(&[length, self.heads, self.head_width])?,
                None => filtered
                    .slice(1, 0, inner)?
                    .reshape(&[length, self.heads, self.head_width])?,
            },
            places: by_group(&written)?,
            queries: by_group(&read)?,
            log_decays: steps.mul(&self.minus_speeds)?,
            steps,
        };
        let outputs = each_sequence(caches, |rows, cache| {
            let tokens = StateSpaceInputs {
                values: rows.of(&tokens.values)?,
                places: rows.of(&tokens.places)?,
                queries: rows.of(&tokens.queries)?,
                steps: rows.of(&tokens.steps)?,
                log_decays: rows.of(&tokens.log_decays)?,
            };
            let cache = cache.recurrent();
            cache.advance(tokens.values.dim(0) as usize);
            self.scan.forward(&tokens, &mut cache.state)
        })?;
        let outputs = outputs.add(&tokens.values.mul(&self.passing)?)?;
        let gate = all.slice(1, 0, inner)?.astype(Dtype::Float32)?;
        let gated = self.gated(&outputs.reshape(&[length, inner])?, &gate)?;
        self.out_proj.forward(&gated.astype(x.dtype())?)
    }

    /// `outputs` `[rows, inner]` through their gate and norm, in the order that the family has.
    fn gated(&self, outputs: &Tensor, gate: &Tensor) -> Result<Tensor> {
        let gate = gate.sigmoid()?.mul(gate)?;
        let normed = |x: &Tensor| match &self.norm {
            Some(norm) => match norm.head_weights() {
                Some((factors, _)) => {
                    let grouped = x.reshape(&[-1, factors.dim(0), factors.dim(1)])?;
                    norm.forward(&grouped)?.reshape(x.shape())
                }
                None => norm.forward(x),
            },
            None => Ok(x.clone()),
        };
        match self.norm_kind {
            ScanNorm::BeforeGate { .. } => normed(outputs)?.mul(&gate),
            ScanNorm::AfterGate { .. } | ScanNorm::Gate => normed(&outputs.mul(&gate)?),
        }
    }
}

impl ScanInputs {
    fn load(config: &Mamba2Config, rank: i32, path: &str, weights: &mut Weights<'_>, eps: f32) -> error::Result<Self> {
        let (inner, width) = (config.inner() as i32, config.state_width as i32);
        let at = |name: &str| format!("{path}.{name}");
        let mut norm = |name: &str, width: i32| -> error::Result<RmsNorm> {
            Ok(RmsNorm::new(weights.take(&at(name), &[width])?, eps))
        };
        let norms = [
            norm("B_norm_weight", width)?,
            norm("C_norm_weight", width)?,
            norm("dt_norm_weight", rank)?,
        ];
        Ok(Self {
            bcdt_proj: Linear::load(weights, &at("bcdt_proj"), inner, rank + 2 * width)?,
            norms,
            dt_proj: Linear::load(weights, &at("dt_proj"), rank, config.heads as i32)?,
        })
    }

    /// Places that are written and read, `[rows, width]`, in 32 bits, and steps `[rows, heads]`.
    fn of(&self, values: &Tensor, width: i32) -> Result<(Tensor, Tensor, Tensor)> {
        let all = self.bcdt_proj.forward(values)?;
        let normed = |index: usize, from: i32, to: i32| self.norms[index].forward(&all.slice(1, from, to)?);
        Ok((
            normed(0, 0, width)?.astype(Dtype::Float32)?,
            normed(1, width, 2 * width)?.astype(Dtype::Float32)?,
            self.dt_proj.forward(&normed(2, 2 * width, all.dim(1))?)?,
        ))
    }
}
