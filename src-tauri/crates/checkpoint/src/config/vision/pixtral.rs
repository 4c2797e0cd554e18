//! Pixtral: root mean square norms, gated networks, a rotation by row and column (Pixtral, Mistral 3, Ministral 3).

use super::shape::{activation, layers_used, merge, square, TowerShape};
use super::VisionConfig;
use crate::config::activation::EncoderActivation;
use crate::config::fields::Fields;
use crate::error::Error;
use crate::memory::VisionCost;

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixtralConfig {
    /// The stack.
    pub shape: TowerShape,
    /// The base of the rotation's periods.
    pub theta: f32,
    /// Norm and merger before the projector (Mistral 3).
    pub merger: Option<PatchMerger>,
    /// The activation between the two projections.
    pub activation: EncoderActivation,
}

/// Patches that become one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PatchMerger {
    /// Patches along a side of a block.
    pub merge: u32,
    /// Added to the mean square by the norm before it.
    pub eps: f32,
}

/// Pixtral.
pub(crate) fn pixtral(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    Ok(VisionConfig::Pixtral(parse(vision, top)?))
}

/// Mistral 3, which merges patches before it projects them.
pub(crate) fn mistral3(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let text = top.object("text_config")?.unwrap_or(top);
    Ok(VisionConfig::Pixtral(PixtralConfig {
        merger: Some(PatchMerger {
            merge: merge("spatial_merge_size", top.number("spatial_merge_size")?)?,
            eps: text.number("rms_norm_eps")?.unwrap_or(1e-6),
        }),
        ..parse(vision, top)?
    }))
}

fn parse(vision: Fields<'_>, top: Fields<'_>) -> Result<PixtralConfig, Error> {
    let shape = TowerShape {
        hidden_size: vision.number("hidden_size")?.unwrap_or(1024),
        layers: vision.number("num_hidden_layers")?.unwrap_or(24),
        heads: vision.number("num_attention_heads")?.unwrap_or(16),
        intermediate_size: vision.number("intermediate_size")?.unwrap_or(4096),
        patch_size: square(vision, "patch_size")?.unwrap_or(16),
        // In no config: transformers' class has it.
        eps: 1e-5,
        activation: activation(vision, "hidden_act", EncoderActivation::Gelu)?,
    };
    let shape = shape.check()?.check_turning()?;
    let theta = match vision.object("rope_parameters")? {
        Some(parameters) => parameters.number("rope_theta")?,
        None => vision.number("rope_theta")?,
    };
    Ok(PixtralConfig {
        shape: TowerShape {
            layers: layers_used(top, shape.layers)?,
            ..shape
        },
        theta: theta.unwrap_or(10_000.0),
        merger: None,
        activation: activation(top, "projector_hidden_act", EncoderActivation::Gelu)?,
    })
}

impl PixtralConfig {
    pub(super) fn cost(&self) -> VisionCost {
        let cost = self.shape.cost(3, 0, 1);
        cost.joined(self.merger.map_or(1, |merger| merger.merge))
    }
}
