//! Gemma 4 and Gemma 3n, the text models: sliding and full attention with heads of different width, keys and values
//! that later layers share, per-layer inputs, experts, squeezed logits. Names are those of the checkpoint. Reference:
//! transformers' `modeling_gemma4.py`.

mod altup;
pub mod assistant;
mod attention;
mod feed_forward;
mod inputs;
mod layer;
mod load_context;
mod rope;

use altup::AltUpLayers;
use assistant::LastKeys;
use attention::{LayerPass, Step};
use checkpoint::config::gemma4::{Attention as Kind, Gemma4Config};
use inputs::PerLayerInputs;
use layer::Layer;
use load_context::LoadContext;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;
use rope::rope;

use crate::cache::{of_layer as caches_of_layer, Cache, PlainCache, RotatingCache};
use crate::error;
use crate::layers::{Embedding, Gelu, Linear, ResidualStream, RmsNorm, Rope};
use crate::models::Input;
use crate::weights::Weights;

/// The layers, first to last.
#[derive(Parameters)]
enum Layers {
    /// Of one stream.
    Plain(Vec<Layer>),
    /// Of several (Gemma 3n).
    AltUp(AltUpLayers),
}

/// The model.
#[derive(Parameters)]
pub struct Gemma4 {
    #[parameters(skip)]
    config: Gemma4Config,
    embed_tokens: Embedding,
    embed_scale: Tensor,
    per_layer_inputs: Option<PerLayerInputs>,
    layers: Layers,
    norm: RmsNorm,
    lm_head: Linear,
    softcap: Option<Tensor>,
    sliding_rope: Rope,
    full_rope: Rope,
}

impl Layers {
    fn load(config: &Gemma4Config, gelu: &Gelu, weights: &mut Weights<'_>) -> error::Result<Self> {
        let mut layers = match &config.altup {
            Some(altup) => Self::AltUp(AltUpLayers::load(altup, config.hidden_size as i32, weights)?),
            None => Self::Plain(Vec::new()),
        };
        for layer in 0..config.layers.len() {
            let loading = &mut LoadContext {
                config,
                layer,
                gelu,
                weights,
            };
            match (&mut layers, &config.altup) {
                (Self::AltUp(layers), Some(altup)) => layers.load_layer(altup, loading)?,
                (Self::Plain(layers), _) => layers.push(Layer::load(loading)?),
                (Self::AltUp(_), None) => unreachable!("several streams are described by the config"),
            }
        }
        Ok(layers)
    }
}

impl Gemma4 {
    /// Builds the model; every tensor of it is computed when this returns.
    pub fn load(config: &Gemma4Config, weights: &mut Weights<'_>) -> error::Result<Self> {
        let (hidden, vocabulary) = (config.hidden_size as i32, config.vocab_size as i32);
        let final_norm = weights.take("norm.weight", &[hidden])?;
        let dtype = final_norm.dtype();
        let gelu = Gelu::new(dtype)?;
        let embed_tokens = Embedding::load(weights, "embed_tokens", vocabulary, hidden)?;
        // Before the layers, because dequantizing and transposing it takes the most memory of all, which is free while
        // little else is loaded.
        let lm_head = if config.tie_word_embeddings {
            embed_tokens.as_linear(weights)?
        } else {
            Linear::load(weights, "lm_head", hidden, vocabulary)?
        };
        weights.materialize(lm_head.tensors())?;
        let model = Self {
            per_layer_inputs: config
                .hidden_size_per_layer_input
                .map(|width| PerLayerInputs::load(config, width, dtype, weights))
                .transpose()?,
            layers: Layers::load(config, &gelu, weights)?,
            norm: RmsNorm::new(final_norm, config.rms_norm_eps),
            lm_head,
            // Rounded to the model's type, as the training code and mlx-lm have it.
            embed_scale: Tensor::scalar((hidden as f32).sqrt(), dtype)?,
            embed_tokens,
            softcap: Tensor::optional_scalar(config.final_logit_softcapping, dtype)?,
            sliding_rope: rope(config.head_dim, &config.sliding_rope, dtype)?,
            full_rope: rope(config.global_head_dim, &config.full_rope, dtype)?,
            config: config.clone(),
        };
        weights.materialize(model.tensors())?;
        Ok(model)
    }

    /// Width of its states.
    pub fn hidden_size(&self) -> u32 {
        self.config.hidden_size
    }

    /// The number of tokens of its vocabulary.
    pub fn vocabulary(&self) -> u32 {
        self.config.vocab_size
    }

    /// One empty cache for every layer that has keys and values of its own.
    pub fn caches(&self) -> Vec<Cache> {
        let own = &self.config.layers[..self.config.own_kv_layers()];
        own.iter()
            .map(|kind| match kind {
                Kind::Full => Cache::Plain(PlainCache::default()),
                Kind::Sliding => Cache::Rotating(RotatingCache::new(self.config.sliding_window)),
            })
            .collect()
    }

    /// States `[rows, hidden]` of the tokens `[rows]` of `input`, which come next in the sequence of these caches; or
    /// one of them in each sequence.
    pub fn forward(&self, input: &Input<'_>, sequences: &mut [&mut [Cache]]) -> Result<Tensor> {
        // Images take the place of what was scaled, and are not scaled themselves.
        let h = input.place(self.embedded(input.ids)?)?;
        let inputs = match &self.per_layer_inputs {
            None => None,
            Some(inputs) => Some(match input.is_text() {
                None => inputs.forward(&self.with_inputs(input.ids)?, &h)?,
                // An image's tokens have the inputs of token 0, in addition to its embeddings.
                Some(text) => inputs.forward(&self.with_inputs(&input.ids.mul(&text)?)?, &h)?,
            }),
        };
        let sliding = self.step(Kind::Sliding, input, sequences)?;
        let full = self.step(Kind::Full, input, sequences)?;
        // The keys and values of each sequence that shared layers of each kind use: those of the last layer that has
        // its own.
        let (mut sliding_shared, mut full_shared) = (Vec::new(), Vec::new());
        let own = self.config.own_kv_layers();
        let mut several = match &self.layers {
            Layers::Plain(_) => None,
            Layers::AltUp(layers) => Some(layers.begin(&h)?),
        };
        let mut stream = ResidualStream::new(h);
        for index in 0..self.config.layers.len() {
            let (step, shared) = match self.config.layers[index] {
                Kind::Sliding => (&sliding, &mut sliding_shared),
                Kind::Full => (&full, &mut full_shared),
            };
            let step = step.as_ref().expect("every kind of layer has one with a cache");
            let of_layer = self.per_layer_inputs.as_ref().zip(inputs.as_ref());
            let input = of_layer.map(|(inputs, all)| inputs.of_layer(all, index)).transpose()?;
            let caches = if index < own {
                caches_of_layer(sequences, index..index + 1)
            } else {
                Vec::new()
            };
            let pass = &mut LayerPass {
                step,
                caches,
                donor: self.config.donor(index),
                shared,
            };
            match (&self.layers, &mut several, &input) {
                (Layers::AltUp(layers), Some(all), Some(input)) => {
                    *all = layers.layer(index).forward(all, input, pass)?;
                }
                (Layers::Plain(layers), ..) => layers[index].forward(&mut stream, input.as_ref(), pass)?,
                _ => unreachable!("several streams have inputs for every layer"),
            }
        }
        match (&self.layers, several) {
            (Layers::AltUp(layers), Some(all)) => layers.end(&all),
            _ => Ok(stream.sum()?.clone()),
        }
    }

    /// The scaled embeddings `[rows, hidden]` of tokens `[rows]`.
    pub fn embedded(&self, ids: &Tensor) -> Result<Tensor> {
        self.embed_tokens.forward(ids)?.mul(&self.embed_scale)
    }

    /// States `[rows, hidden]` after the last layer, normed.
    pub fn normed(&self, states: &Tensor) -> Result<Tensor> {
        self.norm.forward(states)
    }

    /// The keys and values of a sequence in the last layer of each kind that has its own.
    pub fn last_keys(&self, caches: &[Cache]) -> Result<LastKeys> {
        let own = &self.config.layers[..self.config.own_kv_layers()];
        let last = |kind: Kind| match own.iter().rposition(|other| *other == kind) {
            Some(layer) => caches[layer].seen(),
            None => Ok(None),
        };
        Ok(LastKeys {
            sliding: last(Kind::Sliding)?,
            full: last(Kind::Full)?,
        })
    }

    /// Tokens that have inputs of their own, 0 in place of others (Gemma 3n's marks).
    fn with_inputs(&self, ids: &Tensor) -> Result<Tensor> {
        if self.config.vocab_size_per_layer_input >= self.config.vocab_size {
            return Ok(ids.clone());
        }
        let limit = Tensor::from_i32(&[self.config.vocab_size_per_layer_input as i32], &[1]);
        ids.less(&limit)?.select(ids, &Tensor::from_i32(&[0], &[1]))
    }

    fn step(&self, kind: Kind, input: &Input<'_>, sequences: &[&mut [Cache]]) -> Result<Option<Step<'_>>> {
        let length = input.ids.size() / sequences.len();
        let full = kind == Kind::Full;
        let rope = if full { &self.full_rope } else { &self.sliding_rope };
        let own = &self.config.layers[..self.config.own_kv_layers()];
        let Some(layer) = own.iter().position(|other| *other == kind) else {
            return Ok(None);
        };
        let offsets: Vec<usize> = sequences.iter().map(|caches| caches[layer].offset()).collect();
        // Images look ahead in sliding layers only.
        let last_seen = if full { None } else { input.last_seen() };
        Ok(Some(Step {
            sequences: sequences.len(),
            window: (!full).then_some(self.config.sliding_window),
            rope,
            rotation: match offsets[..] {
                [offset] => rope.at(offset, length),
                _ => rope.at_each(&offsets),
            },
            mask: sequences[0][layer].mask(length, last_seen.as_deref())?,
        }))
    }

    /// Logits `[length, vocabulary]` of states.
    pub fn logits(&self, states: &Tensor) -> Result<Tensor> {
        let logits = self.lm_head.forward(&self.norm.forward(states)?)?;
        match &self.softcap {
            Some(cap) => logits.div(cap)?.tanh()?.mul(cap),
            None => Ok(logits),
        }
    }
}
