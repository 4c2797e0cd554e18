//! Encoders: layers that look both ways at a whole text, normed after each half (BERT and its kin). Each family's parser fills
//! an [`EncoderConfig`] from `config.json`; one loader in the engine builds all of them.

use super::decoder::{check_head, check_layers, check_width};
use super::rope::RopeConfig;
use crate::Error;

/// A whole encoder.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderConfig {
    /// Width of the residual stream.
    pub hidden_size: u32,
    /// Tokens of the vocabulary.
    pub vocab_size: u32,
    /// How many layers.
    pub layers: u32,
    /// Attention heads, which share no keys.
    pub heads: u32,
    /// Width inside of the feed-forward networks.
    pub width: u32,
    /// Added to the variance by all norms.
    pub norm_eps: f32,
    /// The activation of the feed-forward networks.
    pub activation: EncoderActivation,
    /// Whether what the activation gives is multiplied by a second projection of the input.
    pub gated: bool,
    /// Whether the projections must have a bias.
    pub bias: bool,
    /// How positions enter.
    pub positions: Positions,
    /// Rows of the table of token types, of which the first is added to every token.
    pub token_types: u32,
    /// Parts of tensor names and what the loader calls them, as in [`DecoderConfig::renames`](super::DecoderConfig::renames); one
    /// table after another is applied.
    pub renames: &'static [&'static [(&'static str, &'static str)]],
}

/// How positions enter an encoder.
#[derive(Debug, Clone, PartialEq)]
pub enum Positions {
    /// By a table of vectors that are added to those of the tokens.
    Learned {
        /// Rows of the table.
        rows: u32,
        /// The row of the first position: RoBERTa's lie after that of its padding token.
        first: u32,
    },
    /// By turning queries and keys.
    Rotary {
        /// The turning.
        rope: RopeConfig,
        /// Positions that the model reads.
        context: u32,
    },
}

/// Activation functions of encoders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncoderActivation {
    /// GELU by the error function.
    Gelu,
    /// GELU by its tanh approximation.
    GeluTanh,
    /// `x · sigmoid(1.702 · x)`.
    QuickGelu,
    /// `max(x, 0)`.
    Relu,
    /// `x · sigmoid(x)`.
    Silu,
}

impl EncoderActivation {
    /// The function that transformers' configs call so.
    pub(super) fn named(name: &str) -> Result<Self, Error> {
        match name {
            "gelu" => Ok(Self::Gelu),
            "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" => Ok(Self::GeluTanh),
            "quick_gelu" => Ok(Self::QuickGelu),
            "relu" => Ok(Self::Relu),
            "silu" | "swish" => Ok(Self::Silu),
            other => Err(Error::Unsupported(format!("the activation `{other}`"))),
        }
    }
}

impl EncoderConfig {
    /// Width of a head.
    pub fn head_dim(&self) -> u32 {
        self.hidden_size / self.heads
    }

    /// Tokens of the longest text that it reads.
    pub fn context(&self) -> u32 {
        match &self.positions {
            Positions::Learned { rows, first } => rows - first,
            Positions::Rotary { context, .. } => *context,
        }
    }

    /// Refuses shapes that no model has, so that nothing overflows or is allocated for them.
    pub(super) fn check(self) -> Result<Self, Error> {
        let unusable = |field, reason: String| Err(Error::InvalidField { field, reason });
        check_width("hidden_size", 3 * u64::from(self.hidden_size))?;
        check_width("vocab_size", self.vocab_size.into())?;
        check_width("intermediate_size", 2 * u64::from(self.width))?;
        check_width("type_vocab_size", self.token_types.into())?;
        check_layers(self.layers)?;
        if !self.hidden_size.is_multiple_of(self.heads) {
            return unusable(
                "num_attention_heads",
                format!("{} numbers cannot be shared by {} heads", self.hidden_size, self.heads),
            );
        }
        check_head("num_attention_heads", self.head_dim())?;
        match &self.positions {
            Positions::Learned { rows, first } => {
                check_width("max_position_embeddings", (*rows).into())?;
                if first >= rows {
                    return unusable("max_position_embeddings", format!("of {rows} rows the first {first} are not used"));
                }
            }
            Positions::Rotary { rope, context } => {
                check_width("max_position_embeddings", (*context).into())?;
                if rope.dims > self.head_dim() {
                    return unusable(
                        "rotary_emb_fraction",
                        format!("{} of {} numbers of a head would turn", rope.dims, self.head_dim()),
                    );
                }
                if *context == 0 {
                    return unusable("max_position_embeddings", "it is 0".into());
                }
            }
        }
        if !(self.norm_eps.is_finite() && self.norm_eps > 0.0) {
            return unusable("layer_norm_eps", format!("{} is not above 0", self.norm_eps));
        }
        Ok(self)
    }
}
