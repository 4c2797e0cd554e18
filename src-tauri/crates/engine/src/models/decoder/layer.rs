//! One layer of the parametric decoder.

use std::ops::Range;

use checkpoint::config::decoder::{self, LayerConfig, NormConfig, NormPlacement};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::Cache;
use crate::error;
use crate::layers::{ResidualStream, RmsNorm};
use crate::models::decoder::cross_attention::CrossAttention;
use crate::models::decoder::embedder::InputGate;
use crate::models::decoder::feed_forward::FeedForward;
use crate::models::decoder::hyper::HyperConnection;
use crate::models::decoder::layer_runs::LayerRuns;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mixer::Mixer;
use crate::models::decoder::norm::{self, Norm};
use crate::models::decoder::residual_add::ResidualAdd;
use crate::models::decoder::step::{Step, StepTokens};
use crate::weights::Weights;

/// One layer.
#[derive(Parameters)]
pub(super) struct Layer {
    pre_mixer_norm: Option<Norm>,
    pub(super) mixer: Option<Mixer>,
    post_mixer_norm: Option<RmsNorm>,
    pre_feed_forward_norm: Option<Norm>,
    feed_forward: Option<FeedForward>,
    /// Learned factors of the mixer's output, the network's, and the embeddings that are added after them.
    gains: Option<[Tensor; 3]>,
    post_feed_forward_norm: Option<RmsNorm>,
    /// The part that reads inputs of its own.
    input_gate: Option<InputGate>,
    /// The connections of the mixer and of the network with several streams.
    connections: Option<[HyperConnection; 2]>,
    /// Tables of runs of tokens that it reads before its mixer.
    runs: Option<LayerRuns>,
    /// True if the network reads the stream as it was before the mixer, normed as for the mixer if it has no norm.
    parallel: bool,
    /// The places of its caches among those of a sequence.
    #[parameters(skip)]
    pub(super) caches: Range<usize>,
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
            NormPlacement::Absent => [None; 4],
            NormPlacement::BeforeNetwork => [None, None, Some("post_attention_layernorm"), None],
            NormPlacement::Single => match config.mixer {
                decoder::Mixer::Absent => [None, None, Some("input_layernorm"), None],
                _ => [Some("input_layernorm"), None, None, None],
            },
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
        let mixer = Mixer::load(&config.mixer, layer, loading)?;
        let runs = LayerRuns::load(layer, loading)?;
        let first = loading.caches;
        loading.caches += usize::from(runs.is_some());
        loading.caches += mixer.as_ref().map_or(0, |mixer| mixer.caches(false).len());
        Ok(Self {
            caches: first..loading.caches,
            mixer,
            pre_mixer_norm: before(pre_mixer_norm, loading.weights)?,
            post_mixer_norm: after(post_mixer_norm, after_mixer, loading.weights)?,
            pre_feed_forward_norm: before(pre_feed_forward_norm, loading.weights)?,
            post_feed_forward_norm: after(post_feed_forward_norm, after_network, loading.weights)?,
            parallel: matches!(config.norms, NormPlacement::Parallel | NormPlacement::ParallelPair),
            gains: gains(layer, loading)?,
            input_gate: InputGate::load(layer, loading)?,
            connections: connections(layer, loading)?,
            runs,
            feed_forward: FeedForward::load(&config.feed_forward, layer, loading)?,
        })
    }

    /// Its empty caches for one sequence in the first loop, or in those after it.
    pub(super) fn caches(&self, again: bool) -> Vec<Cache> {
        let mixer = self.mixer.as_ref().map_or_else(Vec::new, |mixer| mixer.caches(again));
        let runs = self.runs.as_ref().map(|_| LayerRuns::cache());
        mixer.into_iter().chain(runs).collect()
    }

    /// The index of its mask in the first loop, or in those after it; the first of its caches tells it.
    pub(super) fn mask(&self, again: bool) -> Option<usize> {
        self.mixer.as_ref()?.mask(again)
    }

    /// Takes the residual stream through this layer; what it gives back is to be added after the next one.
    pub(super) fn forward<'a>(
        &'a self,
        stream: &mut ResidualStream<'a>,
        step: &Step<'_>,
        residual_add: &ResidualAdd,
        caches: &mut [&mut Cache],
    ) -> Result<Option<Tensor>> {
        match (&self.mixer, &self.feed_forward) {
            (Some(Mixer::CrossAttention(cross)), _) => {
                self.cross_attend(cross, stream, step, residual_add, caches)?;
                return Ok(None);
            }
            (Some(mixer), Some(feed_forward)) if self.parallel => {
                self.beside((mixer, feed_forward), stream, step, residual_add, caches)?;
                return Ok(None);
            }
            _ => {}
        }
        if let Some(mixer) = &self.mixer {
            let mixed = norm::read(self.pre_mixer_norm.as_ref(), stream, |stream, norm| {
                mixer.forward(stream, norm, step, caches)
            })?;
            let mixed = self.gained(mixed, 0)?;
            residual_add.add(stream, mixed, self.post_mixer_norm.as_ref())?;
        }
        let fed = |fed| self.gained(fed, 1);
        let later = self.add_fed(stream, residual_add, step.tokens, fed)?;
        if let (Some(gate), Some(inputs)) = (&self.input_gate, &step.layer_inputs) {
            gate.add(stream, inputs)?;
        }
        if let Some(embedded) = &step.embedded {
            residual_add.add(stream, self.gained(embedded.clone(), 2)?, None)?;
        }
        Ok(later)
    }

    /// Takes several streams `[rows, streams, hidden]` through this layer.
    pub(super) fn forward_streams(
        &self,
        streams: Tensor,
        step: &Step<'_>,
        caches: &mut [&mut Cache],
    ) -> Result<Tensor> {
        let (Some([of_mixer, of_network]), Some(mixer), Some(network)) =
            (&self.connections, &self.mixer, &self.feed_forward)
        else {
            return Ok(streams);
        };
        let (streams, caches) = match (&self.runs, step.tokens.ids) {
            (Some(runs), Some(ids)) => {
                let (caches, of_runs) = caches.split_at_mut(caches.len() - step.sequences);
                (runs.add(&streams, ids, of_runs)?, caches)
            }
            _ => (streams, caches),
        };
        let (read, written) = of_mixer.read(&streams)?;
        let mixed = norm::read(
            self.pre_mixer_norm.as_ref(),
            &mut ResidualStream::new(read),
            |stream, norm| mixer.forward(stream, norm, step, caches),
        )?;
        let streams = written.with(&mixed)?;
        let (read, written) = of_network.read(&streams)?;
        let (fed, _) = self.feed(network, &mut ResidualStream::new(read), step.tokens)?;
        written.with(&fed)
    }

    /// A summand of the stream times its learned factor.
    fn gained(&self, part: Tensor, index: usize) -> Result<Tensor> {
        match &self.gains {
            Some(gains) => part.mul(&gains[index]),
            None => Ok(part),
        }
    }

    /// Adds the network's output for the normed stream, changed by `change`, if there is a network; gives back what is
    /// added later.
    fn add_fed<'a>(
        &'a self,
        stream: &mut ResidualStream<'a>,
        residual_add: &ResidualAdd,
        tokens: StepTokens<'_>,
        change: impl FnOnce(Tensor) -> Result<Tensor>,
    ) -> Result<Option<Tensor>> {
        let Some(feed_forward) = &self.feed_forward else {
            return Ok(None);
        };
        let (fed, later) = self.feed(feed_forward, stream, tokens)?;
        residual_add.add(stream, change(fed)?, self.post_feed_forward_norm.as_ref())?;
        Ok(later)
    }

    fn feed(
        &self,
        feed_forward: &FeedForward,
        stream: &mut ResidualStream<'_>,
        tokens: StepTokens<'_>,
    ) -> Result<(Tensor, Option<Tensor>)> {
        norm::read(self.pre_feed_forward_norm.as_ref(), stream, |stream, norm| {
            feed_forward.forward(stream, norm, tokens)
        })
    }

    /// The same for a layer whose mixer and network read the same stream.
    fn beside<'a>(
        &'a self,
        (mixer, feed_forward): (&Mixer, &FeedForward),
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
        let mixed = mixer.forward(&mut read, None, step, caches)?;
        if self.pre_feed_forward_norm.is_some() {
            read = ResidualStream::new(stream.sum()?.clone());
        }
        let (fed, _) = self.feed(feed_forward, &mut read, step.tokens)?;
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
        self.add_fed(stream, residual_add, step.tokens, |fed| {
            cross.gate_feed_forward(&fed, &states)
        })?;
        Ok(())
    }
}

/// The connections of the parts of a layer with several streams.
fn connections(layer: usize, loading: &mut LoadContext<'_, '_>) -> error::Result<Option<[HyperConnection; 2]>> {
    let Some(hyper) = loading.config.hyper else {
        return Ok(None);
    };
    let path = format!("layers.{layer}");
    let mut load = |network: bool| HyperConnection::load(&hyper, &path, network, loading);
    Ok(Some([load(false)?, load(true)?]))
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
