//! The assistant of Gemma 4, which drafts what the model says next: its layers attend to the keys and values of the
//! model's last layers, all from the position of the last token that the model has read. Reference: transformers'
//! `modeling_gemma4_assistant.py`.

use checkpoint::config::gemma4::{AssistantConfig, Attention as Kind, Centroids, Gemma4Config};
use mlx::ops::{concatenate, ids_tensor, Mask};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::attention::{LayerPass, Step};
use super::layer::Layer;
use super::load_context::LoadContext;
use super::rope::rope;
use crate::cache::KvView;
use crate::error::{self, Error};
use crate::layers::{top_k_indices, Embedding, Gelu, Linear, ResidualStream, RmsNorm, Rope};
use crate::weights::Weights;

/// The keys and values of a sequence that each kind of layer attends to.
pub struct LastKeys {
    /// Those of the last sliding layer, as far as its window goes.
    pub sliding: Option<KvView>,
    /// Those of the last full layer.
    pub full: Option<KvView>,
}

/// An assistant.
#[derive(Parameters)]
pub struct Assistant {
    #[parameters(skip)]
    config: Gemma4Config,
    model_width: u32,
    /// From a token's embedding and the model's state side by side.
    pre_projection: Linear,
    /// To the model's width.
    post_projection: Linear,
    layers: Vec<Layer>,
    norm: RmsNorm,
    output: Output,
    sliding_rope: Rope,
    full_rope: Rope,
}

/// The way to the next token.
#[derive(Parameters)]
enum Output {
    /// All tokens are compared.
    All(Linear),
    /// Those of the groups whose centroids fit best: the centroids, the tokens `[groups, tokens]` of each group, the
    /// rows of tokens, and how many groups.
    Groups(Linear, Tensor, Embedding, i32),
}

impl Assistant {
    /// Builds the assistant; every tensor of it is computed when this returns.
    pub fn load(assistant: &AssistantConfig, weights: &mut Weights<'_>) -> error::Result<Self> {
        let config = &assistant.text;
        let (hidden, model_width) = (config.hidden_size as i32, assistant.model_width as i32);
        let norm = RmsNorm::load(weights, "norm", hidden, config.rms_norm_eps)?;
        let dtype = weights.dtype("layers.0.input_layernorm.weight");
        let gelu = Gelu::new(dtype)?;
        let output = Output::load(assistant, weights)?;
        let layers = (0..config.layers.len()).map(|layer| {
            Layer::load(&mut LoadContext {
                config,
                layer,
                gelu: &gelu,
                weights,
            })
        });
        let layers = layers.collect::<error::Result<_>>()?;
        let loaded = Self {
            model_width: assistant.model_width,
            pre_projection: Linear::load(weights, "pre_projection", 2 * model_width, hidden)?,
            post_projection: Linear::load(weights, "post_projection", hidden, model_width)?,
            layers,
            norm,
            output,
            sliding_rope: rope(config.head_dim, &config.sliding_rope, dtype)?,
            full_rope: rope(config.global_head_dim, &config.full_rope, dtype)?,
            config: config.clone(),
        };
        weights.materialize(loaded.tensors())?;
        Ok(loaded)
    }

    /// Width of the states that it reads and gives.
    pub fn hidden_size(&self) -> u32 {
        self.model_width
    }

    /// The number of tokens of the vocabulary.
    pub fn vocabulary(&self) -> u32 {
        self.config.vocab_size
    }

    /// The likeliest token `[1]` after one with this embedding `[1, width]`, and the state `[1, width]` that is read
    /// with it next; `state` is the model's normed one before that token, or the last of its own. The model has read
    /// `read` positions.
    pub fn forward(&self, state: &Tensor, embedded: &Tensor, keys: &LastKeys, read: usize) -> Result<(Tensor, Tensor)> {
        let place = read.saturating_sub(1);
        let step = |kind: Kind| {
            let rope = match kind {
                Kind::Sliding => &self.sliding_rope,
                Kind::Full => &self.full_rope,
            };
            Step {
                sequences: 1,
                window: (kind == Kind::Sliding).then_some(self.config.sliding_window),
                rope,
                rotation: rope.at(place, 1),
                mask: Mask::None,
            }
        };
        let (sliding, full) = (step(Kind::Sliding), step(Kind::Full));
        let read = concatenate(&[embedded, state], -1)?;
        let mut stream = ResidualStream::new(self.pre_projection.forward(&read)?);
        for (layer, kind) in self.layers.iter().zip(&self.config.layers) {
            let (step, seen) = match kind {
                Kind::Sliding => (&sliding, &keys.sliding),
                Kind::Full => (&full, &keys.full),
            };
            let pass = &mut LayerPass {
                step,
                caches: Vec::new(),
                donor: 0,
                shared: &mut seen.iter().cloned().collect(),
            };
            layer.forward(&mut stream, None, pass)?;
        }
        let h = stream.normed(Some(&self.norm))?;
        Ok((self.output.likeliest(&h)?, self.post_projection.forward(&h)?))
    }
}

impl Output {
    fn load(assistant: &AssistantConfig, weights: &mut Weights<'_>) -> error::Result<Self> {
        let config = &assistant.text;
        let (hidden, vocabulary) = (config.hidden_size as i32, config.vocab_size as i32);
        let Some(Centroids { count, top_k }) = assistant.centroids else {
            if !config.tie_word_embeddings {
                return Ok(Self::All(Linear::load(weights, "lm_head", hidden, vocabulary)?));
            }
            let rows = Embedding::load(weights, "embed_tokens", vocabulary, hidden)?;
            return Ok(Self::All(rows.as_linear(weights)?));
        };
        const ORDER: &str = "masked_embedding.token_ordering";
        let order = weights.take_numbers(ORDER, vocabulary)?;
        if let Some(wrong) = order.iter().find(|id| **id >= config.vocab_size) {
            return Err(Error::BrokenFile {
                file: "model.safetensors".into(),
                reason: format!("`{ORDER}` names the token {wrong} of {vocabulary}"),
            });
        }
        Ok(Self::Groups(
            Linear::load(weights, "masked_embedding.centroids", hidden, count as i32)?,
            ids_tensor(&order)
                .astype(Dtype::Uint32)?
                .reshape(&[count as i32, vocabulary / count as i32])?,
            Embedding::load(weights, "embed_tokens", vocabulary, hidden)?,
            top_k as i32,
        ))
    }

    /// The likeliest token `[1]` of a normed state `[1, hidden]`.
    fn likeliest(&self, h: &Tensor) -> Result<Tensor> {
        match self {
            Self::All(output) => output.forward(h)?.argmax(-1, false),
            Self::Groups(centroids, order, rows, top_k) => {
                let groups = top_k_indices(&centroids.forward(h)?, *top_k)?;
                let ids = order.take(&groups.reshape(&[*top_k])?, 0)?.reshape(&[-1])?;
                let scores = rows.forward(&ids)?.mul(h)?.sum(-1, false)?;
                ids.take(&scores.argmax(-1, false)?.reshape(&[1])?, 0)
            }
        }
    }
}
