//! The part of a layer that mixes positions.

use checkpoint::config::decoder;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{Cache, CrossCache, RecurrentCache};
use crate::error;
use crate::layers::{ResidualStream, RmsNorm};
use crate::models::decoder::attention::Attention;
use crate::models::decoder::cross_attention::CrossAttention;
use crate::models::decoder::delta_net::DeltaNet;
use crate::models::decoder::gated_conv::GatedConv;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mla::Mla;
use crate::models::decoder::step::Step;

/// A mixer of any kind.
pub(super) enum Mixer {
    Attention(Attention),
    DeltaNet(DeltaNet),
    GatedConv(GatedConv),
    Mla(Box<Mla>),
    CrossAttention(Box<CrossAttention>),
}

impl Mixer {
    pub(super) fn load(
        config: &decoder::Mixer,
        layer: usize,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Self> {
        let path = format!("layers.{layer}");
        match config {
            decoder::Mixer::Attention(config) => Ok(Self::Attention(Attention::load(
                config,
                &format!("{path}.self_attn"),
                loading,
            )?)),
            decoder::Mixer::DeltaNet(config) => Ok(Self::DeltaNet(DeltaNet::load(
                config,
                &format!("{path}.linear_attn"),
                loading,
            )?)),
            decoder::Mixer::Mla(config) => Ok(Self::Mla(Box::new(Mla::load(
                config,
                &format!("{path}.self_attn"),
                loading,
            )?))),
            decoder::Mixer::GatedConv(config) => Ok(Self::GatedConv(GatedConv::load(
                config,
                &format!("{path}.conv"),
                loading,
            )?)),
            decoder::Mixer::CrossAttention(config) => Ok(Self::CrossAttention(Box::new(CrossAttention::load(
                config, &path, loading,
            )?))),
        }
    }

    pub(super) fn cache(&self) -> Cache {
        match self {
            Self::Attention(attention) => attention.cache(),
            Self::Mla(mla) => mla.cache(),
            Self::DeltaNet(_) | Self::GatedConv(_) => Cache::Recurrent(RecurrentCache::default()),
            Self::CrossAttention(_) => Cache::Cross(CrossCache::default()),
        }
    }

    /// The index of its mask, for mixers with a cache of keys.
    pub(super) fn mask(&self) -> Option<usize> {
        match self {
            Self::Attention(attention) => Some(attention.mask()),
            Self::Mla(mla) => Some(mla.mask()),
            Self::DeltaNet(_) | Self::GatedConv(_) | Self::CrossAttention(_) => None,
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
            Self::CrossAttention(_) => unreachable!("its layer asks it itself"),
        }
    }
}

impl Parameters for Mixer {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Attention(attention) => attention.visit(visitor),
            Self::Mla(mla) => mla.visit(visitor),
            Self::DeltaNet(net) => net.visit(visitor),
            Self::GatedConv(conv) => conv.visit(visitor),
            Self::CrossAttention(cross) => cross.visit(visitor),
        }
    }
}
