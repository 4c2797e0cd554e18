//! SigLIP and SigLIP 2: learned positions, layer norms, networks of two projections (Gemma 3, Idefics 3, SmolVLM, LFM2-VL,
//! PaddleOCR-VL).

use super::{activation, grid, layers_used, square, TowerShape};
use crate::config::encoder::EncoderActivation;
use crate::config::fields::Fields;
use crate::Error;

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SiglipConfig {
    /// The stack.
    pub shape: TowerShape,
    /// Patches along a side of the learned positions.
    pub side: u32,
    /// Whether patches come in rows of numbers, for pictures of any shape; else a picture of the one size comes whole.
    pub rows: bool,
    /// Period of rotary positions beside the learned ones (PaddleOCR-VL).
    pub theta: Option<f32>,
    /// How states become features.
    pub projector: SiglipProjector,
    /// Width of the language part.
    pub outputs: u32,
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
        /// Whether a norm comes first.
        normed: bool,
        /// Its activation.
        activation: EncoderActivation,
    },
    /// Normed patch by patch, then the same, as wide inside as a block (PaddleOCR-VL).
    NormedNetwork {
        /// Patches along a side of a block.
        merge: u32,
    },
}

/// Sizes that a class of transformers has where a config is silent.
struct Defaults {
    hidden: u32,
    width: u32,
    layers: u32,
    heads: u32,
    patch: u32,
    image: u32,
}

fn shape(vision: Fields<'_>, defaults: &Defaults) -> Result<TowerShape, Error> {
    TowerShape {
        hidden: vision.number("hidden_size")?.unwrap_or(defaults.hidden),
        layers: vision.number("num_hidden_layers")?.unwrap_or(defaults.layers),
        heads: vision.number("num_attention_heads")?.unwrap_or(defaults.heads),
        width: vision.number("intermediate_size")?.unwrap_or(defaults.width),
        patch: square(vision, "patch_size")?.unwrap_or(defaults.patch),
        eps: vision.number("layer_norm_eps")?.unwrap_or(1e-6),
        activation: activation(vision, "hidden_act", EncoderActivation::GeluTanh)?,
    }
    .check()
}

/// Gemma 3.
pub(in crate::config) fn gemma3(top: Fields<'_>, vision: Fields<'_>, outputs: u32) -> Result<SiglipConfig, Error> {
    let defaults = Defaults {
        hidden: 768,
        width: 3072,
        layers: 12,
        heads: 12,
        patch: 16,
        image: 224,
    };
    let shape = shape(vision, &defaults)?;
    let side = grid("image_size", square(vision, "image_size")?.unwrap_or(defaults.image), shape.patch)?;
    let per_picture = top.number("mm_tokens_per_image")?.unwrap_or(256u32);
    let tokens = per_picture.isqrt();
    if tokens == 0 || tokens * tokens != per_picture || !side.is_multiple_of(tokens) {
        return Err(Error::InvalidField {
            field: "mm_tokens_per_image",
            reason: format!("{side} rows of patches cannot become {per_picture} tokens"),
        });
    }
    Ok(SiglipConfig {
        shape,
        side,
        rows: false,
        theta: None,
        projector: SiglipProjector::Pooled { tokens },
        outputs,
    })
}

/// Idefics 3 and SmolVLM.
pub(in crate::config) fn idefics3(top: Fields<'_>, vision: Fields<'_>, outputs: u32) -> Result<SiglipConfig, Error> {
    let defaults = Defaults {
        hidden: 1152,
        width: 3072,
        layers: 12,
        heads: 16,
        patch: 32,
        image: 224,
    };
    let shape = shape(vision, &defaults)?;
    let side = grid("image_size", square(vision, "image_size")?.unwrap_or(defaults.image), shape.patch)?;
    let merge = top.number("scale_factor")?.unwrap_or(2);
    Ok(SiglipConfig {
        shape,
        side,
        rows: false,
        theta: None,
        projector: SiglipProjector::Joined {
            merge: dividing("scale_factor", merge, side)?,
        },
        outputs,
    })
}

/// LFM2-VL.
pub(in crate::config) fn lfm2(top: Fields<'_>, vision: Fields<'_>, outputs: u32) -> Result<SiglipConfig, Error> {
    let defaults = Defaults {
        hidden: 768,
        width: 3072,
        layers: 12,
        heads: 12,
        patch: 16,
        image: 256,
    };
    let shape = shape(vision, &defaults)?;
    Ok(SiglipConfig {
        shape: TowerShape {
            layers: layers_used(top, shape.layers)?,
            ..shape
        },
        side: vision.number("num_patches")?.unwrap_or(256u32).isqrt(),
        rows: true,
        theta: None,
        projector: SiglipProjector::Network {
            merge: at_least_1("downsample_factor", top.number("downsample_factor")?.unwrap_or(2))?,
            width: top.number("projector_hidden_size")?.unwrap_or(2560),
            normed: top.flag("projector_use_layernorm")?.unwrap_or(true),
            activation: activation(top, "projector_hidden_act", EncoderActivation::Gelu)?,
        },
        outputs,
    })
}

/// PaddleOCR-VL.
pub(in crate::config) fn paddleocr(_top: Fields<'_>, vision: Fields<'_>, outputs: u32) -> Result<SiglipConfig, Error> {
    let defaults = Defaults {
        hidden: 1152,
        width: 4304,
        layers: 27,
        heads: 16,
        patch: 14,
        image: 384,
    };
    let shape = shape(vision, &defaults)?;
    Ok(SiglipConfig {
        shape,
        side: grid("image_size", square(vision, "image_size")?.unwrap_or(defaults.image), shape.patch)?,
        rows: true,
        theta: Some(10_000.0),
        projector: SiglipProjector::NormedNetwork {
            merge: at_least_1("spatial_merge_size", vision.number("spatial_merge_size")?.unwrap_or(2))?,
        },
        outputs,
    })
}

fn at_least_1(field: &'static str, value: u32) -> Result<u32, Error> {
    match value {
        1..=64 => Ok(value),
        _ => Err(Error::InvalidField {
            field,
            reason: format!("{value} is not from 1 to 64"),
        }),
    }
}

fn dividing(field: &'static str, merge: u32, side: u32) -> Result<u32, Error> {
    match at_least_1(field, merge) {
        Ok(merge) if side.is_multiple_of(merge) => Ok(merge),
        _ => Err(Error::InvalidField {
            field,
            reason: format!("{side} rows of patches are not blocks of {merge}"),
        }),
    }
}
