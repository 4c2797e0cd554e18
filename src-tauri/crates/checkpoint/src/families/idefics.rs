//! Idefics 3 and SmolVLM: SigLIP next to a language part of one of several types.

use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::vision::siglip;
use super::wrapper::by_language_part;
use crate::error::Error;
use crate::image_processor::parts::{room_for_a_token, CENTRED, LONGEST, MERGE, PATCH, SIDE};
use crate::image_processor::{Filter, ImageProcessor, ImageSplitting, Layout, ProcessorConfig, Sizing};
use crate::image_prompt::{ImagePrompt, ImageRun};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "Idefics 3 and SmolVLM",
    &["idefics3", "smolvlm"],
    by_language_part,
    VisionRow {
        encoder: siglip::idefics3,
        processor: ProcessorRow::new(&["Idefics3", "SmolVLM"], processor),
        prompt: ImagePrompt {
            run: ImageRun::Idefics,
            ..ImagePrompt::new("<image>")
        },
    },
)];

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let tile = processor
        .within("max_image_size", &["longest_edge"], SIDE)?
        .unwrap_or(364);
    let patch = processor.model_number(&["vision_config.patch_size"], 14, PATCH)?;
    let merge = processor.model_number(&["scale_factor"], 2, MERGE)?;
    room_for_a_token(tile, patch * merge)?;
    Ok(ImageProcessor {
        sizing: Sizing::ImageSplitting(ImageSplitting {
            longest: processor.within("size", &["longest_edge"], LONGEST)?.unwrap_or(1456),
            tile,
            splitting: processor.flag("do_image_splitting", true)?,
            patch,
            merge,
        }),
        filter: processor.filter(Filter::Lanczos)?,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: Layout::Planes,
    })
}
