//! SigLIP and SigLIP 2: learned positions, layer norms, networks of two projections (Gemma 3, Idefics 3, SmolVLM,
//! LFM2-VL, PaddleOCR-VL).

use super::shape::{activation, layers_used, merge, TowerShape};
use super::{check_width, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::memory::VisionCost;

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SiglipConfig {
    /// The stack.
    pub shape: TowerShape,
    /// Patches along a side of the learned positions.
    pub side: u32,
    /// True if images come as rows of patches, in any shape; else as planes of the one size.
    pub rows: bool,
    /// The base of the periods of a rotation beside the learned positions (PaddleOCR-VL).
    pub theta: Option<f32>,
    /// How states become features.
    pub projector: SiglipProjector,
}

/// How states become features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SiglipProjector {
    /// The mean of each square of patches, normed and projected (Gemma 3).
    Pooled {
        /// Tokens along a side.
        tokens: u32,
    },
    /// The patches of each block side by side, projected at once (Idefics 3).
    Joined {
        /// Patches along a side of a block.
        merge: u32,
    },
    /// The same through a network (LFM2-VL).
    Network {
        /// Patches along a side of a block.
        merge: u32,
        /// Width inside.
        width: u32,
        /// True if a norm comes first.
        normed: bool,
        /// Its activation.
        activation: EncoderActivation,
    },
    /// Normed patch by patch, then through a network as wide inside as a block (PaddleOCR-VL).
    NormedNetwork {
        /// Patches along a side of a block.
        merge: u32,
    },
}

impl SiglipConfig {
    /// True if the tokens of an image attend to later ones of the same image.
    pub fn is_bidirectional(&self) -> bool {
        matches!(self.projector, SiglipProjector::Pooled { .. })
    }
}

/// Those of SigLIP's class and of SigLIP 2's.
const SIGLIP: [u32; 5] = [768, 12, 12, 3072, 16];

/// The side of their images.
const PIXELS: u32 = 224;

fn shape(vision: Fields<'_>, defaults: [u32; 5]) -> Result<TowerShape, Error> {
    let eps = vision.number("layer_norm_eps")?.unwrap_or(1e-6);
    TowerShape::parse(vision, defaults, eps, EncoderActivation::GeluTanh)
}

/// Gemma 3.
pub(crate) fn gemma3(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let shape = shape(vision, SIGLIP)?;
    let side = shape.side(vision, PIXELS)?;
    let per_image = top.number("mm_tokens_per_image")?.unwrap_or(256u32);
    let tokens = per_image.isqrt();
    if tokens == 0 || tokens * tokens != per_image || !side.is_multiple_of(tokens) {
        let reason = format!("{side} rows of patches cannot become {per_image} tokens");
        return unusable("mm_tokens_per_image", reason);
    }
    Ok(VisionConfig::Siglip(SiglipConfig {
        shape,
        side,
        rows: false,
        theta: None,
        projector: SiglipProjector::Pooled { tokens },
    }))
}

/// Idefics 3 and SmolVLM.
pub(crate) fn idefics3(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let shape = shape(vision, [1152, 12, 16, 3072, 32])?;
    let side = shape.side(vision, PIXELS)?;
    let merge = merge("scale_factor", top.number("scale_factor")?)?;
    if !side.is_multiple_of(merge) {
        let reason = format!("{side} rows of patches are not blocks of {merge}");
        return unusable("scale_factor", reason);
    }
    Ok(VisionConfig::Siglip(SiglipConfig {
        shape,
        side,
        rows: false,
        theta: None,
        projector: SiglipProjector::Joined { merge },
    }))
}

/// LFM2-VL.
pub(crate) fn lfm2(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let shape = shape(vision, SIGLIP)?;
    let width = top.number("projector_hidden_size")?.unwrap_or(2560);
    let patches = vision.number("num_patches")?.unwrap_or(256u32);
    check_width("projector_hidden_size", width.into())?;
    check_width("num_patches", patches.into())?;
    Ok(VisionConfig::Siglip(SiglipConfig {
        shape: TowerShape {
            layers: layers_used(top, shape.layers)?,
            ..shape
        },
        side: patches.isqrt(),
        rows: true,
        theta: None,
        projector: SiglipProjector::Network {
            merge: merge("downsample_factor", top.number("downsample_factor")?)?,
            width,
            normed: top.flag("projector_use_layernorm")?.unwrap_or(true),
            activation: activation(top, "projector_hidden_act", EncoderActivation::Gelu)?,
        },
    }))
}

/// PaddleOCR-VL.
pub(crate) fn paddleocr(vision: Fields<'_>, _: Fields<'_>) -> Result<VisionConfig, Error> {
    let shape = shape(vision, [1152, 27, 16, 4304, 14])?.check_turning()?;
    Ok(VisionConfig::Siglip(SiglipConfig {
        shape,
        side: shape.side(vision, 384)?,
        rows: true,
        theta: Some(10_000.0),
        projector: SiglipProjector::NormedNetwork {
            merge: merge("spatial_merge_size", vision.number("spatial_merge_size")?)?,
        },
    }))
}

impl SiglipConfig {
    pub(super) fn cost(&self) -> VisionCost {
        let cost = self.shape.cost(2, self.side, 1);
        match self.projector {
            // The encoder sees its one size, whatever the size of the image.
            SiglipProjector::Pooled { tokens } => {
                let tokens = u64::from(tokens).pow(2).max(1);
                VisionCost {
                    patches_of_token: u64::from(self.side).pow(2).div_ceil(tokens),
                    tokens,
                    ..cost
                }
            }
            SiglipProjector::Joined { merge } | SiglipProjector::NormedNetwork { merge } => cost.joined(merge),
            SiglipProjector::Network { merge, width, .. } => {
                let inside = u64::from(width) * cost.hidden * u64::from(merge).pow(2);
                let cost = cost.joined(merge);
                VisionCost {
                    others: cost.others + inside,
                    ..cost
                }
            }
        }
    }
}
