//! The part of a layer that mixes positions.

use checkpoint::config::decoder;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{Cache, CrossCache, RecurrentCache};
use crate::error;
use crate::layers::{Linear, ResidualStream, RmsNorm};
use crate::models::decoder::attention::Attention;
use crate::models::decoder::cross_attention::CrossAttention;
use crate::models::decoder::delta_net::DeltaNet;
use crate::models::decoder::feed_forward::linear_part;
use crate::models::decoder::gated_conv::GatedConv;
use crate::models::decoder::joint::Joint;
use crate::models::decoder::key_conv::KeyConv;
use crate::models::decoder::lightning::Lightning;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::loop_attention::LoopAttention;
use crate::models::decoder::mamba::Mamba;
use crate::models::decoder::mamba2::Mamba2;
use crate::models::decoder::mla::Mla;
use crate::models::decoder::pooled::PooledAttention;
use crate::models::decoder::rg_lru::RgLru;
use crate::models::decoder::rwkv::Rwkv;
use crate::models::decoder::step::Step;

/// A mixer of any kind.
#[derive(Parameters)]
pub(super) enum Mixer {
    Attention(Box<Attention>),
    DeltaNet(Box<DeltaNet>),
    GatedConv(GatedConv),
    Mla(Box<Mla>),
    Pooled(Box<PooledAttention>),
    CrossAttention(Box<CrossAttention>),
    Linear(Linear),
    KeyConv(Box<KeyConv>),
    Lightning(Box<Lightning>),
    Mamba(Box<Mamba>),
    Mamba2(Box<Mamba2>),
    Joint(Box<Joint>),
    RgLru(Box<RgLru>),
    Rwkv(Rwkv),
}

impl Mixer {
    /// The mixer of a layer; `None` if it has none.
    pub(super) fn load(
        config: &decoder::Mixer,
        layer: usize,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Option<Self>> {
        let path = format!("layers.{layer}");
        let at = |name: &str| format!("{path}.{name}");
        Ok(Some(match config {
            decoder::Mixer::Absent => return Ok(None),
            decoder::Mixer::KeyConv(config) => {
                Self::KeyConv(Box::new(KeyConv::load(config, &at("local_mixer"), loading)?))
            }
            decoder::Mixer::Lightning(config) => {
                Self::Lightning(Box::new(Lightning::load(config, &at("self_attn"), loading)?))
            }
            decoder::Mixer::Mamba(config) => Self::Mamba(Box::new(Mamba::load(config, &at("mamba"), loading)?)),
            decoder::Mixer::Mamba2(config) => Self::Mamba2(Box::new(Mamba2::load(config, &at("mamba"), loading)?)),
            decoder::Mixer::RgLru(config) => Self::RgLru(Box::new(RgLru::load(config, &at("recurrent"), loading)?)),
            decoder::Mixer::Rwkv(config) => Self::Rwkv(Rwkv::load(config, &path, loading)?),
            decoder::Mixer::Joint(config) => Self::Joint(Box::new(Joint::load(config, &path, loading)?)),
            decoder::Mixer::Attention(config) => {
                let looped = LoopAttention::load(config, layer, loading)?;
                let attention = Attention::load(config, &at("self_attn"), loading)?;
                Self::Attention(Box::new(attention.looped(looped)))
            }
            decoder::Mixer::DeltaNet(config) => {
                let name = config.channels.map_or("linear_attn", |_| "self_attn");
                Self::DeltaNet(Box::new(DeltaNet::load(config, &at(name), loading)?))
            }
            decoder::Mixer::Mla(config) => Self::Mla(Box::new(Mla::load(config, &at("self_attn"), loading)?)),
            decoder::Mixer::Pooled(config) => {
                Self::Pooled(Box::new(PooledAttention::load(config, &at("self_attn"), loading)?))
            }
            decoder::Mixer::GatedConv(config) => Self::GatedConv(GatedConv::load(config, &at("conv"), loading)?),
            decoder::Mixer::CrossAttention(config) => {
                Self::CrossAttention(Box::new(CrossAttention::load(config, &path, loading)?))
            }
            decoder::Mixer::Linear(config) => Self::Linear(linear_part(*config, &at("self_attn"), loading)?),
        }))
    }

    /// Its empty caches for one sequence in the first loop, or in those after it. The first is that of its attention,
    /// if it has one.
    pub(super) fn caches(&self, again: bool) -> Vec<Cache> {
        vec![match self {
            Self::Joint(joint) => return joint.caches(),
            Self::Pooled(pooled) => return pooled.caches(),
            Self::Linear(_) => return Vec::new(),
            Self::Attention(attention) => return attention.caches(again),
            Self::Mla(mla) => mla.cache(),
            Self::DeltaNet(_)
            | Self::GatedConv(_)
            | Self::KeyConv(_)
            | Self::Lightning(_)
            | Self::Mamba(_)
            | Self::Mamba2(_)
            | Self::RgLru(_)
            | Self::Rwkv(_) => Cache::Recurrent(RecurrentCache::default()),
            Self::CrossAttention(_) => Cache::Cross(CrossCache::default()),
        }]
    }

    /// The index of its mask in the first loop, or in those after it, for mixers with a cache of keys.
    pub(super) fn mask(&self, again: bool) -> Option<usize> {
        match self {
            Self::Attention(attention) => Some(attention.mask(again)),
            Self::Joint(joint) => Some(joint.mask()),
            Self::Mla(mla) => Some(mla.mask()),
            Self::Pooled(pooled) => Some(pooled.mask()),
            Self::DeltaNet(_)
            | Self::GatedConv(_)
            | Self::KeyConv(_)
            | Self::Lightning(_)
            | Self::Mamba(_)
            | Self::Mamba2(_)
            | Self::RgLru(_)
            | Self::Rwkv(_)
            | Self::Linear(_)
            | Self::CrossAttention(_) => None,
        }
    }

    pub(super) fn forward(
        &self,
        stream: &mut ResidualStream<'_>,
        norm: Option<&RmsNorm>,
        step: &Step<'_>,
        caches: &mut [&mut Cache],
    ) -> Result<Tensor> {
        match self {
            Self::Attention(attention) => attention.forward(stream, norm, step, caches),
            Self::Mla(mla) => mla.forward(&stream.normed(norm)?, step, caches),
            Self::Pooled(pooled) => pooled.forward(&stream.normed(norm)?, step, caches),
            Self::DeltaNet(net) => net.forward(&stream.normed(norm)?, caches),
            Self::GatedConv(conv) => conv.forward(&stream.normed(norm)?, caches),
            Self::Linear(linear) => linear.forward_normed(stream, norm),
            Self::KeyConv(conv) => conv.forward(&stream.normed(norm)?, caches),
            Self::Lightning(lightning) => lightning.forward(&stream.normed(norm)?, step, caches),
            Self::Mamba(mamba) => mamba.forward(&stream.normed(norm)?, caches),
            Self::Mamba2(mamba) => mamba.forward(&stream.normed(norm)?, caches),
            Self::RgLru(unit) => unit.forward(&stream.normed(norm)?, caches),
            Self::Rwkv(part) => part.forward(&stream.normed(norm)?, step, caches),
            Self::Joint(joint) => joint.forward(&stream.normed(norm)?, step, caches),
            Self::CrossAttention(_) => unreachable!("its layer asks it itself"),
        }
    }
}
