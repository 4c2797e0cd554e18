//! Queries that gate what short convolutions find in keys and values (Gear).

use checkpoint::config::decoder::KeyConvConfig;
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::Cache;
use crate::error;
use crate::layers::{each_sequence, norm_weight, Linear, RmsNorm, ShortConv};
use crate::models::decoder::load_context::LoadContext;

/// The mixer of one layer.
#[derive(Parameters)]
pub struct KeyConv {
    heads: i32,
    key_heads: i32,
    width: i32,
    /// The projections of queries, keys and values side by side.
    in_proj: Linear,
    /// Of queries and of keys.
    norms: [RmsNorm; 2],
    /// The convolutions of keys and of values beside each other.
    conv: ShortConv,
    o_proj: Linear,
}

impl KeyConv {
    /// Loads what stands below `path`: `q_proj`, `k_proj`, `v_proj`, `q_norm`, `k_norm`, `key_conv`, `value_conv` and
    /// `o_proj`.
    pub fn load(config: &KeyConvConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (heads, key_heads, width) = (config.heads as i32, config.key_heads as i32, config.head_dim as i32);
        let (hidden, queries, keys) = (loading.config.hidden_size as i32, heads * width, key_heads * width);
        let (kind, weights) = (loading.config.norm, &mut *loading.weights);
        let at = |name: &str| format!("{path}.{name}");
        if config.bias {
            for part in ["q_proj", "k_proj", "v_proj", "key_conv", "value_conv", "o_proj"] {
                weights.require(&at(&format!("{part}.bias")))?;
            }
        }
        let mut norm = |name: &str| -> error::Result<RmsNorm> {
            Ok(RmsNorm::new(norm_weight(weights, &at(name), width, kind)?, kind.eps))
        };
        let norms = [norm("q_norm")?, norm("k_norm")?];
        let parts = [(at("q_proj"), queries), (at("k_proj"), keys), (at("v_proj"), keys)];
        let convs = [(at("key_conv"), keys), (at("value_conv"), keys)];
        let mixer = Self {
            heads,
            key_heads,
            width,
            in_proj: Linear::load_joined(weights, &parts, hidden)?,
            norms,
            conv: ShortConv::load_joined(weights, &convs, config.kernel as i32, None)?,
            o_proj: Linear::load(weights, &at("o_proj"), queries, hidden)?,
        };
        weights.materialize(mixer.tensors())?;
        Ok(mixer)
    }

    /// `[rows, hidden]` to the same.
    pub fn forward(&self, x: &Tensor, caches: &mut [&mut Cache]) -> Result<Tensor> {
        let (rows, queries, keys) = (x.dim(0), self.heads * self.width, self.key_heads * self.width);
        let all = self.in_proj.forward(x)?;
        let by_head = |x: &Tensor, sharing: i32| x.reshape(&[rows, self.key_heads, sharing, self.width]);
        let query = by_head(&all.slice(1, 0, queries)?, self.heads / self.key_heads)?;
        let query = self.norms[0].forward(&query)?;
        let key = self.norms[1].forward(&by_head(&all.slice(1, queries, queries + keys)?, 1)?)?;
        let values = all.slice(1, queries + keys, queries + 2 * keys)?;
        let mixing = concatenate(&[&key.reshape(&[rows, keys])?, &values], 1)?;
        let mixed = each_sequence(caches, |rows, cache| {
            let (mixing, cache) = (rows.of(&mixing)?, cache.recurrent());
            cache.advance(mixing.dim(0) as usize);
            self.conv.forward(&mixing, &mut cache.conv)
        })?;
        let key = by_head(&mixed.slice(1, 0, keys)?, 1)?;
        let value = by_head(&mixed.slice(1, keys, 2 * keys)?, 1)?;
        let found = query.mul(&key)?.sigmoid()?.mul(&value)?;
        self.o_proj.forward(&found.reshape(&[rows, queries])?)
    }
}
