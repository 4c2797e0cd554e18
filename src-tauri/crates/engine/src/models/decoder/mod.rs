//! The parametric decoder: builds the layers that a [`DecoderConfig`] describes and runs them. Names of tensors are those of
//! Llama's checkpoints; families with other names say so in [`DecoderConfig::renames`].
//!
//! A new kind of mixer or feed-forward is a file here with `load`, `forward` and `Parameters`, one variant of [`Mixer`] or [`FeedForward`],
//! and one arm in each `match` below.

mod attention;
mod cross_attention;
mod delta_net;
mod gated_conv;
mod layer;
mod mla;
mod mlp;
mod residual_add;
mod sparse_moe;
mod whole;

use checkpoint::config::decoder::{self, DecoderConfig, LmHead, QueryScaling};
use mlx_rs::Dtype;

use crate::cache::{of_layer, Cache, CrossCache, RecurrentCache};
use crate::error::{Error, Result};
use crate::layers::{norm_weight, Embedding, Linear, MultimodalRope, ResidualStream, RmsNorm, Rope, Rotation};
use crate::models::{ChunkImage, Input};
use crate::ops::Mask;
use crate::parameters::{parameters, Parameters};
use crate::tensor::Tensor;
use crate::weights::Weights;
use attention::Attention;
use cross_attention::CrossAttention;
use delta_net::DeltaNet;
use gated_conv::GatedConv;
use layer::Layer;
use mla::Mla;
use mlp::Mlp;
use residual_add::ResidualAdd;
use sparse_moe::SparseMoe;

/// What the parts of a layer need in addition to their own config while they are loaded.
struct LoadContext<'a, 'w> {
    config: &'a DecoderConfig,
    weights: &'a mut Weights<'w>,
    /// Type of activations and of what is not quantised.
    dtype: Dtype,
    ropes: &'a [Rope],
    /// The windows met so far; attention refers to its mask by the index.
    windows: &'a mut Vec<Option<u32>>,
}

impl LoadContext<'_, '_> {
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
    /// How many sequences there are. Several have one row each.
    sequences: usize,
    ropes: &'a [Rope],
    rotations: Vec<Rotation>,
    /// One per window, for every sequence: one that has a single row sees all of its keys.
    masks: Vec<Mask>,
    /// One per sequence.
    query_scaling: Vec<Option<QueryScale>>,
    /// Pictures of the chunk.
    images: &'a [ChunkImage],
}

/// The factors of queries at the positions of a step, which grow with the position.
enum QueryScale {
    /// At the only position.
    Single(f32),
    /// `[1, 1, length, 1]`.
    PerPosition(Tensor),
}

/// How a layer mixes positions.
enum Mixer {
    Attention(Attention),
    DeltaNet(DeltaNet),
    GatedConv(GatedConv),
    Mla(Box<Mla>),
    CrossAttention(Box<CrossAttention>),
}

impl Mixer {
    fn load(config: &decoder::Mixer, layer: usize, loading: &mut LoadContext<'_, '_>) -> Result<Self> {
        let path = format!("layers.{layer}");
        match config {
            decoder::Mixer::Attention(config) => Ok(Self::Attention(Attention::load(config, &format!("{path}.self_attn"), loading)?)),
            decoder::Mixer::DeltaNet(config) => Ok(Self::DeltaNet(DeltaNet::load(config, &format!("{path}.linear_attn"), loading)?)),
            decoder::Mixer::Mla(config) => Ok(Self::Mla(Box::new(Mla::load(config, &format!("{path}.self_attn"), loading)?))),
            decoder::Mixer::GatedConv(config) => Ok(Self::GatedConv(GatedConv::load(config, &format!("{path}.conv"), loading)?)),
            decoder::Mixer::CrossAttention(config) => Ok(Self::CrossAttention(Box::new(CrossAttention::load(config, &path, loading)?))),
        }
    }

    fn cache(&self) -> Cache {
        match self {
            Self::Attention(attention) => attention.cache(),
            Self::Mla(mla) => mla.cache(),
            Self::DeltaNet(_) | Self::GatedConv(_) => Cache::Recurrent(RecurrentCache::default()),
            Self::CrossAttention(_) => Cache::Cross(CrossCache::default()),
        }
    }

    /// The index of its mask, for those that look at a cache of keys.
    fn mask(&self) -> Option<usize> {
        match self {
            Self::Attention(attention) => Some(attention.mask()),
            Self::Mla(mla) => Some(mla.mask()),
            Self::DeltaNet(_) | Self::GatedConv(_) | Self::CrossAttention(_) => None,
        }
    }

    fn forward(
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

/// What a layer does with each position.
enum FeedForward {
    Dense(Mlp),
    SparseMoe(Box<SparseMoe>),
}

impl FeedForward {
    fn load(config: &decoder::FeedForward, layer: usize, loading: &mut LoadContext<'_, '_>) -> Result<Self> {
        let path = format!("layers.{layer}.mlp");
        match config {
            decoder::FeedForward::Dense(config) => Ok(Self::Dense(Mlp::load(config, &path, loading)?)),
            decoder::FeedForward::Moe(config) => Ok(Self::SparseMoe(Box::new(SparseMoe::load(config, &path, loading)?))),
        }
    }

    fn forward(&self, stream: &mut ResidualStream<'_>, norm: Option<&RmsNorm>) -> Result<Tensor> {
        match self {
            Self::Dense(mlp) => mlp.forward_normed(stream, norm),
            Self::SparseMoe(moe) => moe.forward(&stream.normed(norm)?),
        }
    }
}

/// The whole model.
pub struct Decoder {
    hidden_size: u32,
    vocabulary: u32,
    /// Tokens that have an embedding, some of which are never written.
    readable: u32,
    embed_tokens: Embedding,
    embedding_multiplier: Option<Tensor>,
    residual_add: ResidualAdd,
    layers: Vec<Layer>,
    ropes: Vec<Rope>,
    /// For each window a layer that has it, whose cache then tells its mask.
    windows: Vec<usize>,
    query_scaling: Option<QueryScaling>,
    norm: RmsNorm,
    /// `None` if the model makes embeddings.
    lm_head: Option<Linear>,
    /// Whether several texts may be read one after another at once.
    packs: bool,
    bidirectional: bool,
    logits_factor: Option<Tensor>,
    softcap: Option<Tensor>,
}

impl Decoder {
    /// Builds the model; every tensor of it is computed when this returns.
    pub fn load(config: &DecoderConfig, weights: &mut Weights<'_>) -> Result<Self> {
        weights.rename(config.renames);
        let config = &as_stored(config, weights);
        let (hidden, vocabulary) = (config.hidden_size as i32, config.vocab_size as i32);
        let norm = norm_weight(weights, "norm", hidden, config.norm)?;
        let dtype = weights.dtype_of_matrix("embed_tokens").unwrap_or(norm.dtype());
        let scalar = |value: Option<f32>| value.map(|value| Tensor::scalar(value, dtype)).transpose();
        let embeddings = vocabulary + config.read_only_tokens as i32;
        let embed_tokens = Embedding::load(weights, "embed_tokens", embeddings, hidden)?;
        // Before the layers, because dequantising and transposing it takes the most memory of all, which is free while little else is loaded.
        let lm_head = match config.lm_head {
            LmHead::Absent => None,
            LmHead::Untied => Some(Linear::load(weights, "lm_head", hidden, vocabulary)?),
            LmHead::UntiedIfPresent if weights.has("lm_head.weight") => Some(Linear::load(weights, "lm_head", hidden, vocabulary)?),
            LmHead::Tied | LmHead::UntiedIfPresent => Some(embed_tokens.as_linear(weights)?),
        };
        weights.materialize(lm_head.tensors())?;
        let ropes = ropes(config, dtype, weights)?;
        let mut windows = Vec::new();
        let mut loading = LoadContext {
            config,
            weights,
            dtype,
            ropes: &ropes,
            windows: &mut windows,
        };
        let numbers = (0..).filter(|number| !config.absent_layers.contains(number));
        let layers: Vec<Layer> = numbers
            .zip(&config.layers)
            .map(|(number, layer)| Layer::load(layer, number as usize, &mut loading))
            .collect::<Result<_>>()?;
        let model = Self {
            hidden_size: config.hidden_size,
            vocabulary: config.vocab_size,
            readable: config.vocab_size + config.read_only_tokens,
            packs: whole::packs(config),
            bidirectional: config.bidirectional,
            lm_head,
            embed_tokens,
            embedding_multiplier: scalar(config.embedding_multiplier)?,
            residual_add: ResidualAdd::new(config, dtype)?,
            windows: (0..windows.len())
                .filter_map(|window| layers.iter().position(|layer| layer.mixer.mask() == Some(window)))
                .collect(),
            layers,
            ropes,
            query_scaling: config.layers.iter().find_map(|layer| match &layer.mixer {
                decoder::Mixer::Attention(attention) => attention.query_scaling,
                decoder::Mixer::DeltaNet(_) | decoder::Mixer::GatedConv(_) | decoder::Mixer::Mla(_) | decoder::Mixer::CrossAttention(_) => {
                    None
                }
            }),
            norm: RmsNorm::new(norm, config.norm.eps)?,
            logits_factor: scalar(config.logits_divisor.map(f32::recip))?,
            softcap: scalar(config.logits_softcap)?,
        };
        weights.materialize(model.tensors())?;
        Ok(model)
    }

    /// Whether a position is read alike however many come with it.
    pub fn reads_chunks_alike(&self) -> bool {
        self.ropes.iter().all(|rope| !rope.is_dynamic())
    }

    /// Width of its states.
    pub fn hidden_size(&self) -> u32 {
        self.hidden_size
    }

    /// How tokens of pictures are told apart, if by more than the number of tokens before them.
    pub fn multimodal_rope(&self) -> Option<MultimodalRope> {
        self.ropes.iter().find_map(Rope::multimodal_rope)
    }

    /// How many tokens it reads.
    pub fn readable(&self) -> u32 {
        self.readable
    }

    /// How many tokens its vocabulary has.
    pub fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// One empty cache per layer.
    pub fn caches(&self) -> Vec<Cache> {
        self.layers.iter().map(|layer| layer.mixer.cache()).collect()
    }

    /// States `[rows, hidden]` of the tokens `[rows]` of `input`, which come next in the sequence of these caches; or one of them in
    /// each sequence.
    pub fn forward(&self, input: &Input<'_>, sequences: &mut [&mut [Cache]]) -> Result<Tensor> {
        let step = self.step(input, input.ids.size() / sequences.len(), sequences)?;
        let mut stream = ResidualStream::new(input.place(self.embed(input.ids)?)?);
        for (index, layer) in self.layers.iter().enumerate() {
            layer.forward(&mut stream, &step, &self.residual_add, &mut of_layer(sequences, index))?;
            if let Some(deep) = input.deep(index)? {
                stream.add(deep, None, None)?;
            }
        }
        Ok(stream.sum()?.clone())
    }

    /// The stream `[rows, hidden]` before the first layer.
    fn embed(&self, ids: &Tensor) -> Result<Tensor> {
        let h = self.embed_tokens.forward(ids)?;
        match &self.embedding_multiplier {
            Some(factor) => h.mul(factor),
            None => Ok(h),
        }
    }

    /// For sequences whose next `length` positions come.
    fn step<'a>(&'a self, input: &Input<'a>, length: usize, sequences: &[&mut [Cache]]) -> Result<Step<'a>> {
        let offset = |caches: &&mut [Cache]| self.windows.first().map_or(0, |layer| caches[*layer].offset());
        let offsets: Vec<usize> = sequences.iter().map(offset).collect();
        let next: Vec<usize> = (0..).zip(&offsets).map(|(index, offset)| input.position(index, *offset)).collect();
        let rotation = |rope: &Rope| match (input.positions, &next[..]) {
            (Some(positions), _) => rope.at_positions(positions),
            (None, [place]) => Ok(rope.at(*place, length)),
            (None, _) => Ok(rope.at_each(&next)),
        };
        let last_seen = input.last_seen();
        let scale = |offset: &usize| {
            self.query_scaling
                .and_then(|query_scaling| query_scale(query_scaling, *offset, length))
        };
        Ok(Step {
            sequences: sequences.len(),
            ropes: &self.ropes,
            rotations: self.ropes.iter().map(rotation).collect::<Result<_>>()?,
            masks: self
                .windows
                .iter()
                .map(|layer| sequences[0][*layer].mask(length, last_seen.as_deref()))
                .collect::<Result<_>>()?,
            query_scaling: offsets.iter().map(scale).collect(),
            images: input.images,
        })
    }

    /// Logits `[length, vocabulary]` of states.
    pub fn logits(&self, states: &Tensor) -> Result<Tensor> {
        let lm_head = self.lm_head.as_ref().ok_or(Error::NotForChat)?;
        let mut logits = lm_head.forward(&self.norm.forward(states)?)?;
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
        config.norm_offset_unless_sanitized && weights.any(|name, shape| name.ends_with(".conv1d.weight") && shape.last() != Some(&1));
    // Conversions for text alone may leave out the tokens that stand for pictures.
    let stored = weights.shape("embed_tokens.weight").and_then(|shape| shape.first());
    if stored.is_some_and(|rows| *rows == config.vocab_size as i32) {
        config.read_only_tokens = 0;
    }
    config
}

/// The ropes for the heads of the layers that use them.
fn ropes(config: &DecoderConfig, dtype: Dtype, weights: &mut Weights<'_>) -> Result<Vec<Rope>> {
    let heads = config.layers.iter().find_map(|layer| match &layer.mixer {
        decoder::Mixer::Attention(attention) => Some(attention.heads as i32),
        decoder::Mixer::Mla(_) | decoder::Mixer::DeltaNet(_) | decoder::Mixer::GatedConv(_) | decoder::Mixer::CrossAttention(_) => None,
    });
    let width = |index: usize| {
        config.layers.iter().find_map(|layer| match &layer.mixer {
            decoder::Mixer::Attention(attention) => (attention.rope == Some(index)).then_some(attention.head_dim),
            decoder::Mixer::Mla(latent) => (latent.rope == index).then_some(latent.qk_rope_head_dim),
            decoder::Mixer::DeltaNet(_) | decoder::Mixer::GatedConv(_) | decoder::Mixer::CrossAttention(_) => None,
        })
    };
    config
        .ropes
        .iter()
        .enumerate()
        .map(|(index, config)| {
            let rope = Rope::new(config, width(index).unwrap_or(config.dims), dtype)?;
            if !config.golden {
                return Ok(rope);
            }
            let directions = weights.take("freqs_cis_golden", &[heads.unwrap_or(0), config.dims as i32 / 4, 2])?;
            Ok(rope.with_directions(directions.astype(Dtype::Float32)?.to_f32()?))
        })
        .collect()
}

/// The factors of queries from `offset` on; `None` if they are all 1, as within the context that the model was trained for.
fn query_scale(query_scaling: QueryScaling, offset: usize, length: usize) -> Option<QueryScale> {
    let scale_at = |position: usize| 1.0 + query_scaling.beta * (1.0 + (position / query_scaling.original_context as usize) as f32).ln();
    if offset + length <= query_scaling.original_context as usize {
        return None;
    }
    if length == 1 {
        return Some(QueryScale::Single(scale_at(offset)));
    }
    let factors: Vec<f32> = (offset..offset + length).map(scale_at).collect();
    Some(QueryScale::PerPosition(Tensor::from_f32(&factors, &[1, 1, length as i32, 1])))
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

impl Parameters for FeedForward {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Dense(mlp) => mlp.visit(visitor),
            Self::SparseMoe(moe) => moe.visit(visitor),
        }
    }
}

parameters!(Decoder {
    embed_tokens,
    layers,
    ropes,
    norm,
    lm_head,
    residual_add,
    embedding_multiplier,
    logits_factor,
    softcap,
    hidden_size: _,
    vocabulary: _,
    readable: _,
    windows: _,
    query_scaling: _,
    packs: _,
    bidirectional: _,
});
