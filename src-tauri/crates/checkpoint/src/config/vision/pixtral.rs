//! Pixtral: root mean square norms, gated networks, rotary positions by row and column (Pixtral, Mistral 3, Ministral 3).

use super::{activation, layers_used, square, TowerShape};
use crate::config::encoder::EncoderActivation;
use crate::config::fields::Fields;
use crate::Error;

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixtralConfig {
    /// The stack.
    pub shape: TowerShape,
    /// Period of the rotary positions.
    pub theta: f32,
    /// Norm and merger before the projector (Mistral 3).
    pub merger: Option<PatchMerger>,
    /// The activation between the two projections.
    pub activation: EncoderActivation,
    /// Width of the language part.
    pub outputs: u32,
}

/// Patches that become one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PatchMerger {
    /// Patches along a side of a block.
    pub merge: u32,
    /// Added to the mean square by the norm before it.
    pub eps: f32,
}

/// Pixtral in a LLaVA wrapper.
pub(in crate::config) fn pixtral(top: Fields<'_>, vision: Fields<'_>, outputs: u32) -> Result<PixtralConfig, Error> {
    let shape = TowerShape {
        hidden: vision.number("hidden_size")?.unwrap_or(1024),
        layers: vision.number("num_hidden_layers")?.unwrap_or(24),
        heads: vision.number("num_attention_heads")?.unwrap_or(16),
        width: vision.number("intermediate_size")?.unwrap_or(4096),
        patch: square(vision, "patch_size")?.unwrap_or(16),
        // Not in any config: transformers' class has it.
        eps: 1e-5,
        activation: activation(vision, "hidden_act", EncoderActivation::Gelu)?,
    }
    .check()?;
    let theta = match vision.object("rope_parameters")? {
        Some(parameters) => parameters.number("rope_theta")?,
        None => vision.number("rope_theta")?,
    };
    if !(shape.hidden / shape.heads).is_multiple_of(4) {
        return Err(Error::InvalidField {
            field: "num_attention_heads",
            reason: format!("half of {} numbers of a head are no pairs", shape.hidden / shape.heads),
        });
    }
    Ok(PixtralConfig {
        shape: TowerShape {
            layers: layers_used(top, shape.layers)?,
            ..shape
        },
        theta: theta.unwrap_or(10_000.0),
        merger: None,
        activation: activation(top, "projector_hidden_act", EncoderActivation::Gelu)?,
        outputs,
    })
}

/// Mistral 3, which merges patches before it projects them.
pub(in crate::config) fn mistral3(top: Fields<'_>, vision: Fields<'_>, outputs: u32) -> Result<PixtralConfig, Error> {
    let text = top.object("text_config")?.unwrap_or(top);
    let merge = top.number("spatial_merge_size")?.unwrap_or(2);
    if !(1..=64).contains(&merge) {
        return Err(Error::InvalidField {
            field: "spatial_merge_size",
            reason: format!("{merge} is not from 1 to 64"),
        });
    }
    Ok(PixtralConfig {
        merger: Some(PatchMerger {
            merge,
            eps: text.number("rms_norm_eps")?.unwrap_or(1e-5),
        }),
        ..pixtral(top, vision, outputs)?
    })
}
