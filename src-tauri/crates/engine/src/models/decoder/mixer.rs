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
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mla::Mla;
use crate::models::decoder::step::Step;

/// A mixer of any kind.
#[derive(Parameters)]
pub(super) enum Mixer {
    Attention(Attention),
    DeltaNet(DeltaNet),
    GatedConv(GatedConv),
    Mla(Box<Mla>),
    CrossAttention(Box<CrossAttention>),
    Linear(Linear),
    Absent,
}

impl Mixer {
    pub(super) fn load(
        config: &decoder::Mixer,
        layer: usize,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Self> {
        let path = format!("layers.{layer}");
        let at = |name: &str| format!("{path}.{name}");
        Ok(match config {
            decoder::Mixer::Attention(config) => Self::Attention(Attention::load(config, &at("self_attn"), loading)?),
            decoder::Mixer::DeltaNet(config) => Self::DeltaNet(DeltaNet::load(config, &at("linear_attn"), loading)?),
            decoder::Mixer::Mla(config) => Self::Mla(Box::new(Mla::load(config, &at("self_attn"), loading)?)),
            decoder::Mixer::GatedConv(config) => Self::GatedConv(GatedConv::load(config, &at("conv"), loading)?),
            decoder::Mixer::CrossAttention(config) => {
                Self::CrossAttention(Box::new(CrossAttention::load(config, &path, loading)?))
            }
            decoder::Mixer::Linear(config) => Self::Linear(linear_part(*config, &at("self_attn"), loading)?),
            decoder::Mixer::Absent => Self::Absent,
        })
    }

    /// An empty cache, if it keeps anything.
    pub(super) fn cache(&self) -> Option<Cache> {
        Some(match self {
            Self::Attention(attention) => attention.cache(),
            Self::Mla(mla) => mla.cache(),
            Self::DeltaNet(_) | Self::GatedConv(_) => Cache::Recurrent(RecurrentCache::default()),
            Self::CrossAttention(_) => Cache::Cross(CrossCache::default()),
            Self::Linear(_) | Self::Absent => return None,
        })
    }

    /// The index of its mask, for mixers with a cache of keys.
    pub(super) fn mask(&self) -> Option<usize> {
        match self {
            Self::Attention(attention) => Some(attention.mask()),
            Self::Mla(mla) => Some(mla.mask()),
            Self::DeltaNet(_) | Self::GatedConv(_) | Self::CrossAttention(_) | Self::Linear(_) | Self::Absent => None,
        }
    }

    /// The window of attention that has one.
    pub(super) fn window(&self) -> Option<u32> {
        match self {
            Self::Attention(attention) => attention.window(),
            Self::Mla(_)
            | Self::DeltaNet(_)
            | Self::GatedConv(_)
            | Self::CrossAttention(_)
            | Self::Linear(_)
            | Self::Absent => None,
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
            Self::DeltaNet(net) => net.forward(&stream.normed(norm)?, caches),
            Self::GatedConv(conv) => conv.forward(&stream.normed(norm)?, caches),
            Self::Linear(linear) => linear.forward_normed(stream, norm),
            Self::CrossAttention(_) => unreachable!("its layer asks it itself"),
            Self::Absent => unreachable!("its layer does not ask it"),
        }
    }
}
