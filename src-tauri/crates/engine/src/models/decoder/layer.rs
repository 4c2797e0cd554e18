//! One layer of the parametric decoder.

use checkpoint::config::decoder::{self, LayerConfig, NormConfig, NormPlacement};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::Cache;
use crate::error;
use crate::layers::{ResidualStream, RmsNorm};
use crate::models::decoder::cross_attention::CrossAttention;
use crate::models::decoder::feed_forward::FeedForward;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mixer::Mixer;
use crate::models::decoder::norm::{self, Norm};
use crate::models::decoder::residual_add::ResidualAdd;
use crate::models::decoder::step::Step;
use crate::weights::Weights;

/// One layer.
#[derive(Parameters)]
pub(super) struct Layer {
    pre_mixer_norm: Option<Norm>,
    pub(super) mixer: Mixer,
    post_mixer_norm: Option<RmsNorm>,
    pre_feed_forward_norm: Option<Norm>,
    feed_forward: FeedForward,
    /// Learned factors of the mixer's output, the network's, and the embeddings that are added after them.
    gains: Option<[Tensor; 3]>,
    post_feed_forward_norm: Option<RmsNorm>,
    /// True if the network reads the stream as it was before the mixer, normed as for the mixer if it has no norm.
    parallel: bool,
}

impl Layer {
    pub(super) fn load(config: &LayerConfig, layer: usize, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let names = match config.norms {
            NormPlacement::Pre => [Some("input_layernorm"), None, Some("post_attention_layernorm"), None],
            NormPlacement::Post => [
                None,
                Some("post_attention_layernorm"),
                None,
                Some("post_feedforward_layernorm"),
            ],
            NormPlacement::Sandwich => [
                Some("input_layernorm"),
                Some("post_attention_layernorm"),
                Some("pre_feedforward_layernorm"),
                Some("post_feedforward_layernorm"),
            ],
            NormPlacement::Parallel => [Some("input_layernorm"), None, None, None],
            NormPlacement::ParallelPair => [Some("input_layernorm"), None, Some("post_attention_layernorm"), None],
        };
        let path = |name: &str| format!("layers.{layer}.{name}");
        let (width, kind, dtype) = (loading.config.hidden_size as i32, loading.config.norm, loading.dtype);
        let before = |name: Option<&str>, weights: &mut Weights<'_>| {
            name.map(|name| Norm::load(weights, &path(name), width, kind, dtype))
                .transpose()
        };
        let kind_after = NormConfig {
            eps: kind.eps_after.unwrap_or(kind.eps),
            ..kind
        };
        let [after_mixer, after_network] = match kind.after_offsets {
            Some(offsets) => offsets.map(Some),
            None => [None, None],
        };
        let after = |name: Option<&str>, offset: Option<f32>, weights: &mut Weights<'_>| {
            let load = |name| match offset {
                Some(offset) => RmsNorm::load_offset(weights, &path(name), width, kind_after.eps, offset),
                None => RmsNorm::load_from(weights, &path(name), width, kind_after, dtype),
            };
            name.map(load).transpose()
        };
        let [pre_mixer_norm, post_mixer_norm, pre_feed_forward_norm, post_feed_forward_norm] = names;
        let pre_mixer_norm = pre_mixer_norm.filter(|_| config.mixer != decoder::Mixer::Absent);
        let pre_feed_forward_norm =
            pre_feed_forward_norm.filter(|_| config.feed_forward != decoder::FeedForward::Absent);
        Ok(Self {
            pre_mixer_norm: before(pre_mixer_norm, loading.weights)?,
            post_mixer_norm: after(post_mixer_norm, after_mixer, loading.weights)?,
            pre_feed_forward_norm: before(pre_feed_forward_norm, loading.weights)?,
            post_feed_forward_norm: after(post_feed_forward_norm, after_network, loading.weights)?,
            parallel: matches!(config.norms, NormPlacement::Parallel | NormPlacement::ParallelPair),
            gains: gains(layer, loading)?,
            mixer: Mixer::load(&config.mixer, layer, loading)?,
            feed_forward: FeedForward::load(&config.feed_forward, layer, loading)?,
        })
    }

    /// Takes the residual stream through this layer.
    pub(super) fn forward<'a>(
        &'a self,
        stream: &mut ResidualStream<'a>,
        step: &Step<'_>,
        residual_add: &ResidualAdd,
        caches: &mut [&mut Cache],
    ) -> Result<()> {
        if let Mixer::CrossAttention(cross) = &self.mixer {
            return self.cross_attend(cross, stream, step, residual_add, caches);
        }
        if self.parallel {
            return self.beside(stream, step, residual_add, caches);
        }
        if !matches!(self.mixer, Mixer::Absent) {
            let mixed = norm::read(self.pre_mixer_norm.as_ref(), stream, |stream, norm| {
                self.mixer.forward(stream, norm, step, caches)
            })?;
            let mixed = self.gained(mixed, 0)?;
            residual_add.add(stream, mixed, self.post_mixer_norm.as_ref())?;
        }
        if matches!(self.feed_forward, FeedForward::Absent) {
            return Ok(());
        }
        let fed = self.gained(self.feed(stream)?, 1)?;
        residual_add.add(stream, fed, self.post_feed_forward_norm.as_ref())?;
        match &step.embedded {
            Some(embedded) => residual_add.add(stream, self.gained(embedded.clone(), 2)?, None),
            None => Ok(()),
        }
    }

    /// A summand of the stream times its learned factor.
    fn gained(&self, part: Tensor, index: usize) -> Result<Tensor> {
        match &self.gains {
            Some(gains) => part.mul(&gains[index]),
            None => Ok(part),
        }
    }

    /// The network's output for the normed stream.
    fn feed(&self, stream: &mut ResidualStream<'_>) -> Result<Tensor> {
        norm::read(self.pre_feed_forward_norm.as_ref(), stream, |stream, norm| {
            self.feed_forward.forward(stream, norm)
        })
    }

    /// The same for a layer whose mixer and network read the same stream.
    fn beside<'a>(
        &'a self,
        stream: &mut ResidualStream<'a>,
        step: &Step<'_>,
        residual_add: &ResidualAdd,
        caches: &mut [&mut Cache],
    ) -> Result<()> {
        let normed = match &self.pre_mixer_norm {
            Some(norm) => norm.of(stream)?,
            None => stream.sum()?.clone(),
        };
        let mut read = ResidualStream::new(normed);
        let mixed = self.mixer.forward(&mut read, None, step, caches)?;
        if self.pre_feed_forward_norm.is_some() {
            read = ResidualStream::new(stream.sum()?.clone());
        }
        let fed = self.feed(&mut read)?;
        residual_add.add(stream, mixed.add(&fed)?, None)
    }

    /// The same for a cross-attention layer.
    fn cross_attend<'a>(
        &'a self,
        cross: &CrossAttention,
        stream: &mut ResidualStream<'a>,
        step: &Step<'_>,
        residual_add: &ResidualAdd,
        caches: &mut [&mut Cache],
    ) -> Result<()> {
        let rows = stream.sum()?.dim(0) as usize;
        let Some(states) = cross.update_and_fetch(step.images, rows, caches)? else {
            return Ok(());
        };
        let found = norm::read(self.pre_mixer_norm.as_ref(), stream, |stream, norm| {
            cross.forward(&stream.normed(norm)?, &states)
        })?;
        residual_add.add(
            stream,
            cross.gate_attention(&found, &states)?,
            self.post_mixer_norm.as_ref(),
        )?;
        let fed = self.feed(stream)?;
        let fed = cross.gate_feed_forward(&fed, &states)?;
        residual_add.add(stream, fed, self.post_feed_forward_norm.as_ref())
    }
}

/// The learned factors of a layer, one number each.
fn gains(layer: usize, loading: &mut LoadContext<'_, '_>) -> error::Result<Option<[Tensor; 3]>> {
    if !loading.config.gains {
        return Ok(None);
    }
    let mut take = |name: &str| loading.weights.take(&format!("layers.{layer}.{name}.a_g"), &[1]);
    let gains = [take("attn_gain")?, take("mlp_gain")?, take("embed_skip")?];
    loading.weights.materialize(&gains)?;
    Ok(Some(gains))
}
