//! The parametric decoder: a stack of layers described one by one. Each family's parser fills it from `config.json`; one
//! loader in the engine builds all of them.
//!
//! A new kind of mixer or feed is one variant of [`Mixer`] or [`FeedForward`] with a struct that a family's parser fills, one file
//! in `engine/src/models/decoder`, and one arm in that folder's `mod.rs`. A new family is one file in `families` and one row
//! in the table there.

use super::mla::MlaConfig;
use super::moe::MoeConfig;
use super::rope::RopeConfig;
use crate::Error;

/// More layers than any model has; a config that claims more is broken.
const MOST_LAYERS: u32 = 4096;

/// Wider than any layer or vocabulary, and far inside of what the engine counts with.
const WIDEST: u64 = 1 << 24;

/// Wider than any head. The square of it has to fit into memory: on the CPU a rotation is a matrix.
pub(super) const WIDEST_HEAD: u32 = 2048;

/// More numbers than the state of a recurrent layer has in any model.
const LARGEST_STATE: u64 = 1 << 26;

/// More tokens than any short convolution sees.
const LONGEST_KERNEL: u32 = 64;

/// A whole model.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// Width of the residual stream.
    pub hidden_size: u32,
    /// Tokens of the vocabulary.
    pub vocab_size: u32,
    /// Tokens that are read and never written, whose embeddings follow those of the vocabulary (Llama 3.2 Vision).
    pub read_only_tokens: u32,
    /// All root mean square norms.
    pub norm: NormConfig,
    /// Embeddings are multiplied by this (Gemma, Granite).
    pub embedding_multiplier: Option<f32>,
    /// What a mixer or feed gives is multiplied by this before it is added (Granite).
    pub residual_multiplier: Option<f32>,
    /// Whether attention looks both ways, so that a text is read as a whole and nothing is written (EmbeddingGemma). Windows
    /// then reach to both sides.
    pub bidirectional: bool,
    /// Whether the residual stream is kept from leaving what 16 bit floats with a small exponent can hold (Gemma 3).
    pub clip_residual: bool,
    /// Logits are divided by this (Granite).
    pub logits_divisor: Option<f32>,
    /// Logits are squeezed into plus and minus this, after the division.
    pub logits_softcap: Option<f32>,
    /// Whether the norms of the stream, of queries and of keys are stored as their difference from 1 in checkpoints whose
    /// convolutions nobody has turned for MLX yet: who turned them has added the 1 (Qwen 3.5).
    pub norm_offset_unless_sanitized: bool,
    /// Where the output layer is.
    pub lm_head: LmHead,
    /// The rotary positions that layers refer to by index.
    pub ropes: Vec<RopeConfig>,
    /// The layers, first to last.
    pub layers: Vec<LayerConfig>,
    /// Numbers that no layer has, because the weights lack those that would have them.
    pub absent_layers: Vec<u32>,
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
    /// Whether only the last one has factors (Falcon-OCR).
    pub bare: bool,
}

/// Where the output layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LmHead {
    /// It is the embedding, whatever else the weights hold.
    Tied,
    /// `lm_head`.
    Untied,
    /// `lm_head` if the weights have one, else the embedding: for families whose configs do not tell.
    UntiedIfPresent,
    /// Nowhere: the model makes embeddings, whatever else the weights hold.
    Absent,
}

/// One layer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerConfig {
    /// Where its norms stand.
    pub norms: NormPlacement,
    /// How it mixes positions.
    pub mixer: Mixer,
    /// What it does with each position.
    pub feed_forward: FeedForward,
}

/// Where the norms of a layer stand, and their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormPlacement {
    /// `input_layernorm` before the mixer, `post_attention_layernorm` before the feed (most families).
    Pre,
    /// `post_attention_layernorm` after the mixer, `post_feedforward_layernorm` after the feed (OLMo 2 and 3).
    Post,
    /// `input_layernorm`, `post_attention_layernorm` around the mixer, `pre_feedforward_layernorm`,
    /// `post_feedforward_layernorm` around the feed (Gemma 3, GLM 4).
    Sandwich,
}

/// How a layer mixes positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Mixer {
    /// Softmax attention, `self_attn`.
    Attention(AttentionConfig),
    /// A gated delta net, `linear_attn`.
    DeltaNet(DeltaNetConfig),
    /// Attention over latents, `self_attn`.
    Mla(MlaConfig),
    /// A gated short convolution, `conv`.
    GatedConv(GatedConvConfig),
    /// Attention to what a tower made of pictures, `cross_attn`; whoever sees none passes by the layer.
    CrossAttention(CrossAttentionConfig),
}

/// What a layer does with each position.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedForward {
    /// One gated network for all tokens, `mlp`.
    Dense(DenseConfig),
    /// Many networks, of which each token uses a few, `mlp`.
    Moe(MoeConfig),
}

/// Softmax attention with heads that may share keys.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionConfig {
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub key_heads: u32,
    /// How many of them the checkpoint holds, each of which becomes several, because the heads that shared it turn it otherwise
    /// (Falcon-OCR); usually all.
    pub stored_key_heads: u32,
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
    pub qk_norm: QkNorm,
    /// Queries grow with their position (Ministral 3).
    pub query_scaling: Option<QueryScaling>,
    /// Whether `q_proj` also makes a gate for what each head found, after its query (Qwen 3.5).
    pub output_gate: bool,
    /// Whether every head has a `sinks`, the score of nothing at all (gpt-oss).
    pub sinks: bool,
}

impl AttentionConfig {
    /// Plain attention: everything in sight, scores over the root of the width, no bias, no norms.
    pub fn new(heads: u32, key_heads: u32, head_dim: u32, rope: Option<usize>) -> Self {
        Self {
            heads,
            key_heads,
            stored_key_heads: key_heads,
            head_dim,
            window: None,
            rope,
            scale: (head_dim as f32).powf(-0.5),
            qkv_bias: false,
            o_bias: false,
            qk_norm: QkNorm::None,
            query_scaling: None,
            output_gate: false,
            sinks: false,
        }
    }
}

/// Attention to the states of a tower, whose queries and keys are normed by head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossAttentionConfig {
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub key_heads: u32,
    /// Width of a head.
    pub head_dim: u32,
    /// The most states of one picture.
    pub states: u32,
}

/// Norms of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QkNorm {
    /// None.
    None,
    /// `q_norm`, `k_norm` over the width of one head (Qwen 3).
    PerHead,
    /// The same after they have turned (HunYuan).
    PerHeadTurned,
    /// `q_norm`, `k_norm` over all heads together (OLMo 2).
    Whole,
}

/// Queries times `1 + beta · ln(1 + floor(position / original_context))` (`llama_4_scaling_beta`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryScaling {
    /// How fast.
    pub beta: f32,
    /// Positions without growth.
    pub original_context: u32,
}

/// The gated delta net of Qwen 3.5: heads that carry a matrix from keys to values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaNetConfig {
    /// Heads of queries and keys.
    pub key_heads: u32,
    /// Heads of values, of which several may share one of the keys.
    pub value_heads: u32,
    /// Width of a query and of a key.
    pub key_width: u32,
    /// Width of a value.
    pub value_width: u32,
    /// Tokens that the convolution before it sees.
    pub kernel: u32,
    /// How the checkpoint keeps the projections of the input.
    pub projections: DeltaProjections,
}

/// How a checkpoint keeps the projections of a delta net's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaProjections {
    /// `in_proj_qkv`, `in_proj_z`, `in_proj_b` and `in_proj_a` (Qwen 3.5).
    Apart,
    /// `in_proj_qkvz` and `in_proj_ba`, with the rows of each key head together (Qwen 3 Next).
    ByKeyHead,
}

/// The gated short convolution of LFM 2, as wide as the residual stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatedConvConfig {
    /// Tokens that it sees.
    pub kernel: u32,
    /// Whether the convolution and its projections must have a bias.
    pub bias: bool,
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
    /// The square of what is above 0 (Falcon-OCR).
    SquaredRelu,
    /// `x · sigmoid(1.702 · x)` with `x` of at most 7, times what comes up between -7 and 7, plus 1 (gpt-oss).
    ClippedSilu,
}

impl DecoderConfig {
    /// The attention of every layer that has one, to be changed.
    pub(super) fn attention(&mut self) -> impl Iterator<Item = &mut AttentionConfig> {
        self.layers.iter_mut().filter_map(|layer| match &mut layer.mixer {
            Mixer::Attention(attention) => Some(attention),
            Mixer::CrossAttention(_) | Mixer::DeltaNet(_) | Mixer::GatedConv(_) | Mixer::Mla(_) => None,
        })
    }

    /// Whether layers look at pictures beside the text.
    pub(crate) fn has_cross_attention(&self) -> bool {
        self.layers.iter().any(|layer| matches!(layer.mixer, Mixer::CrossAttention(_)))
    }

    /// Leaves out the layers that look at pictures, which text passes by.
    pub(crate) fn leave_out_cross_attention(&mut self) {
        for (number, layer) in (0..).zip(std::mem::take(&mut self.layers)) {
            match layer.mixer {
                Mixer::CrossAttention(_) => self.absent_layers.push(number),
                Mixer::Attention(_) | Mixer::DeltaNet(_) | Mixer::GatedConv(_) | Mixer::Mla(_) => self.layers.push(layer),
            }
        }
    }

    /// Refuses shapes that no model has, so that nothing overflows or is allocated for them.
    pub(super) fn check(self) -> Result<Self, Error> {
        let unusable = |field, reason: String| Err(Error::InvalidField { field, reason });
        check_width("hidden_size", self.hidden_size.into())?;
        check_width("vocab_size", self.vocab_size.into())?;
        for layer in &self.layers {
            match &layer.mixer {
                Mixer::Attention(attention) => attention.check(&self.ropes)?,
                Mixer::DeltaNet(delta_net) => delta_net.check()?,
                Mixer::Mla(latent) => latent.check(&self.ropes)?,
                Mixer::CrossAttention(cross) => cross.check()?,
                Mixer::GatedConv(conv) => {
                    check_width("hidden_size", 3 * u64::from(self.hidden_size))?;
                    check_kernel("conv_L_cache", conv.kernel)?;
                }
            }
            match &layer.feed_forward {
                FeedForward::Dense(dense) => check_width("intermediate_size", 2 * u64::from(dense.width))?,
                FeedForward::Moe(experts) => experts.check()?,
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
    fn check(&self, ropes: &[RopeConfig]) -> Result<(), Error> {
        let unusable = |field, reason: String| Err(Error::InvalidField { field, reason });
        if self.key_heads == 0 || !self.heads.is_multiple_of(self.key_heads) {
            return unusable(
                "num_key_value_heads",
                format!("{} heads cannot share {}", self.heads, self.key_heads),
            );
        }
        if self.stored_key_heads == 0 || !self.key_heads.is_multiple_of(self.stored_key_heads) {
            return unusable(
                "num_key_value_heads",
                format!("{} heads cannot be made of {}", self.key_heads, self.stored_key_heads),
            );
        }
        check_head("head_dim", self.head_dim)?;
        check_width(
            "head_dim",
            (u64::from(self.heads) * if self.output_gate { 2 } else { 1 } + 2 * u64::from(self.key_heads))
                .saturating_mul(self.head_dim.into()),
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

impl CrossAttentionConfig {
    fn check(&self) -> Result<(), Error> {
        // The same shapes as of attention to tokens.
        AttentionConfig::new(self.heads, self.key_heads, self.head_dim, None).check(&[])?;
        check_width("max_num_tiles", self.states.into())
    }
}

impl DeltaNetConfig {
    fn check(&self) -> Result<(), Error> {
        let unusable = |field, reason: String| Err(Error::InvalidField { field, reason });
        if self.key_heads == 0 || self.value_heads == 0 || !self.value_heads.is_multiple_of(self.key_heads) {
            let reason = format!("{} heads of values cannot share {} of keys", self.value_heads, self.key_heads);
            return unusable("linear_num_key_heads", reason);
        }
        if self.key_width == 0 {
            return unusable("linear_key_head_dim", "it is 0".into());
        }
        if self.value_width == 0 {
            return unusable("linear_value_head_dim", "it is 0".into());
        }
        let (keys, values) = (
            u64::from(self.key_heads).saturating_mul(self.key_width.into()),
            u64::from(self.value_heads).saturating_mul(self.value_width.into()),
        );
        check_width("linear_num_key_heads", keys)?;
        check_width("linear_num_value_heads", values)?;
        check_width("linear_num_value_heads", 2 * keys + 2 * values + 2 * u64::from(self.value_heads))?;
        let state = values.saturating_mul(self.key_width.into());
        if state > LARGEST_STATE {
            return unusable("linear_key_head_dim", format!("it makes a state of {state} numbers in every layer"));
        }
        check_kernel("linear_conv_kernel_dim", self.kernel)
    }
}

/// Refuses a convolution that no model has.
fn check_kernel(field: &'static str, kernel: u32) -> Result<(), Error> {
    if (2..=LONGEST_KERNEL).contains(&kernel) {
        return Ok(());
    }
    Err(Error::InvalidField {
        field,
        reason: format!("{kernel} is not from 2 to {LONGEST_KERNEL}"),
    })
}

/// Refuses a width of heads that no model has, or that has no two halves.
pub(super) fn check_head(field: &'static str, width: u32) -> Result<(), Error> {
    if width > 0 && width.is_multiple_of(2) && width <= WIDEST_HEAD {
        return Ok(());
    }
    Err(Error::InvalidField {
        field,
        reason: format!("{width} is not an even number from 2 to {WIDEST_HEAD}"),
    })
}

/// Refuses a width that no model has.
pub(crate) fn check_width(field: &'static str, width: u64) -> Result<(), Error> {
    if width <= WIDEST {
        return Ok(());
    }
    Err(Error::InvalidField {
        field,
        reason: format!("it makes something {width} wide, and nothing is wider than {WIDEST}"),
    })
}

/// Refuses a number of layers that no model has.
pub(super) fn check_layers(count: u32) -> Result<u32, Error> {
    if count <= MOST_LAYERS {
        return Ok(count);
    }
    Err(Error::InvalidField {
        field: "num_hidden_layers",
        reason: format!("{count} is more than {MOST_LAYERS}"),
    })
}
