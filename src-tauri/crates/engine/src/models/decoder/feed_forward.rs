//! The part of a layer that treats each position by itself.

use checkpoint::config::decoder;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::error;
use crate::layers::{ResidualStream, RmsNorm};
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mlp::Mlp;
use crate::models::decoder::plain_mlp::PlainMlp;
use crate::models::decoder::sparse_moe::SparseMoe;

/// A feed-forward part of any kind.
#[derive(Parameters)]
pub(super) enum FeedForward {
    Dense(Box<Mlp>),
    Plain(Box<PlainMlp>),
    SparseMoe(Box<SparseMoe>),
}

impl FeedForward {
    /// The network of a layer; `None` if it has none.
    pub(super) fn load(
        config: &decoder::FeedForward,
        layer: usize,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Option<Self>> {
        let path = format!("layers.{layer}.mlp");
        Ok(Some(match config {
            decoder::FeedForward::None => return Ok(None),
            decoder::FeedForward::Dense(config) => Self::Dense(Box::new(Mlp::load(config, &path, loading)?)),
            decoder::FeedForward::Plain(config) => Self::Plain(Box::new(PlainMlp::load(config, &path, loading)?)),
            decoder::FeedForward::Moe(config) => Self::SparseMoe(Box::new(SparseMoe::load(config, &path, loading)?)),
            decoder::FeedForward::LatentMoe(config) => {
                Self::SparseMoe(Box::new(SparseMoe::load_latent(config, &path, loading)?))
            }
        }))
    }

    pub(super) fn forward(&self, stream: &mut ResidualStream<'_>, norm: Option<&RmsNorm>) -> Result<Tensor> {
        match self {
            Self::Dense(mlp) => mlp.forward_normed(stream, norm),
            Self::Plain(mlp) => mlp.forward_normed(stream, norm),
            Self::SparseMoe(moe) => moe.forward(stream, norm),
        }
    }
}
