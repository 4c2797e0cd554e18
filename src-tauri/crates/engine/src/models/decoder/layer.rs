//! One layer of the parametric decoder.

use checkpoint::config::decoder::{LayerConfig, NormPlacement};
use mlx::parameters::Parameters;
use mlx::Result;

use crate::cache::Cache;
use crate::error;
use crate::layers::{ResidualStream, RmsNorm};
use crate::models::decoder::cross_attention::CrossAttention;
use crate::models::decoder::feed_forward::FeedForward;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mixer::Mixer;
use crate::models::decoder::residual_add::ResidualAdd;
use crate::models::decoder::step::Step;

/// One layer.
#[derive(Parameters)]
pub(super) struct Layer {
    pre_mixer_norm: Option<RmsNorm>,
    pub(super) mixer: Mixer,
    post_mixer_norm: Option<RmsNorm>,
    pre_feed_forward_norm: Option<RmsNorm>,
    feed_forward: FeedForward,
    post_feed_forward_norm: Option<RmsNorm>,
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
        };
        let mut norm = |name: Option<&str>| {
            let width = loading.config.hidden_size as i32;
            let (config, dtype) = (loading.config.norm, loading.dtype);
            let load =
                |name| RmsNorm::load_from(loading.weights, &format!("layers.{layer}.{name}"), width, config, dtype);
            name.map(load).transpose()
        };
        let [pre_mixer_norm, post_mixer_norm, pre_feed_forward_norm, post_feed_forward_norm] = names;
        Ok(Self {
            pre_mixer_norm: norm(pre_mixer_norm)?,
            post_mixer_norm: norm(post_mixer_norm)?,
            pre_feed_forward_norm: norm(pre_feed_forward_norm)?,
            post_feed_forward_norm: norm(post_feed_forward_norm)?,
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
        let mixed = self.mixer.forward(stream, self.pre_mixer_norm.as_ref(), step, caches)?;
        residual_add.add(stream, mixed, self.post_mixer_norm.as_ref())?;
        let fed = self.feed_forward.forward(stream, self.pre_feed_forward_norm.as_ref())?;
        residual_add.add(stream, fed, self.post_feed_forward_norm.as_ref())
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
        let found = cross.forward(&stream.normed(self.pre_mixer_norm.as_ref())?, &states)?;
        residual_add.add(
            stream,
            cross.gate_attention(&found, &states)?,
            self.post_mixer_norm.as_ref(),
        )?;
        let fed = self.feed_forward.forward(stream, self.pre_feed_forward_norm.as_ref())?;
        let fed = cross.gate_feed_forward(&fed, &states)?;
        residual_add.add(stream, fed, self.post_feed_forward_norm.as_ref())
    }
}
