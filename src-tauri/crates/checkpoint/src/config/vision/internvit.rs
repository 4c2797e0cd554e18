//! InternViT: a class token before the patches, learned positions, and factors of what each half of a layer adds (InternVL).

use super::{activation, grid, square, TowerShape};
use crate::config::encoder::EncoderActivation;
use crate::config::fields::Fields;
use crate::Error;

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InternVitConfig {
    /// The stack.
    pub shape: TowerShape,
    /// Whether tensors have the names of transformers' own class, else those of the original code.
    pub transformers: bool,
    /// Patches along a side of a tile.
    pub side: u32,
    /// Whether norms go by the mean square (InternViT of 6 billion parameters).
    pub rms: bool,
    /// Whether queries and keys are normed over all heads.
    pub qk_norm: bool,
    /// Patches along a side of a block that becomes one token.
    pub merge: u32,
    /// Width of the language part.
    pub outputs: u32,
}

/// The original repositories.
pub(in crate::config) fn chat(top: Fields<'_>, vision: Fields<'_>, outputs: u32) -> Result<InternVitConfig, Error> {
    let rms = vision.text("norm_type")?.is_none_or(|kind| kind == "rms_norm");
    let qk_norm = vision.flag("qk_normalization")?.unwrap_or(true);
    let sizes = [3200, 48, 25, 12_800, 14, 224];
    parse(top, vision, outputs, false, sizes, (rms, qk_norm))
}

/// The form of transformers (`-hf`).
pub(in crate::config) fn transformers(top: Fields<'_>, vision: Fields<'_>, outputs: u32) -> Result<InternVitConfig, Error> {
    let rms = vision.text("norm_type")?.is_some_and(|kind| kind == "rms_norm");
    let qk_norm = vision.flag("use_qk_norm")?.unwrap_or(false);
    let sizes = [1024, 24, 16, 4096, 14, 448];
    parse(top, vision, outputs, true, sizes, (rms, qk_norm))
}

fn parse(
    top: Fields<'_>,
    vision: Fields<'_>,
    outputs: u32,
    transformers: bool,
    [hidden, layers, heads, width, patch, image]: [u32; 6],
    (rms, qk_norm): (bool, bool),
) -> Result<InternVitConfig, Error> {
    let shape = TowerShape {
        hidden: vision.number("hidden_size")?.unwrap_or(hidden),
        layers: vision.number("num_hidden_layers")?.unwrap_or(layers),
        heads: vision.number("num_attention_heads")?.unwrap_or(heads),
        width: vision.number("intermediate_size")?.unwrap_or(width),
        patch: square(vision, "patch_size")?.unwrap_or(patch),
        eps: vision.number("layer_norm_eps")?.unwrap_or(1e-6),
        activation: activation(vision, "hidden_act", EncoderActivation::Gelu)?,
    }
    .check()?;
    let side = grid("image_size", square(vision, "image_size")?.unwrap_or(image), shape.patch)?;
    let ratio = top.number("downsample_ratio")?.unwrap_or(0.5f32);
    let merge = ratio.recip().round();
    if !(merge >= 1.0 && merge <= side as f32 && side.is_multiple_of(merge as u32)) {
        return Err(Error::InvalidField {
            field: "downsample_ratio",
            reason: format!("{side} rows of patches cannot become {ratio} as many"),
        });
    }
    Ok(InternVitConfig {
        shape,
        transformers,
        side,
        rms,
        qk_norm,
        merge: merge as u32,
        outputs,
    })
}
