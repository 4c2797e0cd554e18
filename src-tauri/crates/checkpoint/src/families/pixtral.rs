//! Pixtral: a vision encoder next to a language part of one of several types.

use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::wrapper::by_language_part;
use crate::config::vision::pixtral;
use crate::error::Error;
use crate::image_processor::parts::{LONGEST, MERGE, PATCH};
use crate::image_processor::{Filter, ImageProcessor, Layout, ProcessorConfig, Sizing, CLIP};
use crate::image_prompt::{ImagePrompt, ImageRun};

/// How Pixtral reads images.
pub(super) const VISION: VisionRow = VisionRow {
    encoder: pixtral::pixtral,
    processor: ProcessorRow::new(&["Pixtral"], processor),
    prompt: ImagePrompt {
        placeholder: "[IMG]",
        written: "[IMG]",
        feature: "[IMG]",
        run: ImageRun::Rows("[IMG_BREAK]", "[IMG_END]"),
        ..ImagePrompt::PLAIN
    },
    fixed: false,
};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(&["pixtral"], by_language_part, VISION)];

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
