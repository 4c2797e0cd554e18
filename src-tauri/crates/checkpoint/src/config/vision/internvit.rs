//! InternViT: a class token before the patches, learned positions, and factors of what each half of a layer adds
//! (InternVL).

use super::shape::{activation, patches_along, square, TowerShape};
use super::VisionConfig;
use crate::config::activation::EncoderActivation;
use crate::config::fields::Fields;
use crate::error::Error;
use crate::memory::VisionCost;

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InternVitConfig {
    /// The stack.
    pub shape: TowerShape,
    /// True if tensors have the names of transformers' own class; else those of the original code.
    pub transformers: bool,
    /// Patches along a side of a tile.
    pub side: u32,
    /// True if norms are by the root mean square (InternViT of 6 billion parameters).
    pub rms: bool,
    /// True if queries and keys are normed, over all heads together.
    pub qk_norm: bool,
    /// Patches along a side of a block that becomes one token.
    pub merge: u32,
}

/// The original repositories.
pub(crate) fn chat(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    parse(
        top,
        InternVitConfig {
            shape: shape(vision, [3200, 48, 25, 12_800, 14])?,
            transformers: false,
            side: square(vision, "image_size")?.unwrap_or(224),
            rms: vision.text("norm_type")?.is_none_or(|kind| kind == "rms_norm"),
            qk_norm: vision.flag("qk_normalization")?.unwrap_or(true),
            merge: 0,
        },
    )
}

/// The form of transformers (`-hf`).
pub(crate) fn transformers(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    if vision.flag("use_mean_pooling")? == Some(false) {
        return Err(Error::Unsupported("a norm after the tower of InternVL".into()));
    }
    parse(
        top,
        InternVitConfig {
            shape: shape(vision, [1024, 24, 16, 4096, 14])?,
            transformers: true,
            side: square(vision, "image_size")?.unwrap_or(448),
            rms: vision.text("norm_type")?.is_some_and(|kind| kind == "rms_norm"),
            qk_norm: vision.flag("use_qk_norm")?.unwrap_or(false),
            merge: 0,
        },
    )
}

fn shape(
    vision: Fields<'_>,
    [hidden_size, layers, heads, intermediate_size, patch_size]: [u32; 5],
) -> Result<TowerShape, Error> {
    TowerShape {
        hidden_size: vision.number("hidden_size")?.unwrap_or(hidden_size),
        layers: vision.number("num_hidden_layers")?.unwrap_or(layers),
        heads: vision.number("num_attention_heads")?.unwrap_or(heads),
        intermediate_size: vision.number("intermediate_size")?.unwrap_or(intermediate_size),
        patch_size: square(vision, "patch_size")?.unwrap_or(patch_size),
        eps: vision.number("layer_norm_eps")?.unwrap_or(1e-6),
        activation: activation(vision, "hidden_act", EncoderActivation::Gelu)?,
    }
    .check()
}

/// The rest, for a `side` in pixels.
fn parse(top: Fields<'_>, config: InternVitConfig) -> Result<VisionConfig, Error> {
    let side = patches_along("image_size", config.side, config.shape.patch_size)?;
    let ratio = top.number("downsample_ratio")?.unwrap_or(0.5f32);
    let merge = ratio.recip().round();
    if !(merge >= 1.0 && merge <= side as f32 && side.is_multiple_of(merge as u32)) {
        return Err(Error::InvalidField {
            field: "downsample_ratio",
            reason: format!("{side} rows of patches cannot become {ratio} as many"),
        });
    }
    Ok(VisionConfig::InternVit(InternVitConfig {
        side,
        merge: merge as u32,
        ..config
    }))
}

impl InternVitConfig {
    pub(super) fn cost(&self) -> VisionCost {
        self.shape.cost(2, self.side, 1).joined(self.merge)
    }
}
