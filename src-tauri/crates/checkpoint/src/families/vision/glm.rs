//! The towers of GLM-4.1V and GLM-OCR: root mean square norms, gated networks, a rotation by row and column, blocks of
//! patches that a convolution makes one of.

use super::shape::{activation, merge, square, TowerShape};
use super::{check_width, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::Fields;
use crate::error::Error;
use crate::memory::VisionCost;

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GlmVisionConfig {
    /// The stack.
    pub shape: TowerShape,
    /// How often a patch's image stands in it.
    pub frames: u32,
    /// Patches along a side of the learned positions, before which a norm stands (GLM-4.1V).
    pub learned: Option<u32>,
    /// True if the heads of queries and keys are normed (GLM-OCR).
    pub qk_norm: bool,
    /// Patches along a side of a block that becomes one token.
    pub merge: u32,
    /// Width of the language part.
    pub out_hidden_size: u32,
    /// Width inside of the merger's network.
    pub merger_width: u32,
}

/// GLM-4.1V and 4.5V, whose layers are as wide inside as the language part.
pub(crate) fn glm4v(vision: Fields<'_>, _: Fields<'_>) -> Result<VisionConfig, Error> {
    let outputs = vision.number("out_hidden_size")?.unwrap_or(4096);
    let shape = shape(vision, [1536, 24, 12], outputs)?;
    GlmVisionConfig {
        learned: Some(shape.side(vision, 336)?),
        qk_norm: false,
        merger_width: vision.number("intermediate_size")?.unwrap_or(13_696),
        ..parse(vision, shape, outputs)?
    }
    .check()
}

/// GLM-OCR.
pub(crate) fn glm_ocr(vision: Fields<'_>, _: Fields<'_>) -> Result<VisionConfig, Error> {
    let outputs = vision.number("out_hidden_size")?.unwrap_or(1536u32);
    let width = vision.number("intermediate_size")?.unwrap_or(4096);
    GlmVisionConfig {
        learned: None,
        qk_norm: true,
        merger_width: outputs.saturating_mul(vision.number("in_channels")?.unwrap_or(3)),
        ..parse(vision, shape(vision, [1024, 24, 16], width)?, outputs)?
    }
    .check()
}

fn shape(
    vision: Fields<'_>,
    [hidden_size, layers, heads]: [u32; 3],
    intermediate_size: u32,
) -> Result<TowerShape, Error> {
    TowerShape {
        hidden_size: vision.number("hidden_size")?.unwrap_or(hidden_size),
        layers: vision.number("depth")?.unwrap_or(layers),
        heads: vision.number("num_heads")?.unwrap_or(heads),
        intermediate_size,
        patch_size: square(vision, "patch_size")?.unwrap_or(14),
        eps: vision.number("rms_norm_eps")?.unwrap_or(1e-5),
        activation: activation(vision, "hidden_act", EncoderActivation::Silu)?,
    }
    .check()?
    .check_turning()
}

fn parse(vision: Fields<'_>, shape: TowerShape, out_hidden_size: u32) -> Result<GlmVisionConfig, Error> {
    Ok(GlmVisionConfig {
        shape,
        frames: merge("temporal_patch_size", vision.number("temporal_patch_size")?)?,
        learned: None,
        qk_norm: false,
        merge: merge("spatial_merge_size", vision.number("spatial_merge_size")?)?,
        out_hidden_size,
        merger_width: 0,
    })
}

impl GlmVisionConfig {
    fn check(self) -> Result<VisionConfig, Error> {
        check_width("out_hidden_size", self.out_hidden_size.into())?;
        check_width("intermediate_size", 2 * u64::from(self.merger_width))?;
        Ok(VisionConfig::Glm(self))
    }
}

impl GlmVisionConfig {
    pub(super) fn cost(&self) -> VisionCost {
        let cost = self.shape.cost(3, self.learned.unwrap_or(0), self.frames);
        let outputs = u64::from(self.out_hidden_size);
        let block = cost.hidden * u64::from(self.merge).pow(2);
        VisionCost {
            others: cost.others + outputs * (block + outputs + 3 * u64::from(self.merger_width)),
            patches_of_token: u64::from(self.merge).pow(2),
            ..cost
        }
    }
}
