//! Encoders: layers that look both ways at a whole text, normed after each half (BERT and its kin). Each family's
//! parser fills an [`EncoderConfig`] from `config.json`; one loader in the engine builds all of them.

use crate::config::activation::Activation;
use crate::config::limits::{
    check_head, check_heads, check_layers, check_nonzero, check_positive, check_rotation, check_width,
};
use crate::config::rope::RopeConfig;
use crate::error::{unusable, Error};
use crate::memory::{AttentionCost, DenseCost, HeadNorms, Keys, LayerCost, ModelCost, Storage};

pub use crate::config::activation::EncoderActivation;

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
    /// True if what the activation gives is multiplied by a second projection of the input.
    pub gated: bool,
    /// True if the projections must have a bias.
    pub bias: bool,
    /// How positions enter.
    pub positions: Positions,
    /// Rows of the table of token types, of which the first is added to every token.
    pub token_types: u32,
    /// Parts of tensor names and what the loader calls them, as in
    /// [`DecoderConfig::renames`](super::DecoderConfig::renames); one table after another is applied.
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
    pub(crate) fn check(self) -> Result<Self, Error> {
        check_width("hidden_size", 3 * u64::from(self.hidden_size))?;
        check_width("vocab_size", self.vocab_size.into())?;
        check_width("intermediate_size", 2 * u64::from(self.width))?;
        check_width("type_vocab_size", self.token_types.into())?;
        check_layers(self.layers)?;
        check_heads("num_attention_heads", self.hidden_size, self.heads)?;
        check_head("num_attention_heads", self.head_dim())?;
        match &self.positions {
            Positions::Learned { rows, first } => {
                check_width("max_position_embeddings", (*rows).into())?;
                if first >= rows {
                    let reason = format!("of {rows} rows the first {first} are not used");
                    return unusable("max_position_embeddings", reason);
                }
            }
            Positions::Rotary { rope, context } => {
                check_width("max_position_embeddings", (*context).into())?;
                check_rotation("rotary_emb_fraction", rope.dims, self.head_dim())?;
                check_nonzero("max_position_embeddings", *context)?;
            }
        }
        check_positive("layer_norm_eps", self.norm_eps)?;
        Ok(self)
    }
}

impl EncoderConfig {
    pub(crate) fn cost(&self, storage: Storage) -> ModelCost {
        ModelCost {
            hidden: self.hidden_size.into(),
            vocabulary: self.vocab_size.into(),
            tied: true,
            cached: false,
            layers: (0..self.layers).map(|_| self.layer_cost()).collect(),
            inputs: None,
            positions: 0,
            again: Vec::new(),
            skips: false,
            streams: 1,
            tables: Vec::new(),
            stream_operations: 0,
            norms_apart: false,
            adds_apart: false,
            parts_scaled: false,
            storage,
        }
    }

    fn layer_cost(&self) -> LayerCost {
        LayerCost {
            beside: Vec::new(),
            carried: 0,
            mixer: Box::new(AttentionCost {
                heads: self.heads.into(),
                key_heads: self.heads.into(),
                width: self.head_dim().into(),
                value_width: self.head_dim().into(),
                window: None,
                keys: Keys::Own,
                norms: HeadNorms::None,
                one_kernel: true,
                tiled: false,
                turns: true,
                gate: 0,
                scales: false,
                mixes_loops: false,
                key_conv: false,
                sinks: false,
                capped: false,
                striped: false,
                bias: true,
                out_bias: true,
                index: None,
            }),
            feed_forwards: vec![Box::new(DenseCost {
                width: self.width.into(),
                gated: self.gated,
                activation: Activation::GeluTanh.cost(),
            })],
            normed_after: true,
            parallel: false,
        }
    }
}
