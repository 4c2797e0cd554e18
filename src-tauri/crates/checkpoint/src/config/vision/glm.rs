//! The towers of GLM-4.1V and GLM-OCR: root mean square norms, gated networks, rotary positions by row and column, blocks of
//! patches that a convolution makes one of.

use super::{activation, grid, square, TowerShape};
use crate::config::encoder::EncoderActivation;
use crate::config::fields::Fields;
use crate::Error;

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GlmVisionConfig {
    /// The stack.
    pub shape: TowerShape,
    /// Frames of a patch, of which a still picture has copies.
    pub frames: u32,
    /// Patches along a side of the learned positions, and a norm before them (GLM-4.1V).
    pub learned: Option<u32>,
    /// Whether the heads of queries and keys are normed (GLM-OCR).
    pub qk_norm: bool,
    /// Patches along a side of a block that becomes one token.
    pub merge: u32,
    /// Width inside of the merger's network.
    pub merger_width: u32,
    /// Width of the language part.
    pub outputs: u32,
}

/// GLM-4.1V and 4.5V, whose layers are as wide inside as the language part.
pub(in crate::config) fn glm4v(_top: Fields<'_>, vision: Fields<'_>, outputs: u32) -> Result<GlmVisionConfig, Error> {
    let shape = shape(vision, [1536, 24, 12])?;
    let inside = vision.number("intermediate_size")?.unwrap_or(13_696);
    Ok(GlmVisionConfig {
        learned: Some(grid(
            "image_size",
            square(vision, "image_size")?.unwrap_or(336),
            shape.patch,
        )?),
        qk_norm: false,
        merger_width: inside,
        ..parse(vision, TowerShape { width: outputs, ..shape }, outputs)?
    })
}

/// GLM-OCR.
pub(in crate::config) fn glm_ocr(_top: Fields<'_>, vision: Fields<'_>, outputs: u32) -> Result<GlmVisionConfig, Error> {
    let shape = shape(vision, [1024, 24, 16])?;
    let width = vision.number("intermediate_size")?.unwrap_or(4096);
    Ok(GlmVisionConfig {
        learned: None,
        qk_norm: true,
        merger_width: outputs.saturating_mul(vision.number("in_channels")?.unwrap_or(3)),
        ..parse(vision, TowerShape { width, ..shape }, outputs)?
    })
}

fn shape(vision: Fields<'_>, [hidden, layers, heads]: [u32; 3]) -> Result<TowerShape, Error> {
    Ok(TowerShape {
        hidden: vision.number("hidden_size")?.unwrap_or(hidden),
        layers: vision.number("depth")?.unwrap_or(layers),
        heads: vision.number("num_heads")?.unwrap_or(heads),
        width: 0,
        patch: square(vision, "patch_size")?.unwrap_or(14),
        eps: vision.number("rms_norm_eps")?.unwrap_or(1e-5),
        activation: activation(vision, "hidden_act", EncoderActivation::Silu)?,
    })
}

fn parse(vision: Fields<'_>, shape: TowerShape, outputs: u32) -> Result<GlmVisionConfig, Error> {
    let merge = vision.number("spatial_merge_size")?.unwrap_or(2);
    let frames = vision.number("temporal_patch_size")?.unwrap_or(2);
    for (field, number) in [("spatial_merge_size", merge), ("temporal_patch_size", frames)] {
        if !(1..=64).contains(&number) {
            return Err(Error::InvalidField {
                field,
                reason: format!("{number} is not from 1 to 64"),
            });
        }
    }
    let shape = shape.check()?;
    if vision.number("out_hidden_size")?.is_some_and(|written: u32| written != outputs) {
        return Err(Error::InvalidField {
            field: "out_hidden_size",
            reason: format!("the language part is {outputs} wide"),
        });
    }
    if !(shape.hidden / shape.heads).is_multiple_of(4) {
        return Err(Error::InvalidField {
            field: "num_heads",
            reason: format!("half of {} numbers of a head are no pairs", shape.hidden / shape.heads),
        });
    }
    Ok(GlmVisionConfig {
        shape,
        frames,
        learned: None,
        qk_norm: false,
        merge,
        merger_width: 0,
        outputs,
    })
}
