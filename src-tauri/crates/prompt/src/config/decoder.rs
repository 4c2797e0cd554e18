//! The parametric decoder: a stack of layers described one by one. Each family's parser fills it from `config.json`; one
//! loader in the engine builds all of them.
//!
//! A new kind of mixer or feed is one variant of [`Mixer`] or [`Feed`] with a struct that a family's parser fills, one file
//! in `engine/src/models/decoder`, and one arm in that folder's `mod.rs`. A new family is one file in `families` and one row
//! in the table there.

use super::rope::RopeConfig;
use super::ConfigError;

/// More layers than any model has; a config that claims more is broken.
const MOST_LAYERS: u32 = 4096;

/// Wider than any layer or vocabulary, and far inside of what the engine counts with.
const WIDEST: u64 = 1 << 24;

/// A whole model.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// Width of the residual stream.
    pub hidden_size: u32,
    /// Tokens of the vocabulary.
    pub vocab_size: u32,
    /// All root mean square norms.
    pub norm: NormConfig,
    /// Embeddings are multiplied by this (Gemma, Granite).
    pub embedding_multiplier: Option<f32>,
    /// What a mixer or feed gives is multiplied by this before it is added (Granite).
    pub residual_multiplier: Option<f32>,
    /// Logits are divided by this (Granite).
    pub logits_divisor: Option<f32>,
    /// Logits are squeezed into plus and minus this, after the division.
    pub logits_softcap: Option<f32>,
    /// Where the output layer is.
    pub head: Head,
    /// The rotary positions that layers refer to by index.
    pub ropes: Vec<RopeConfig>,
    /// The layers, first to last.
    pub layers: Vec<LayerConfig>,
    /// Parts of tensor names, and what this loader calls them: `("operator_norm", "input_layernorm")`. A part is one or more
    /// whole segments between dots; of several rows that fit a name the first counts.
    pub renames: &'static [(&'static str, &'static str)],
}

/// Root mean square norms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormConfig {
    /// Added to the mean square.
    pub eps: f32,
    /// Whether the factors are stored as their difference from 1 (Gemma 3).
    pub offset: bool,
}

/// Where the output layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// It is the embedding, whatever else the weights hold.
    Tied,
    /// `lm_head`.
    Own,
    /// `lm_head` where the weights have one, else the embedding: for families whose configs do not tell.
    OwnIfThere,
}

/// One layer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerConfig {
    /// Where its norms stand.
    pub norms: Norms,
    /// How it mixes positions.
    pub mixer: Mixer,
    /// What it does with each position.
    pub feed: Feed,
}

/// Where the norms of a layer stand, and their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norms {
    /// `input_layernorm` before the mixer, `post_attention_layernorm` before the feed (most families).
    Before,
    /// `post_attention_layernorm` after the mixer, `post_feedforward_layernorm` after the feed (OLMo 2 and 3).
    After,
    /// `input_layernorm`, `post_attention_layernorm` around the mixer, `pre_feedforward_layernorm`,
    /// `post_feedforward_layernorm` around the feed (Gemma 3, GLM 4).
    Around,
}

/// How a layer mixes positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Mixer {
    /// Softmax attention, `self_attn`.
    Attention(AttentionConfig),
}

/// What a layer does with each position.
#[derive(Debug, Clone, PartialEq)]
pub enum Feed {
    /// One gated network for all tokens, `mlp`.
    Dense(DenseConfig),
}

/// Softmax attention with heads that may share keys.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionConfig {
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub key_heads: u32,
    /// Width of a head.
    pub head_dim: u32,
    /// Positions a query sees, itself included; `None` for all.
    pub window: Option<u32>,
    /// Index into [`DecoderConfig::ropes`]; `None` for layers without positions.
    pub rope: Option<usize>,
    /// Factor of the scores, without what the rope adds.
    pub scale: f32,
    /// Whether q, k and v must have a bias.
    pub qkv_bias: bool,
    /// Whether o must have a bias.
    pub o_bias: bool,
    /// Norms of queries and keys.
    pub head_norm: HeadNorm,
    /// Queries grow with their position (Ministral 3).
    pub growth: Option<Growth>,
}

impl AttentionConfig {
    /// Plain attention: everything in sight, scores over the root of the width, no bias, no norms.
    pub fn new(heads: u32, key_heads: u32, head_dim: u32, rope: Option<usize>) -> Self {
        Self {
            heads,
            key_heads,
            head_dim,
            window: None,
            rope,
            scale: (head_dim as f32).powf(-0.5),
            qkv_bias: false,
            o_bias: false,
            head_norm: HeadNorm::None,
            growth: None,
        }
    }
}

/// Norms of queries and keys before they turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadNorm {
    /// None.
    None,
    /// `q_norm`, `k_norm` over the width of one head (Qwen 3).
    PerHead,
    /// `q_norm`, `k_norm` over all heads together (OLMo 2).
    Whole,
}

/// Queries times `1 + beta · ln(1 + floor(position / original_context))` (`llama_4_scaling_beta`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// How fast.
    pub beta: f32,
    /// Positions without growth.
    pub original_context: u32,
}

/// `down(activation(gate(x)) · up(x))`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DenseConfig {
    /// Width inside.
    pub width: u32,
    /// What the gate goes through.
    pub activation: Activation,
    /// Whether the projections must have a bias.
    pub bias: bool,
}

/// Activation functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `x · sigmoid(x)`.
    Silu,
    /// GELU by its tanh approximation.
    GeluTanh,
}

impl DecoderConfig {
    /// The attention of every layer that has one, to be changed.
    pub(super) fn attention(&mut self) -> impl Iterator<Item = &mut AttentionConfig> {
        self.layers.iter_mut().map(|layer| match &mut layer.mixer {
            Mixer::Attention(attention) => attention,
        })
    }

    /// Refuses shapes that no model has, so that nothing overflows or is allocated for them.
    pub(super) fn check(self) -> Result<Self, ConfigError> {
        let unusable = |field, reason: String| Err(ConfigError::Unusable { field, reason });
        check_width("hidden_size", self.hidden_size.into())?;
        check_width("vocab_size", self.vocab_size.into())?;
        for layer in &self.layers {
            match &layer.mixer {
                Mixer::Attention(attention) => attention.check(&self.ropes)?,
            }
            match &layer.feed {
                Feed::Dense(dense) => check_width("intermediate_size", 2 * u64::from(dense.width))?,
            }
        }
        let numbers = [
            ("rms_norm_eps", Some(self.norm.eps)),
            ("embedding_multiplier", self.embedding_multiplier),
            ("residual_multiplier", self.residual_multiplier),
            ("logits_scaling", self.logits_divisor),
            ("final_logit_softcapping", self.logits_softcap),
        ];
        match numbers
            .into_iter()
            .find(|(_, number)| number.is_some_and(|number| number.is_nan() || number <= 0.0))
        {
            Some((field, number)) => unusable(field, format!("{} is not above 0", number.unwrap_or_default())),
            None => Ok(self),
        }
    }
}

impl AttentionConfig {
    fn check(&self, ropes: &[RopeConfig]) -> Result<(), ConfigError> {
        let unusable = |field, reason: String| Err(ConfigError::Unusable { field, reason });
        if self.key_heads == 0 || !self.heads.is_multiple_of(self.key_heads) {
            return unusable(
                "num_key_value_heads",
                format!("{} heads cannot share {}", self.heads, self.key_heads),
            );
        }
        if self.head_dim == 0 || !self.head_dim.is_multiple_of(2) {
            return unusable("head_dim", format!("{} is not an even number above 0", self.head_dim));
        }
        check_width(
            "head_dim",
            (u64::from(self.heads) + 2 * u64::from(self.key_heads)) * u64::from(self.head_dim),
        )?;
        if self.window == Some(0) {
            return unusable("sliding_window", "it is 0".into());
        }
        check_width("sliding_window", self.window.unwrap_or(0).into())?;
        if !self.scale.is_finite() || self.scale <= 0.0 {
            return unusable("head_dim", format!("it makes the attention's scale {}", self.scale));
        }
        match self.rope.and_then(|rope| ropes.get(rope)) {
            Some(rope) if rope.dims > self.head_dim => unusable(
                "partial_rotary_factor",
                format!("{} of {} numbers of a head would turn", rope.dims, self.head_dim),
            ),
            _ => Ok(()),
        }
    }
}

/// Refuses a width that no model has.
pub(super) fn check_width(field: &'static str, width: u64) -> Result<(), ConfigError> {
    if width <= WIDEST {
        return Ok(());
    }
    Err(ConfigError::Unusable {
        field,
        reason: format!("it makes something {width} wide, and nothing is wider than {WIDEST}"),
    })
}

/// Refuses a number of layers that no model has.
pub(super) fn check_layers(count: u32) -> Result<u32, ConfigError> {
    if count <= MOST_LAYERS {
        return Ok(count);
    }
    Err(ConfigError::Unusable {
        field: "num_hidden_layers",
        reason: format!("{count} is more than {MOST_LAYERS}"),
    })
}
