//! Gemma 4's tower: sandwich norms, two tables of positions and a rotation in two dimensions, pooled at its end. Names
//! and defaults are those of transformers' `Gemma4VisionConfig`.

use super::{check_patch, check_shapes, check_width, VisionConfig};
use crate::config::Fields;
use crate::error::Error;
use crate::memory::VisionCost;

/// The shapes of one tower.
#[derive(Debug, Clone, PartialEq)]
pub struct Gemma4VisionConfig {
    /// Width of its stream.
    pub hidden_size: u32,
    /// Width inside of its networks.
    pub intermediate_size: u32,
    /// How many layers.
    pub layers: u32,
    /// Heads of queries, keys and values.
    pub heads: u32,
    /// Width of a head.
    pub head_dim: u32,
    /// Side of a patch in pixels.
    pub patch_size: u32,
    /// Patches on a side of the square that becomes one token.
    pub pooling: u32,
    /// Rows of each of the two tables of positions.
    pub positions: u32,
    /// Added to the variance in every norm.
    pub eps: f32,
    /// The base of the rotation's periods.
    pub theta: f32,
    /// True if each linear layer clips what goes in and what comes out (E2B, E4B).
    pub clipped: bool,
    /// True if what is pooled is shifted and scaled (26B, 31B).
    pub standardized: bool,
    /// True if the sliding layers of the language part let the tokens of an image see each other (26B, 31B).
    pub bidirectional: bool,
}

pub(crate) fn parse(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let heads = vision.number("num_attention_heads")?.unwrap_or(12);
    let theta = match vision.object("rope_parameters")? {
        Some(rope) => rope.number("rope_theta")?,
        None => None,
    };
    let text = top.object("text_config")?.unwrap_or(top);
    let config = Gemma4VisionConfig {
        hidden_size: vision.number("hidden_size")?.unwrap_or(768),
        intermediate_size: vision.number("intermediate_size")?.unwrap_or(3072),
        layers: vision.number("num_hidden_layers")?.unwrap_or(16),
        heads,
        head_dim: vision.number("head_dim")?.unwrap_or(64),
        patch_size: vision.number("patch_size")?.unwrap_or(16),
        pooling: vision.number("pooling_kernel_size")?.unwrap_or(3),
        positions: vision.number("position_embedding_size")?.unwrap_or(10_240),
        eps: vision.number("rms_norm_eps")?.unwrap_or(1e-6),
        theta: theta.unwrap_or(100.0),
        clipped: vision.flag("use_clipped_linears")?.unwrap_or(false),
        standardized: vision.flag("standardize")?.unwrap_or(false),
        bidirectional: text.text("use_bidirectional_attention")?.as_deref() == Some("vision"),
    };
    check_patch(config.patch_size)?;
    check_shapes(
        config.layers,
        config.hidden_size,
        heads,
        config.head_dim,
        config.intermediate_size,
    )?;
    check_width("position_embedding_size", config.positions.into())?;
    if vision
        .number::<u32>("num_key_value_heads")?
        .is_some_and(|keys| keys != heads)
    {
        return Err(Error::Unsupported("a tower whose heads share keys".into()));
    }
    if !config.head_dim.is_multiple_of(4) || config.pooling == 0 || config.pooling > 16 || config.theta <= 1.0 {
        return Err(Error::Unsupported("a tower of these shapes".into()));
    }
    Ok(VisionConfig::Gemma4(config))
}

impl Gemma4VisionConfig {
    pub(super) fn cost(&self) -> VisionCost {
        let hidden = u64::from(self.hidden_size);
        VisionCost {
            layers: self.layers.into(),
            hidden,
            width: self.intermediate_size.into(),
            projections: 3,
            heads: self.heads.into(),
            others: hidden * (2 * u64::from(self.positions) + 3 * u64::from(self.patch_size).pow(2) + hidden),
            patches_of_token: u64::from(self.pooling).pow(2),
            tokens: 280,
            ..VisionCost::EMPTY
        }
    }
}
