//! The part of a layer that treats each position by itself.

use checkpoint::config::decoder::{self, LinearConfig};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::error;
use crate::layers::{Linear, ResidualStream, RmsNorm};
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mlp::Mlp;
use crate::models::decoder::modal_moe::ModalMoe;
use crate::models::decoder::plain_mlp::PlainMlp;
use crate::models::decoder::shortcut::Shortcut;
use crate::models::decoder::sparse_moe::SparseMoe;
use crate::models::decoder::step::StepTokens;

/// A feed-forward part of any kind.
#[derive(Parameters)]
pub(super) enum FeedForward {
    Dense(Box<Mlp>),
    Plain(Box<PlainMlp>),
    SparseMoe(Box<SparseMoe>),
    ModalMoe(Box<ModalMoe>),
    Shortcut(Box<Shortcut>),
    Linear(Linear),
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
            decoder::FeedForward::Absent => return Ok(None),
            decoder::FeedForward::Dense(config) => Self::Dense(Box::new(Mlp::load(config, &path, loading)?)),
            decoder::FeedForward::Plain(config) => Self::Plain(Box::new(PlainMlp::load(config, &path, loading)?)),
            decoder::FeedForward::Linear(config) => Self::Linear(linear_part(*config, &path, loading)?),
            decoder::FeedForward::Moe(config) => Self::SparseMoe(Box::new(SparseMoe::load(config, &path, loading)?)),
            decoder::FeedForward::ModalMoe(config) => Self::ModalMoe(Box::new(ModalMoe::load(config, &path, loading)?)),
            decoder::FeedForward::Shortcut(config) => Self::Shortcut(Box::new(Shortcut::load(config, &path, loading)?)),
            decoder::FeedForward::LatentMoe(config) => {
                Self::SparseMoe(Box::new(SparseMoe::load_latent(config, &path, loading)?))
            }
        }))
    }

    /// The output for the normed stream, and what is added after the next layer. Experts may be chosen by the tokens.
    pub(super) fn forward(
        &self,
        stream: &mut ResidualStream<'_>,
        norm: Option<&RmsNorm>,
        tokens: StepTokens<'_>,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let fed = match self {
            Self::Dense(mlp) => mlp.forward_normed(stream, norm),
            Self::Plain(mlp) => mlp.forward_normed(stream, norm),
            Self::SparseMoe(moe) => moe.forward(stream, norm, tokens.ids),
            Self::ModalMoe(moe) => moe.forward(stream, norm, tokens),
            Self::Linear(linear) => linear.forward_normed(stream, norm),
            Self::Shortcut(shortcut) => {
                let (fed, later) = shortcut.forward(stream, norm)?;
                return Ok((fed, Some(later)));
            }
        };
        Ok((fed?, None))
    }
}

/// Loads the projection `path.linear` that stands in place of a part of a layer.
pub(super) fn linear_part(
    config: LinearConfig,
    path: &str,
    loading: &mut LoadContext<'_, '_>,
) -> error::Result<Linear> {
    let (path, hidden) = (format!("{path}.linear"), loading.config.hidden_size as i32);
    if config.bias {
        loading.weights.require(&format!("{path}.bias"))?;
    }
    Linear::load(loading.weights, &path, hidden, hidden)
}
