//! Gemma 4.

use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::source::Source;
use super::vision::gemma4;
use crate::config::gemma4::Gemma4Config;
use crate::config::Family;
use crate::error::Error;
use crate::image_processor::parts::{pixel_by_pixel, MERGE, PATCH};
use crate::image_processor::{Filter, ImageProcessor, ProcessorConfig, Sizing};
use crate::image_prompt::{ImagePrompt, ImageRun};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::vision(
        "Gemma 4",
        &["gemma4"],
        parse,
        VisionRow {
            encoder: gemma4::parse,
            processor: ProcessorRow::new(&["Gemma4"], processor),
            prompt: ImagePrompt {
                run: ImageRun::Between("<|image>", "<image|>"),
                ..ImagePrompt::new("<|image|>")
            },
        },
    ),
    FamilyRow::text("Gemma 4, text only", &["gemma4_text", "gemma4_unified"], parse),
];

/// Gemma 4, its text part.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let config = Gemma4Config::parse(source.text, source.top.number("vocab_size")?)?;
    Ok(Family::Gemma4(config))
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let patch = processor.number("patch_size", 16, PATCH)?;
    Ok(ImageProcessor {
        sizing: Sizing::Budget {
            patch,
            pool: processor.number("pooling_kernel_size", 3, MERGE)?,
            tokens: processor.number("max_soft_tokens", 280, 1..=1120)?,
        },
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(None)?,
        layout: pixel_by_pixel(patch),
    })
}
