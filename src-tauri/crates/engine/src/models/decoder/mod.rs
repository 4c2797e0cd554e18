//! The parametric decoder: builds the layers that a [`DecoderConfig`] describes and runs them. Names of tensors are those of
//! Llama's checkpoints; families with other names say so in [`DecoderConfig::renames`].
//!
//! A new kind of mixer or feed is a file here with `load`, `forward` and `Parameters`, one variant of [`Mixer`] or [`Feed`],
//! and one arm in each `match` below.

mod attention;
mod delta_net;
mod gated_conv;
mod latent;
mod mixture;
mod mlp;

use mlx_rs::Dtype;
use prompt::config::decoder::{self, DecoderConfig, Growth, Head, LayerConfig, Norms};

use crate::cache::{Cache, RecurrentCache};
use crate::error::Result;
use crate::layers::{factors, Embedding, Linear, Parameters, RmsNorm, Rope, Rotation, Stream};
use crate::ops::Mask;
use crate::tensor::Tensor;
use crate::weights::Weights;
use attention::Attention;
use delta_net::DeltaNet;
use gated_conv::GatedConv;
use latent::Latent;
use mixture::Mixture;
use mlp::Mlp;

/// What the parts of a layer need beside their own config while they are loaded.
struct Loading<'a, 'w> {
    config: &'a DecoderConfig,
    weights: &'a mut Weights<'w>,
    /// Type of activations and of what is not quantised.
    dtype: Dtype,
    ropes: &'a [Rope],
    /// The windows met so far; attention refers to its mask by the index.
    windows: &'a mut Vec<Option<u32>>,
}

impl Loading<'_, '_> {
    /// The index of the mask for this window.
    fn mask(&mut self, window: Option<u32>) -> usize {
        let known = self.windows.iter().position(|other| *other == window);
        known.unwrap_or_else(|| {
            self.windows.push(window);
            self.windows.len() - 1
        })
    }
}

/// What all layers share in one step.
struct Step<'a> {
    ropes: &'a [Rope],
    rotations: Vec<Rotation>,
    /// One per window.
    masks: Vec<Mask>,
    growth: Option<Factor>,
}

/// How much queries grow at the positions of a step.
enum Factor {
    /// At the only position.
    One(f32),
    /// `[1, 1, length, 1]`.
    Many(Tensor),
}

/// How a layer mixes positions.
enum Mixer {
    Attention(Attention),
    DeltaNet(DeltaNet),
    GatedConv(GatedConv),
    Latent(Box<Latent>),
}

impl Mixer {
    fn load(config: &decoder::Mixer, layer: usize, loading: &mut Loading<'_, '_>) -> Result<Self> {
        let path = format!("layers.{layer}");
        match config {
            decoder::Mixer::Attention(config) => Ok(Self::Attention(Attention::load(config, &format!("{path}.self_attn"), loading)?)),
            decoder::Mixer::DeltaNet(config) => Ok(Self::DeltaNet(DeltaNet::load(config, &format!("{path}.linear_attn"), loading)?)),
            decoder::Mixer::Latent(config) => Ok(Self::Latent(Box::new(Latent::load(config, &format!("{path}.self_attn"), loading)?))),
            decoder::Mixer::GatedConv(config) => Ok(Self::GatedConv(GatedConv::load(config, &format!("{path}.conv"), loading)?)),
        }
    }

    fn cache(&self) -> Cache {
        match self {
            Self::Attention(attention) => attention.cache(),
            Self::Latent(latent) => latent.cache(),
            Self::DeltaNet(_) | Self::GatedConv(_) => Cache::Recurrent(RecurrentCache::default()),
        }
    }

    /// The index of its mask, for those that look at a cache of keys.
    fn mask(&self) -> Option<usize> {
        match self {
            Self::Attention(attention) => Some(attention.mask()),
            Self::Latent(latent) => Some(latent.mask()),
            Self::DeltaNet(_) | Self::GatedConv(_) => None,
        }
    }

    fn forward(&self, stream: &mut Stream<'_>, norm: Option<&RmsNorm>, step: &Step<'_>, cache: &mut Cache) -> Result<Tensor> {
        match self {
            Self::Attention(attention) => attention.forward(stream, norm, step, cache),
            Self::Latent(latent) => latent.forward(&stream.normed(norm)?, step, cache),
            Self::DeltaNet(net) => net.forward(&stream.normed(norm)?, cache.recurrent()),
            Self::GatedConv(conv) => conv.forward(&stream.normed(norm)?, cache.recurrent()),
        }
    }
}

/// What a layer does with each position.
enum Feed {
    Dense(Mlp),
    Experts(Box<Mixture>),
}

impl Feed {
    fn load(config: &decoder::Feed, layer: usize, loading: &mut Loading<'_, '_>) -> Result<Self> {
        let path = format!("layers.{layer}.mlp");
        match config {
            decoder::Feed::Dense(config) => Ok(Self::Dense(Mlp::load(config, &path, loading)?)),
            decoder::Feed::Experts(config) => Ok(Self::Experts(Box::new(Mixture::load(config, &path, loading)?))),
        }
    }

    fn forward(&self, stream: &mut Stream<'_>, norm: Option<&RmsNorm>) -> Result<Tensor> {
        match self {
            Self::Dense(mlp) => mlp.read(stream, norm),
            Self::Experts(mixture) => mixture.forward(&stream.normed(norm)?),
        }
    }
}

struct Layer {
    before_mixer: Option<RmsNorm>,
    mixer: Mixer,
    after_mixer: Option<RmsNorm>,
    before_feed: Option<RmsNorm>,
    feed: Feed,
    after_feed: Option<RmsNorm>,
}

impl Layer {
    fn load(config: &LayerConfig, layer: usize, loading: &mut Loading<'_, '_>) -> Result<Self> {
        let names = match config.norms {
            Norms::Before => [Some("input_layernorm"), None, Some("post_attention_layernorm"), None],
            Norms::After => [None, Some("post_attention_layernorm"), None, Some("post_feedforward_layernorm")],
            Norms::Around => [
                Some("input_layernorm"),
                Some("post_attention_layernorm"),
                Some("pre_feedforward_layernorm"),
                Some("post_feedforward_layernorm"),
            ],
        };
        let mut norm = |name: Option<&str>| {
            let width = loading.config.hidden_size as i32;
            let load = |name| RmsNorm::load_from(loading.weights, &format!("layers.{layer}.{name}"), width, loading.config.norm);
            name.map(load).transpose()
        };
        let [before_mixer, after_mixer, before_feed, after_feed] = names;
        Ok(Self {
            before_mixer: norm(before_mixer)?,
            after_mixer: norm(after_mixer)?,
            before_feed: norm(before_feed)?,
            after_feed: norm(after_feed)?,
            mixer: Mixer::load(&config.mixer, layer, loading)?,
            feed: Feed::load(&config.feed, layer, loading)?,
        })
    }

    /// Takes the residual stream through this layer.
    fn forward<'a>(&'a self, stream: &mut Stream<'a>, step: &Step<'_>, addition: &Addition, cache: &mut Cache) -> Result<()> {
        let mixed = self.mixer.forward(stream, self.before_mixer.as_ref(), step, cache)?;
        addition.add(stream, mixed, self.after_mixer.as_ref())?;
        let fed = self.feed.forward(stream, self.before_feed.as_ref())?;
        addition.add(stream, fed, self.after_feed.as_ref())
    }
}

/// How the parts of a layer are added to the residual stream.
#[derive(Default)]
struct Addition {
    /// What they are multiplied by before.
    factor: Option<Tensor>,
    /// The least and the greatest number that may come out, as 32 bit floats, for types that end early.
    bounds: Option<(Tensor, Tensor)>,
}

impl Addition {
    fn new(config: &DecoderConfig, dtype: Dtype) -> Result<Self> {
        /// The greatest finite float of 16 bits with 5 bits of exponent.
        const GREATEST: f32 = 65504.0;
        let bound = |value| Tensor::scalar(value, Dtype::Float32);
        Ok(Self {
            factor: config.residual_multiplier.map(|value| Tensor::scalar(value, dtype)).transpose()?,
            bounds: match config.clipped && dtype == Dtype::Float16 {
                true => Some((bound(-GREATEST)?, bound(GREATEST)?)),
                false => None,
            },
        })
    }

    /// Adds `norm(part)`.
    fn add<'a>(&self, stream: &mut Stream<'a>, part: Tensor, norm: Option<&'a RmsNorm>) -> Result<()> {
        if self.factor.is_none() && self.bounds.is_none() {
            return stream.add(part, norm, None);
        }
        let part = norm.map_or_else(|| Ok(part.clone()), |norm| norm.forward(&part))?;
        match (&self.factor, &self.bounds) {
            (Some(factor), _) => stream.add(part.mul(factor)?, None, None),
            (None, Some((least, greatest))) => {
                let h = stream.sum()?;
                let sum = h.astype(Dtype::Float32)?.add(&part.astype(Dtype::Float32)?)?;
                *stream = Stream::new(sum.clip(least, greatest)?.astype(h.dtype())?);
                Ok(())
            }
            (None, None) => stream.add(part, None, None),
        }
    }
}

impl Parameters for Addition {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self { factor, bounds } = self;
        factor.visit(visitor);
        if let Some((least, greatest)) = bounds {
            visitor(least);
            visitor(greatest);
        }
    }
}

/// The whole model.
pub struct Decoder {
    vocabulary: u32,
    embed_tokens: Embedding,
    embedding_multiplier: Option<Tensor>,
    addition: Addition,
    layers: Vec<Layer>,
    ropes: Vec<Rope>,
    /// For each window a layer that has it, whose cache then tells its mask.
    windows: Vec<usize>,
    growth: Option<Growth>,
    norm: RmsNorm,
    lm_head: Linear,
    logits_factor: Option<Tensor>,
    softcap: Option<Tensor>,
}

impl Decoder {
    /// Builds the model; every tensor of it is computed when this returns.
    pub fn load(config: &DecoderConfig, weights: &mut Weights<'_>) -> Result<Self> {
        weights.rename(config.renames);
        let config = &as_stored(config, weights);
        let (hidden, vocabulary) = (config.hidden_size as i32, config.vocab_size as i32);
        let norm = factors(weights, "norm", hidden, config.norm)?;
        let dtype = weights.dtype_of_matrix("embed_tokens").unwrap_or(norm.dtype());
        let scalar = |value: Option<f32>| value.map(|value| Tensor::scalar(value, dtype)).transpose();
        let embed_tokens = Embedding::load(weights, "embed_tokens", vocabulary, hidden)?;
        let tied = match config.head {
            Head::Tied => true,
            Head::Own => false,
            Head::OwnIfThere => !weights.has("lm_head.weight"),
        };
        // Before the layers, because widening and turning it takes the most memory of all, which is there while little else is.
        let lm_head = if tied {
            embed_tokens.as_linear()?
        } else {
            Linear::load(weights, "lm_head", hidden, vocabulary)?
        };
        weights.settle(lm_head.tensors())?;
        let ropes = ropes(config, dtype)?;
        let mut windows = Vec::new();
        let mut loading = Loading {
            config,
            weights,
            dtype,
            ropes: &ropes,
            windows: &mut windows,
        };
        let layers: Vec<Layer> = config
            .layers
            .iter()
            .enumerate()
            .map(|(index, layer)| Layer::load(layer, index, &mut loading))
            .collect::<Result<_>>()?;
        let model = Self {
            vocabulary: config.vocab_size,
            lm_head,
            embed_tokens,
            embedding_multiplier: scalar(config.embedding_multiplier)?,
            addition: Addition::new(config, dtype)?,
            windows: (0..windows.len())
                .filter_map(|window| layers.iter().position(|layer| layer.mixer.mask() == Some(window)))
                .collect(),
            layers,
            ropes,
            growth: config.layers.iter().find_map(|layer| match &layer.mixer {
                decoder::Mixer::Attention(attention) => attention.growth,
                decoder::Mixer::DeltaNet(_) | decoder::Mixer::GatedConv(_) | decoder::Mixer::Latent(_) => None,
            }),
            norm: RmsNorm::new(norm, config.norm.eps)?,
            logits_factor: scalar(config.logits_divisor.map(f32::recip))?,
            softcap: scalar(config.logits_softcap)?,
        };
        weights.settle(model.tensors())?;
        Ok(model)
    }

    /// How many tokens its vocabulary has.
    pub fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// One empty cache per layer.
    pub fn caches(&self) -> Vec<Cache> {
        self.layers.iter().map(|layer| layer.mixer.cache()).collect()
    }

    /// States `[length, hidden]` of the tokens `ids` `[length]`, which come next in the sequence of these caches.
    pub fn forward(&self, ids: &Tensor, caches: &mut [Cache]) -> Result<Tensor> {
        let mut h = self.embed_tokens.forward(ids)?;
        if let Some(factor) = &self.embedding_multiplier {
            h = h.mul(factor)?;
        }
        let step = self.step(ids.size(), caches)?;
        let mut stream = Stream::new(h);
        for (layer, cache) in self.layers.iter().zip(caches) {
            layer.forward(&mut stream, &step, &self.addition, cache)?;
        }
        Ok(stream.sum()?.clone())
    }

    fn step(&self, length: usize, caches: &[Cache]) -> Result<Step<'_>> {
        let offset = self.windows.first().map_or(0, |layer| caches[*layer].offset());
        Ok(Step {
            ropes: &self.ropes,
            rotations: self.ropes.iter().map(|rope| rope.at(offset, length)).collect(),
            masks: self
                .windows
                .iter()
                .map(|layer| caches[*layer].mask(length))
                .collect::<Result<_>>()?,
            growth: self.growth.and_then(|growth| factor(growth, offset, length)),
        })
    }

    /// Logits `[length, vocabulary]` of states.
    pub fn logits(&self, states: &Tensor) -> Result<Tensor> {
        let mut logits = self.lm_head.forward(&self.norm.forward(states)?)?;
        if let Some(factor) = &self.logits_factor {
            logits = logits.mul(factor)?;
        }
        match &self.softcap {
            Some(cap) => logits.div(cap)?.tanh()?.mul(cap),
            None => Ok(logits),
        }
    }
}

/// The config with what only the weights tell.
fn as_stored(config: &DecoderConfig, weights: &Weights<'_>) -> DecoderConfig {
    let mut config = config.clone();
    config.norm.offset |=
        config.offset_where_unturned && weights.any(|name, shape| name.ends_with(".conv1d.weight") && shape.last() != Some(&1));
    config
}

/// The ropes for the heads of the layers that use them.
fn ropes(config: &DecoderConfig, dtype: Dtype) -> Result<Vec<Rope>> {
    let width = |index: usize| {
        config.layers.iter().find_map(|layer| match &layer.mixer {
            decoder::Mixer::Attention(attention) => (attention.rope == Some(index)).then_some(attention.head_dim),
            decoder::Mixer::Latent(latent) => (latent.rope == index).then_some(latent.turning),
            decoder::Mixer::DeltaNet(_) | decoder::Mixer::GatedConv(_) => None,
        })
    };
    config
        .ropes
        .iter()
        .enumerate()
        .map(|(index, rope)| Rope::new(rope, width(index).unwrap_or(rope.dims), dtype))
        .collect()
}

/// How much queries grow from `offset` on; `None` where they do not, as in the context that the model was trained for.
fn factor(growth: Growth, offset: usize, length: usize) -> Option<Factor> {
    let grown = |position: usize| 1.0 + growth.beta * (1.0 + (position / growth.original_context as usize) as f32).ln();
    if offset + length <= growth.original_context as usize {
        return None;
    }
    if length == 1 {
        return Some(Factor::One(grown(offset)));
    }
    let factors: Vec<f32> = (offset..offset + length).map(grown).collect();
    Some(Factor::Many(Tensor::from_f32(&factors, &[1, 1, length as i32, 1])))
}

impl Parameters for Mixer {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Attention(attention) => attention.visit(visitor),
            Self::Latent(latent) => latent.visit(visitor),
            Self::DeltaNet(net) => net.visit(visitor),
            Self::GatedConv(conv) => conv.visit(visitor),
        }
    }
}

impl Parameters for Feed {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Dense(mlp) => mlp.visit(visitor),
            Self::Experts(mixture) => mixture.visit(visitor),
        }
    }
}

impl Parameters for Layer {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            before_mixer,
            mixer,
            after_mixer,
            before_feed,
            feed,
            after_feed,
        } = self;
        for norm in [before_mixer, after_mixer, before_feed, after_feed] {
            norm.visit(visitor);
        }
        mixer.visit(visitor);
        feed.visit(visitor);
    }
}

impl Parameters for Decoder {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            vocabulary: _,
            embed_tokens,
            embedding_multiplier,
            addition,
            layers,
            ropes,
            windows: _,
            growth: _,
            norm,
            lm_head,
            logits_factor,
            softcap,
        } = self;
        embed_tokens.visit(visitor);
        layers.visit(visitor);
        ropes.visit(visitor);
        norm.visit(visitor);
        lm_head.visit(visitor);
        addition.visit(visitor);
        for scalar in [embedding_multiplier, logits_factor, softcap] {
            scalar.visit(visitor);
        }
    }
}
