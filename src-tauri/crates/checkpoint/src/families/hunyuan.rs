//! HunYuan, dense: Llama's shape, in which the heads of queries and keys are normed after they have turned.

use super::llama;
use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::source::Source;
use super::vision::hunyuan;
use crate::config::decoder::QkNorm;
use crate::config::Family;
use crate::error::Error;
use crate::image_processor::parts::patches;
use crate::image_processor::{Features, Filter, ImageProcessor, ProcessorConfig, SmartResize, CLIP};
use crate::image_prompt::ImagePrompt;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("HunYuan, dense", &["hunyuan_v1_dense"], parse),
    FamilyRow::vision(
        "HunyuanOCR",
        &["hunyuan_vl"],
        parse,
        VisionRow {
            encoder: hunyuan::parse,
            processor: ProcessorRow::new(&["HunYuanVL"], processor),
            prompt: ImagePrompt {
                written: "<｜hy_place▁holder▁no▁100｜><｜hy_place▁holder▁no▁102｜><｜hy_place▁holder▁no▁101｜>",
                ..ImagePrompt::new("<｜hy_place▁holder▁no▁102｜>")
            },
        },
    ),
];

/// Names of the norms of heads in the checkpoints.
const NORMS: &[(&str, &str)] = &[("query_layernorm", "q_norm"), ("key_layernorm", "k_norm")];

/// HunYuan of 0.5 to 7 billion parameters, and the language part of HunyuanOCR.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let mut config = llama::decoder(source.text)?;
    if source.text.flag("use_qk_norm")?.unwrap_or(true) {
        config.each_attention(|attention| attention.qk_norm = QkNorm::PerHeadTurned);
    }
    config.renames = &[NORMS];
    config.family()
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let rows = |rule| SmartResize {
        features: Features::Rows,
        ..rule
    };
    // Its file names Lanczos, its own code resizes by Pillow's default.
    let described = patches(processor, 16, 1, (262_144, 4_194_304), rows, false, CLIP)?;
    Ok(ImageProcessor {
        filter: Filter::Bicubic,
        ..described
    })
}
