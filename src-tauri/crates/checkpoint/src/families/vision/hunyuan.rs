//! HunyuanOCR's tower: plain layers with learned positions, blocks of patches that convolutions make one of, and
//! features that are no patches: one after each row, one before all and one after.

use super::shape::{merge, patches_along, TowerShape};
use super::{check_width, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::Fields;
use crate::error::Error;
use crate::memory::VisionCost;

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HunyuanVisionConfig {
    /// The stack.
    pub shape: TowerShape,
    /// Patches along a side of the learned positions.
    pub side: u32,
    /// Patches along a side of a block that becomes one token.
    pub merge: u32,
}

/// HunyuanOCR.
pub(crate) fn parse(vision: Fields<'_>, _: Fields<'_>) -> Result<VisionConfig, Error> {
    if let Some(other) = vision.text("interpolate_mode")?.filter(|mode| mode != "bilinear") {
        return Err(Error::Unsupported(format!(
            "positions of a tower that are resampled by `{other}`"
        )));
    }
    let eps = vision.number("rms_norm_eps")?.unwrap_or(1e-5);
    let shape = TowerShape::parse(vision, [1152, 27, 16, 4304, 16], eps, EncoderActivation::Gelu)?;
    check_width("hidden_size", 4 * u64::from(shape.hidden_size))?;
    let pixels = vision.number("max_image_size")?.unwrap_or(2048);
    Ok(VisionConfig::Hunyuan(HunyuanVisionConfig {
        side: patches_along("max_image_size", pixels, shape.patch_size)?,
        merge: merge("spatial_merge_size", vision.number("spatial_merge_size")?)?,
        shape,
    }))
}

impl HunyuanVisionConfig {
    pub(super) fn cost(&self) -> VisionCost {
        let cost = self.shape.cost(2, self.side, 1);
        let patches_of_token = u64::from(self.merge).pow(2);
        // Two convolutions, and a projection to a language part that is about as wide as the encoder.
        let merger = 2 * cost.hidden * cost.hidden * (patches_of_token + 4) + 4 * cost.hidden * cost.hidden;
        VisionCost {
            others: cost.others + merger,
            patches_of_token,
            ..cost
        }
    }
}
