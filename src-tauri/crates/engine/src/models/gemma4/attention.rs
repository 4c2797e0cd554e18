//! Attention of Gemma 4: normed queries, keys and values; full layers have wider heads, and in the large models no
//! values of their own. Layers at the end of the small models attend to the keys and values of an earlier layer.

use checkpoint::config::gemma4::Attention as Kind;
use mlx::ops::{concatenate, Mask};
use mlx::parameters::Parameters;
use mlx::recording::{CacheOf, CachedAttention};
use mlx::tensor::Tensor;
use mlx::Result;

use super::load_context::LoadContext;
use crate::cache::{Cache, KvView};
use crate::error;
use crate::kernels::kernels;
use crate::layers::{
    join_sequences, ones, scaled_dot_product_attention, sequence_rows, split_heads, Heads, Linear, ResidualStream,
    RmsNorm, Rope, Rotation,
};

/// Queries and keys are normed, so that nothing is left to scale.
const SCALE: f32 = 1.0;

/// Everything that all layers of a kind share in one step.
pub(super) struct Step<'a> {
    /// How many sequences there are. Several have one row each.
    pub(super) sequences: usize,
    /// Positions that a query sees, itself included; `None` for all.
    pub(super) window: Option<u32>,
    pub(super) rope: &'a Rope,
    pub(super) rotation: Rotation,
    pub(super) mask: Mask,
}

/// One step of one layer.
pub(super) struct LayerPass<'a> {
    pub(super) step: &'a Step<'a>,
    /// The layer's own cache of each sequence; none if it has no keys and values of its own.
    pub(super) caches: Vec<&'a mut Cache>,
    /// The number of the layer whose caches it reads.
    pub(super) donor: usize,
    /// The keys and values of each sequence that layers of this kind share.
    pub(super) shared: &'a mut Vec<KvView>,
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

#[derive(Parameters)]
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
#[derive(Parameters)]
enum HeadNorms {
    /// One for all; values have no factors, so theirs are ones.
    Together(RmsNorm),
    /// Values are the keys before their factors: the norm without factors, and the factors of queries and keys.
    ValuesAreKeys(RmsNorm, Tensor),
}

impl Attention {
    pub(super) fn load(loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (config, layer, weights) = (loading.config, loading.layer, &mut *loading.weights);
        let path = |part: &str| format!("layers.{layer}.self_attn.{part}");
        let (heads, key_heads) = (config.num_attention_heads as i32, config.key_heads(layer) as i32);
        let width = config.head_width(layer) as i32;
        let values_are_keys = config.attention_k_eq_v && config.layers[layer] == Kind::Full;
        let own = layer < config.own_kv_layers();
        let mut parts = vec![(path("q_proj"), heads * width)];
        let q_norm = weights.take(&path("q_norm.weight"), &[width])?;
        let ones = ones(width, q_norm.dtype())?;
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
            HeadNorms::ValuesAreKeys(RmsNorm::new(ones, config.rms_norm_eps), factors)
        } else {
            HeadNorms::Together(RmsNorm::new(factors, config.rms_norm_eps))
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
        pass: &mut LayerPass<'_>,
    ) -> Result<Tensor> {
        let (step, own) = (pass.step, !pass.caches.is_empty());
        let (heads, turned) = (self.heads, self.heads + if own { self.key_heads } else { 0 });
        let all = self.qkv_proj.forward_normed(stream, Some(norm))?;
        if let HeadNorms::Together(norm) = &self.norms {
            let shape = Heads {
                queries: heads,
                keys: turned - heads,
                width: self.width,
            };
            if let Some((queries, own)) = split_heads(&shape, &all, Some(norm), step.rope, &step.rotation)? {
                return self.attend(&queries, own.as_ref(), pass);
            }
        }
        let all = all.reshape(&[all.dim(0), all.dim(-1) / self.width, self.width])?;
        let (turning, values) = match &self.norms {
            HeadNorms::Together(norm) if !own => {
                let queries = step.rotate(&step.by_head(&norm.forward(&all)?)?)?;
                return self.attend(&queries, None, pass);
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
        self.attend(&turning.slice(1, 0, heads)?, Some(&(keys, values)), pass)
    }

    /// Attention of each sequence to its own keys and values, after those of this layer, if it has any, are added.
    fn attend(&self, queries: &Tensor, own: Option<&(Tensor, Tensor)>, pass: &mut LayerPass<'_>) -> Result<Tensor> {
        let cached = CachedAttention {
            queries,
            cache: match own {
                Some((keys, values)) => CacheOf::Own(keys, values),
                None => CacheOf::Shared(pass.donor),
            },
            scale: SCALE,
            window: pass.step.window,
            sinks: None,
        };
        if let Some(attended) = kernels().attend_cached(cached)? {
            return self.o_proj.forward(&attended);
        }
        if let Some((keys, values)) = own {
            let updated = sequence_rows(pass.caches.len())
                .zip(&mut pass.caches)
                .map(|(rows, cache)| cache.update(&rows.of(keys)?, &rows.of(values)?));
            *pass.shared = updated.collect::<Result<_>>()?;
        }
        let mask = &pass.step.mask;
        let attended = sequence_rows(pass.shared.len())
            .zip(pass.shared.iter())
            .map(|(rows, seen)| scaled_dot_product_attention(&rows.of(queries)?, seen, SCALE, mask, None))
            .collect::<Result<_>>()?;
        self.o_proj.forward(&join_sequences(attended)?)
    }
}
