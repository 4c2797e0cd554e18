//! The parametric decoder: builds the layers that a [`DecoderConfig`] describes and runs them. Names of tensors are
//! those of Llama's checkpoints; families with other names say so in [`DecoderConfig::renames`].
//!
//! A new kind of mixer or feed-forward is a file here with `load`, `forward` and `Parameters`, one variant of
//! [`Mixer`](mixer::Mixer) or [`FeedForward`](feed_forward::FeedForward), and one arm in each `match` of its file.

mod attention;
mod cross_attention;
mod delta_net;
mod embedding_pass;
mod feed_forward;
mod gated_conv;
mod joint;
mod layer;
mod load_context;
mod mamba;
mod mamba2;
mod mixer;
mod mla;
mod mlp;
mod norm;
mod plain_mlp;
mod residual_add;
mod rg_lru;
mod sparse_moe;
mod step;

use checkpoint::config::decoder::{self, DecoderConfig, LmHead, NormConfig, QueryScaling};
use mlx::parameters::Parameters;
use mlx::recording;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::{of_layer, Cache};
use crate::error::{self, Error};
use crate::layers::{Embedding, Linear, MultimodalRope, ResidualStream, Rope};
use crate::models::Input;
use crate::weights::Weights;
use layer::Layer;
use load_context::LoadContext;
use norm::Norm;
use residual_add::ResidualAdd;
use step::{query_scale, Step};

/// The model.
#[derive(Parameters)]
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
    /// The windows, each with the place of a cache that tells its mask.
    #[parameters(skip)]
    windows: Vec<(Option<u32>, usize)>,
    #[parameters(skip)]
    query_scaling: Option<QueryScaling>,
    norm: Norm,
    /// `None` if the model makes embeddings.
    lm_head: Option<Linear>,
    /// True if several texts may be read one after another in one pass.
    packs: bool,
    bidirectional: bool,
    logits_factor: Option<Tensor>,
    softcap: Option<Tensor>,
}

impl Decoder {
    /// Builds the model; every tensor of it is computed when this returns.
    pub fn load(config: &DecoderConfig, weights: &mut Weights<'_>) -> error::Result<Self> {
        config.renames.iter().for_each(|table| weights.rename(table));
        let config = &as_stored(config, weights);
        let (hidden, vocabulary) = (config.hidden_size as i32, config.vocab_size as i32);
        let dtype = weights
            .dtype_of_matrix("embed_tokens")
            .unwrap_or_else(|| weights.dtype("norm.weight"));
        let last = NormConfig {
            bare: false,
            ..config.norm
        };
        let norm = Norm::load(weights, "norm", hidden, last, dtype)?;
        let scalar = |value: Option<f32>| value.map(|value| Tensor::scalar(value, dtype)).transpose();
        let embeddings = vocabulary + config.read_only_tokens as i32;
        let embed_tokens = Embedding::load(weights, "embed_tokens", embeddings, hidden)?;
        // Before the layers, because dequantizing and transposing it takes the most memory of all, which is free while
        // little else is loaded.
        let lm_head = match config.lm_head {
            LmHead::Absent => None,
            LmHead::Untied => Some(Linear::load(weights, "lm_head", hidden, vocabulary)?),
            LmHead::UntiedIfPresent if weights.has("lm_head.weight") => {
                Some(Linear::load(weights, "lm_head", hidden, vocabulary)?)
            }
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
            caches: 0,
        };
        let numbers = (0..).filter(|number| !config.absent_layers.contains(number));
        let layers: Vec<Layer> = numbers
            .zip(&config.layers)
            .map(|(number, layer)| Layer::load(layer, number as usize, &mut loading))
            .collect::<error::Result<_>>()?;
        let model = Self {
            hidden_size: config.hidden_size,
            vocabulary: config.vocab_size,
            readable: config.vocab_size + config.read_only_tokens,
            packs: embedding_pass::packs(config),
            bidirectional: config.bidirectional,
            lm_head,
            embed_tokens,
            embedding_multiplier: scalar(config.embedding_multiplier)?,
            residual_add: ResidualAdd::new(config, dtype)?,
            windows: windows
                .into_iter()
                .enumerate()
                .filter_map(|(index, window)| {
                    let mut masks = layers.iter().filter_map(Layer::mask);
                    masks.find_map(|(mask, cache)| (mask == index).then_some((window, cache)))
                })
                .collect(),
            layers,
            ropes,
            query_scaling: config
                .layers
                .iter()
                .find_map(|layer| layer.mixer.attention()?.query_scaling),
            norm,
            logits_factor: scalar(config.logits_divisor.map(f32::recip))?,
            softcap: scalar(config.logits_softcap)?,
        };
        weights.materialize(model.tensors())?;
        Ok(model)
    }

    /// True if a position gives the same result however many come with it.
    pub fn reads_chunks_alike(&self) -> bool {
        self.ropes.iter().all(|rope| !rope.is_dynamic())
    }

    /// Width of its states.
    pub fn hidden_size(&self) -> u32 {
        self.hidden_size
    }

    /// The positions of image tokens, if they depend on more than the number of tokens before them.
    pub fn multimodal_rope(&self) -> Option<MultimodalRope> {
        self.ropes.iter().find_map(Rope::multimodal_rope)
    }

    /// The number of tokens that it reads.
    pub fn readable(&self) -> u32 {
        self.readable
    }

    /// The number of tokens of its vocabulary.
    pub fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// The empty caches of all layers.
    pub fn caches(&self) -> Vec<Cache> {
        self.layers.iter().flat_map(Layer::caches).collect()
    }

    /// States `[rows, hidden]` of the tokens `[rows]` of `input`, which come next in the sequence of these caches; or
    /// one of them in each sequence.
    pub fn forward(&self, input: &Input<'_>, sequences: &mut [&mut [Cache]]) -> Result<Tensor> {
        let step = self.step(input, input.ids.size() / sequences.len(), sequences)?;
        let mut stream = ResidualStream::new(input.place(self.embed(input.ids)?)?);
        for (index, layer) in self.layers.iter().enumerate() {
            let caches = &mut of_layer(sequences, layer.caches.clone());
            layer.forward(&mut stream, &step, &self.residual_add, caches)?;
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
        let offset = |caches: &&mut [Cache]| self.windows.first().map_or(0, |(_, place)| caches[*place].offset());
        let offsets: Vec<usize> = sequences.iter().map(offset).collect();
        let next: Vec<usize> = (0..)
            .zip(&offsets)
            .map(|(index, offset)| input.position(index, *offset))
            .collect();
        let rotation = |rope: &Rope| match (input.positions, &next[..]) {
            (Some(positions), _) => rope.at_positions(positions),
            (None, [place]) => Ok(rope.at(*place, length)),
            (None, _) => Ok(rope.at_each(&next)),
        };
        if self.query_scaling.is_some() && recording::is_on() {
            return Err(mlx::Error::Unsupported(
                "a recorded step whose queries grow with their positions".into(),
            ));
        }
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
                .map(|(_, place)| sequences[0][*place].mask(length, last_seen.as_deref()))
                .collect::<Result<_>>()?,
            query_scaling: offsets.iter().map(scale).collect(),
            images: input.images,
        })
    }

    /// Logits `[length, vocabulary]` of states.
    pub fn logits(&self, states: &Tensor) -> error::Result<Tensor> {
        let lm_head = self.lm_head.as_ref().ok_or(Error::NotForChat)?;
        let mut logits = lm_head.forward(&self.norm.forward(states)?)?;
        if let Some(factor) = &self.logits_factor {
            logits = logits.mul(factor)?;
        }
        Ok(match &self.softcap {
            Some(cap) => logits.div(cap)?.tanh()?.mul(cap)?,
            None => logits,
        })
    }
}

/// The config with what only the weights tell.
fn as_stored(config: &DecoderConfig, weights: &mut Weights<'_>) -> DecoderConfig {
    let mut config = config.clone();
    // mlx-lm transposes convolutions.
    let original = weights.any(|name, shape| name.ends_with(".conv1d.weight") && shape.last() != Some(&1));
    config.norm.offset |= config.norm_offset_unless_sanitized && original;
    if let Some(folded) = &config.folded {
        if original {
            config.embedding_multiplier = Some(folded.embedding);
            config.logits_divisor = Some(folded.logits.recip());
            weights.scale(&folded.matrices);
        } else if config.lm_head == LmHead::Tied || !weights.has("lm_head.weight") {
            config.logits_divisor = Some(folded.embedding / folded.logits);
        }
    }
    // Conversions for text alone may leave out the tokens that stand for images.
    let stored = weights.shape("embed_tokens.weight").and_then(|shape| shape.first());
    if stored.is_some_and(|rows| *rows == config.vocab_size as i32) {
        config.read_only_tokens = 0;
    }
    config
}

/// The ropes for the heads of the layers that use them.
fn ropes(config: &DecoderConfig, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Vec<Rope>> {
    let heads = config
        .layers
        .iter()
        .find_map(|layer| layer.mixer.attention().map(|attention| attention.heads as i32));
    let width = |index: usize| {
        config.layers.iter().find_map(|layer| match &layer.mixer {
            decoder::Mixer::Mla(latent) => (latent.rope == index).then_some(latent.qk_rope_head_dim),
            mixer => mixer
                .attention()
                .and_then(|attention| (attention.rope == Some(index)).then_some(attention.head_dim)),
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
