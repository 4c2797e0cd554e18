//! MiniCPM-V 4.6: SigLIP whose patches become a quarter as many between two layers, next to the text part of Qwen 3.5.

use super::shape::TowerShape;
use super::{check_width, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::limits::check_range;
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};
use crate::families::qwen_hybrid;
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::families::Source;
use crate::image_processor::parts::{CENTRED, PATCH, SIDE, TILES};
use crate::image_processor::{Filter, ImageProcessor, Layout, ProcessorConfig, Sizing, Slices};
use crate::image_prompt::{ImagePrompt, ImageRun};
use crate::memory::VisionCost;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "MiniCPM-V 4.6",
    &["minicpmv4_6"],
    language_part,
    VisionRow {
        encoder: parse,
        processor: ProcessorRow::new(&["MiniCPMV4_6"], processor),
        prompt: ImagePrompt {
            run: ImageRun::Slices,
            ..ImagePrompt::new("<|image_pad|>")
        },
    },
)];

/// Patches along a side of a block that becomes one, twice.
pub const MERGE: u32 = 2;

/// Qwen 3.5, to which the tokens of images are as those of a text.
fn language_part(source: Source<'_>) -> Result<Family, Error> {
    let mut family = qwen_hybrid::qwen3_5(source)?;
    if let Family::Decoder(decoder) = &mut family {
        decoder.ropes.iter_mut().for_each(|rope| rope.sections = None);
    }
    Ok(family)
}

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MiniCpmVisionConfig {
    /// The stack.
    pub shape: TowerShape,
    /// Patches along a side of the learned positions.
    pub side: u32,
    /// The number of layers before blocks of patches become one.
    pub before: u32,
}

fn parse(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    const INSERTED: &str = "insert_layer_id";
    let eps = vision.number("layer_norm_eps")?.unwrap_or(1e-6);
    let shape = TowerShape::parse(vision, [768, 12, 12, 3072, 16], eps, EncoderActivation::GeluTanh)?;
    for (fields, field) in [(vision, "window_kernel_size"), (top, "merge_kernel_size")] {
        if fields
            .numbers(field)?
            .is_some_and(|sides| sides.iter().any(|side| *side != MERGE as f32))
        {
            return unusable(field, "only blocks of 2 by 2 patches become one");
        }
    }
    if top.number("merger_times")?.is_some_and(|times: u32| times != 1) {
        return Err(Error::Unsupported(
            "patches that are merged more than twice (`merger_times`)".into(),
        ));
    }
    if top.flag("drop_vision_last_layer")?.unwrap_or(false) {
        return Err(Error::Unsupported(
            "a tower without its last layer (`drop_vision_last_layer`)".into(),
        ));
    }
    if top.text("downsample_mode")?.is_some_and(|mode| mode != "16x") {
        return Err(Error::Unsupported(
            "images of four times as many tokens (`downsample_mode`)".into(),
        ));
    }
    let inserted = top.number(INSERTED)?.unwrap_or(6);
    check_range(INSERTED, inserted, 0..=shape.layers.saturating_sub(1))?;
    let block = u64::from(MERGE * MERGE);
    check_width("hidden_size", block * u64::from(shape.hidden_size))?;
    check_width("intermediate_size", block * u64::from(shape.intermediate_size))?;
    Ok(VisionConfig::MiniCpm(MiniCpmVisionConfig {
        side: shape.side(vision, 224)?,
        shape,
        before: inserted + 1,
    }))
}

impl MiniCpmVisionConfig {
    pub(super) fn cost(&self) -> VisionCost {
        let cost = self.shape.cost(2, self.side, 1);
        let block = u64::from(MERGE * MERGE);
        let (hidden, joined) = (cost.hidden, block * cost.hidden);
        let between = 4 * hidden * hidden + block * cost.width * (joined + hidden);
        VisionCost {
            others: cost.others + between + 2 * joined * joined,
            patches_of_token: block * block,
            ..cost
        }
    }
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    if processor.text("downsample_mode")?.is_some_and(|mode| mode != "16x") {
        return Err(Error::UnknownProcessor(
            "one of images of four times as many tokens".into(),
        ));
    }
    let slices = processor.flag("slice_mode", true)?;
    let most = processor.number("max_slice_nums", 9, TILES)?;
    Ok(ImageProcessor {
        sizing: Sizing::Slices(Slices {
            scale: processor.number("scale_resolution", 448, SIDE)?,
            most: if slices { most } else { 1 },
            patch: processor.number("patch_size", 14, PATCH)?,
            merge: MERGE * MERGE,
        }),
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: Layout::Planes,
    })
}
