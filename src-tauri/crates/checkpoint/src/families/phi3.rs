//! Phi 3 and 4 (mini): Llama's shape with joined projections in the files and a partly turning head.

use super::llama;
use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::source::Source;
use super::vision::siglip;
use crate::config::Family;
use crate::error::Error;
use crate::image_processor::parts::{pixel_by_pixel, CENTRED, PATCH};
use crate::image_processor::{Filter, ImageProcessor, NaFlex, ProcessorConfig, Sizing};
use crate::image_prompt::ImagePrompt;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("Phi 3, 3.5 and 4 mini", &["phi3"], parse),
    FamilyRow::vision(
        "Phi 4 Reasoning Vision",
        &["phi4-siglip", "phi4_siglip"],
        parse,
        VisionRow {
            encoder: siglip::phi4,
            processor: ProcessorRow::always(&[], processor),
            prompt: ImagePrompt {
                written: "<image>\n",
                added: true,
                ..ImagePrompt::new("<image>")
            },
        },
    ),
];

/// Phi 3, 3.5 and 4 mini.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let mut config = llama::decoder(source.text)?;
    let window = source.text.number("sliding_window")?;
    config.each_attention(|attention| attention.window = window);
    config.family()
}

/// Phi 4 Reasoning Vision, whose limits stand in both files.
fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    const PATCHES: std::ops::RangeInclusive<u32> = 1..=16_384;
    let patch = processor.model_number(&["vision_config.patch_size"], 16, PATCH)?;
    let patch = processor.number("patch_size", patch, PATCH)?;
    let least = processor.model_number(&["min_num_patches"], 256, PATCHES)?;
    let most = processor.model_number(&["max_num_patches"], 3600, PATCHES)?;
    Ok(ImageProcessor {
        sizing: Sizing::NaFlex(NaFlex {
            patch,
            least: processor.number("min_num_patches", least, PATCHES)?,
            most: processor.number("max_num_patches", most, PATCHES)?,
        }),
        filter: processor.filter(Filter::Bilinear)?,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: pixel_by_pixel(patch),
    })
}
