//! Attention of Gemma 4: normed queries, keys and values; full layers have wider heads, and in the large models no
//! values of their own. Layers at the end of the small models attend to the keys and values of an earlier layer.

use checkpoint::config::gemma4::{Attention as Kind, Gemma4Config};
use mlx::ops::{concatenate, Mask};
use mlx::parameters::{parameters, Parameters};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{Cache, KvView};
use crate::error;
use crate::layers::{
    join_sequences, scaled_dot_product_attention, sequence_rows, split_heads, Heads, Linear, ResidualStream, RmsNorm,
    Rope, Rotation,
};
use crate::weights::Weights;

/// Queries and keys are normed, so that nothing is left to scale.
const SCALE: f32 = 1.0;

/// Everything that all layers of a kind share in one step.
pub(super) struct Step<'a> {
    /// How many sequences there are. Several have one row each.
    pub(super) sequences: usize,
    pub(super) rope: &'a Rope,
    pub(super) rotation: Rotation,
    pub(super) mask: Mask,
}

impl Step<'_> {
    fn rotate(&self, heads: &Tensor) -> Result<Tensor> {
        self.rope.forward(heads, &self.rotation)
    }

    /// `[length, heads, width]` as `[1, heads, length, width]`, or the rows of several sequences as `[sequences, heads,
    /// 1, width]`.
    fn by_head(&self, x: &Tensor) -> Result<Tensor> {
        let &[length, heads, width] = x.shape() else {
            unreachable!("heads stand in the second of three axes")
        };
        if length as usize == self.sequences {
            return x.reshape(&[length, heads, 1, width]);
        }
        x.reshape(&[1, length, heads, width])?.swapaxes(1, 2)
    }
}

pub(super) struct Attention {
    heads: i32,
    key_heads: i32,
    width: i32,
    /// q_proj, and k_proj and v_proj if the layer has its own, side by side.
    qkv_proj: Linear,
    norms: HeadNorms,
    o_proj: Linear,
}

/// The norms of queries, keys and values, `[heads, width]`.
enum HeadNorms {
    /// One for all; values have no factors, so theirs are ones.
    Together(RmsNorm),
    /// Values are the keys before their factors: the norm without factors, and the factors of queries and keys.
    ValuesAreKeys(RmsNorm, Tensor),
}

impl Attention {
    pub(super) fn load(config: &Gemma4Config, layer: usize, weights: &mut Weights<'_>) -> error::Result<Self> {
        let path = |part: &str| format!("layers.{layer}.self_attn.{part}");
        let (heads, key_heads) = (config.num_attention_heads as i32, config.key_heads(layer) as i32);
        let width = config.head_width(layer) as i32;
        let values_are_keys = config.attention_k_eq_v && config.layers[layer] == Kind::Full;
        let own = config.donor(layer) == layer;
        let mut parts = vec![(path("q_proj"), heads * width)];
        let q_norm = weights.take(&path("q_norm.weight"), &[width])?;
        let ones = Tensor::from_f32(&vec![1.0; width as usize], &[width]).astype(q_norm.dtype())?;
        let mut factors = vec![(q_norm, heads)];
        if own {
            parts.push((path("k_proj"), key_heads * width));
            factors.push((weights.take(&path("k_norm.weight"), &[width])?, key_heads));
            if !values_are_keys {
                parts.push((path("v_proj"), key_heads * width));
                factors.push((ones.clone(), key_heads));
            }
        }
        let rows: Vec<Tensor> = factors
            .iter()
            .flat_map(|(factor, count)| (0..*count).map(move |_| factor.reshape(&[1, width])))
            .collect::<Result<_>>()?;
        let factors = concatenate(&rows.iter().collect::<Vec<_>>(), 0)?;
        let norms = if own && values_are_keys {
            HeadNorms::ValuesAreKeys(RmsNorm::new(ones, config.rms_norm_eps)?, factors)
        } else {
            HeadNorms::Together(RmsNorm::new(factors, config.rms_norm_eps)?)
        };
        weights.materialize(norms.tensors())?;
        Ok(Self {
            heads,
            key_heads,
            width,
            qkv_proj: Linear::load_joined(weights, &parts, config.hidden_size as i32)?,
            norms,
            o_proj: Linear::load(weights, &path("o_proj"), heads * width, config.hidden_size as i32)?,
        })
    }

    /// The attention's output for the normed stream, `[rows, hidden]`. Keys and values of each sequence come from the
    /// layer's own caches, or, if it has none, from the layer that shares its.
    pub(super) fn forward(
        &self,
        stream: &mut ResidualStream<'_>,
        norm: &RmsNorm,
        step: &Step<'_>,
        caches: &mut [&mut Cache],
        shared: &mut Vec<KvView>,
    ) -> Result<Tensor> {
        let own = !caches.is_empty();
        let (heads, turned) = (self.heads, self.heads + if own { self.key_heads } else { 0 });
        let all = self.qkv_proj.forward_normed(stream, Some(norm))?;
        if let (HeadNorms::Together(norm), 1) = (&self.norms, step.sequences) {
            let shape = Heads {
                queries: heads,
                keys: turned - heads,
                width: self.width,
            };
            if let Some((queries, own)) = split_heads(&shape, &all, Some(norm), step.rope, &step.rotation)? {
                return self.attend(&queries, own.as_ref(), step, caches, shared);
            }
        }
        let all = all.reshape(&[all.dim(0), all.dim(-1) / self.width, self.width])?;
        let (turning, values) = match &self.norms {
            HeadNorms::Together(norm) if !own => {
                let queries = step.rotate(&step.by_head(&norm.forward(&all)?)?)?;
                return self.attend(&queries, None, step, caches, shared);
            }
            HeadNorms::Together(norm) => {
                let all = step.by_head(&norm.forward(&all)?)?;
                (all.slice(1, 0, turned)?, all.slice(1, turned, all.dim(1))?)
            }
            HeadNorms::ValuesAreKeys(norm, factors) => {
                let normed = norm.forward(&all)?;
                (
                    step.by_head(&normed.mul(factors)?)?,
                    step.by_head(&normed.slice(1, heads, turned)?)?,
                )
            }
        };
        let turning = step.rotate(&turning)?;
        let keys = turning.slice(1, heads, turned)?;
        self.attend(
            &turning.slice(1, 0, heads)?,
            Some(&(keys, values)),
            step,
            caches,
            shared,
        )
    }

    /// Attention of each sequence to its own keys and values, after those of this layer, if it has any, are added.
    fn attend(
        &self,
        queries: &Tensor,
        own: Option<&(Tensor, Tensor)>,
        step: &Step<'_>,
        caches: &mut [&mut Cache],
        shared: &mut Vec<KvView>,
    ) -> Result<Tensor> {
        if let Some((keys, values)) = own {
            *shared = sequence_rows(caches.len())
                .zip(caches)
                .map(|(rows, cache)| cache.update(&rows.of(keys)?, &rows.of(values)?))
                .collect::<Result<_>>()?;
        }
        let attended = sequence_rows(shared.len())
            .zip(shared)
            .map(|(rows, seen)| scaled_dot_product_attention(&rows.of(queries)?, seen, SCALE, &step.mask, None))
            .collect::<Result<_>>()?;
        self.o_proj.forward(&join_sequences(attended)?)
    }
}

parameters!(Attention {
    heads: _,
    key_heads: _,
    width: _,
    qkv_proj,
    norms,
    o_proj,
});

impl Parameters for HeadNorms {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Together(norm) => norm.visit(visitor),
            Self::ValuesAreKeys(norm, factors) => {
                norm.visit(visitor);
                visitor(factors);
            }
        }
    }
}
