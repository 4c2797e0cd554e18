//! Lightning attention (Ling 2.5): linear attention whose heads carry a matrix that fades by a fixed share per token.

use checkpoint::config::decoder::LightningConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::Cache;
use crate::error;
use crate::layers::{each_sequence, norm_weight, Linear, Projection, RmsNorm, StateSpace, StateSpaceInputs};
use crate::models::decoder::by_head::by_head;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::step::Step;

/// The state of the heads, and what is added to it, is 32 bit: it sums up a complete text.
#[derive(Parameters)]
pub struct Lightning {
    heads: i32,
    width: i32,
    rope: usize,
    /// The projections of queries, keys and values, and of the gate, side by side.
    in_proj: Linear,
    /// Norms of queries and of keys.
    norms: Option<[RmsNorm; 2]>,
    /// Factor of the queries.
    scale: Tensor,
    /// One, the step of every token.
    one: Tensor,
    /// Logarithms of the decays, `[1, heads]`.
    log_decays: Tensor,
    scan: StateSpace,
    /// Factors `[groups, width of a group]`.
    norm: RmsNorm,
    o_proj: Linear,
}

impl Lightning {
    /// Loads what stands below `path`: `qkv_proj`, `g_proj`, `q_norm`, `k_norm`, `g_norm` and `o_proj`.
    pub fn load(config: &LightningConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (heads, width, groups) = (config.heads as i32, config.width as i32, config.norm_groups as i32);
        let (hidden, inner) = (loading.config.hidden_size as i32, heads * width);
        let (kind, weights) = (loading.config.norm, &mut *loading.weights);
        let at = |name: &str| format!("{path}.{name}");
        for (part, _) in [("qkv_proj", config.qkv_bias), ("o_proj", config.o_bias)]
            .iter()
            .filter(|part| part.1)
        {
            weights.require(&at(&format!("{part}.bias")))?;
        }
        let parts = [
            Projection::new(at("qkv_proj"), 3 * inner),
            Projection::new(at("g_proj"), inner),
        ];
        let mut norm = |name: &str| -> error::Result<RmsNorm> {
            Ok(RmsNorm::new(norm_weight(weights, &at(name), width, kind)?, kind.eps))
        };
        let norms = match config.qk_norm {
            true => Some([norm("q_norm")?, norm("k_norm")?]),
            false => None,
        };
        let factors = weights.take(&at("g_norm.weight"), &[inner])?.astype(Dtype::Float32)?;
        let scalar = |number: f32| Tensor::scalar(number, Dtype::Float32);
        let log_decays: Vec<f32> = config.slopes().into_iter().map(|slope| -slope).collect();
        let lightning = Self {
            heads,
            width,
            rope: config.rope,
            in_proj: Linear::load_rows(weights, &parts, hidden)?,
            norms,
            scale: scalar((width as f32).powf(-0.5))?,
            one: scalar(1.0)?,
            log_decays: Tensor::from_f32(&log_decays, &[1, heads]),
            scan: StateSpace::new(),
            norm: RmsNorm::new(factors.reshape(&[groups, inner / groups])?, kind.eps),
            o_proj: Linear::load(weights, &at("o_proj"), inner, hidden)?,
        };
        weights.materialize(lightning.tensors())?;
        Ok(lightning)
    }

    /// `[rows, hidden]` to the same.
    pub(super) fn forward(&self, x: &Tensor, step: &Step<'_>, caches: &mut [&mut Cache]) -> Result<Tensor> {
        let (rows, inner) = (x.dim(0), self.heads * self.width);
        let all = self.in_proj.forward(x)?;
        let part = |index: i32| all.slice(1, index * inner, (index + 1) * inner);
        let by_token = |x: &Tensor| x.reshape(&[rows, self.heads, self.width]);
        let turned = |index: i32| -> Result<Tensor> {
            let heads = match &self.norms {
                Some(norms) => norms[index as usize]
                    .forward(&by_token(&part(index)?)?)?
                    .reshape(&[rows, inner])?,
                None => part(index)?,
            };
            let heads = by_head(&heads, self.heads, step.sequences as i32)?;
            let heads = step.ropes[self.rope].forward(&heads, &step.rotations[self.rope])?;
            let heads = match heads.dim(2) {
                1 => heads,
                _ => heads.swapaxes(1, 2)?,
            };
            by_token(&heads)?.astype(Dtype::Float32)
        };
        let tokens = StateSpaceInputs {
            values: by_token(&part(2)?)?.astype(Dtype::Float32)?,
            places: turned(1)?,
            queries: turned(0)?.mul(&self.scale)?,
            steps: self.one.broadcast(&[rows, self.heads])?,
            log_decays: self.log_decays.broadcast(&[rows, self.heads])?,
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
        let grouped = match self.norm.head_weights() {
            Some((factors, _)) => outputs.reshape(&[rows, factors.dim(0), factors.dim(1)])?,
            None => outputs,
        };
        let normed = self.norm.forward(&grouped)?.reshape(&[rows, inner])?;
        let gate = part(3)?.astype(Dtype::Float32)?.sigmoid()?;
        self.o_proj.forward(&normed.mul(&gate)?.astype(x.dtype())?)
    }
}
