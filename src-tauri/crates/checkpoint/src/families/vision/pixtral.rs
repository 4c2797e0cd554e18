//! Pixtral: root mean square norms, gated networks, a rotation by row and column (Pixtral, Mistral 3, Ministral 3), next
//! to a language part of one of several types.

use super::shape::{activation, layers_used, merge, TowerShape};
use super::VisionConfig;
use crate::config::activation::EncoderActivation;
use crate::config::Fields;
use crate::error::Error;
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::families::wrapper::by_language_part;
use crate::image_processor::parts::{LONGEST, MERGE, PATCH};
use crate::image_processor::{Filter, ImageProcessor, Layout, ProcessorConfig, Sizing, CLIP};
use crate::image_prompt::{ImagePrompt, ImageRun};
use crate::memory::VisionCost;

/// How Pixtral reads images.
pub(in crate::families) const VISION: VisionRow = VisionRow {
    encoder: pixtral,
    processor: ProcessorRow::new(&["Pixtral"], processor),
    prompt: ImagePrompt {
        run: ImageRun::Rows("[IMG_BREAK]", "[IMG_END]"),
        ..ImagePrompt::new("[IMG]")
    },
};

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] =
    &[FamilyRow::vision("Pixtral", &["pixtral"], by_language_part, VISION)];

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let (written, _) = processor.sides("patch_size", 16, PATCH)?;
    let patch = processor.model_number(&["vision_config.patch_size"], written, PATCH)?;
    let longest = processor.within("size", &["longest_edge"], LONGEST)?;
    let (width, height) = processor.sides("size", longest.unwrap_or(1024), LONGEST)?;
    Ok(ImageProcessor {
        sizing: Sizing::Longest {
            width,
            height,
            patch,
            merge: processor.model_number(&["spatial_merge_size"], 1, MERGE)?,
        },
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(Some(CLIP))?,
        layout: Layout::Planes,
    })
}

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
fn pixtral(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
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
    // The number in the norms is in no config: transformers' class has it.
    let shape = TowerShape::parse(vision, [1024, 24, 16, 4096, 16], 1e-5, EncoderActivation::Gelu)?.check_turning()?;
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
