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
    /// True if states become features without the norm after the last layer (Phi 4).
    pub bare: bool,
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
    /// The same through a network (LFM2-VL, Phi 4).
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
        bare: false,
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
        bare: false,
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
        bare: false,
        projector: SiglipProjector::Network {
            merge: merge("downsample_factor", top.number("downsample_factor")?)?,
            width,
            normed: top.flag("projector_use_layernorm")?.unwrap_or(true),
            activation: activation(top, "projector_hidden_act", EncoderActivation::Gelu)?,
        },
    }))
}

/// Phi 4 Reasoning Vision. Defaults are those of the tower that its file names.
pub(crate) fn phi4(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    const LAYER: &str = "mm_vision_select_layer";
    if top
        .text("mm_vision_tower")?
        .is_some_and(|name| !name.to_lowercase().contains("naflex"))
    {
        return Err(Error::Unsupported(
            "a tower of images of one size beside Phi 4 (`mm_vision_tower`)".into(),
        ));
    }
    if top.text("mm_projector_type")?.is_some_and(|kind| kind != "mlp2x_gelu") {
        return Err(Error::Unsupported(
            "another projector of Phi 4 than `mlp2x_gelu`".into(),
        ));
    }
    let shape = shape(vision, [1152, 27, 16, 4304, 16])?;
    let wanted = top.number(LAYER)?.unwrap_or(-2.0f32);
    let layers = if wanted < 0.0 {
        wanted + 1.0 + shape.layers as f32
    } else {
        wanted
    };
    if layers.fract() != 0.0 || !(1.0..=shape.layers as f32).contains(&layers) {
        return unusable(LAYER, format!("there is no layer {wanted} of {}", shape.layers));
    }
    let patches = vision.number("num_patches")?.unwrap_or(256u32);
    check_width("num_patches", patches.into())?;
    let width: u32 = top.object("text_config")?.unwrap_or(top).required("hidden_size")?;
    check_width("hidden_size", width.into())?;
    Ok(VisionConfig::Siglip(SiglipConfig {
        shape: TowerShape {
            layers: layers as u32,
            ..shape
        },
        side: patches.isqrt(),
        rows: true,
        theta: None,
        bare: true,
        projector: SiglipProjector::Network {
            merge: 1,
            width,
            normed: false,
            activation: EncoderActivation::Gelu,
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
        bare: false,
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
