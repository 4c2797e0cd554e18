//! FastViTHD, the tower of FastVLM: convolutions, and attention in its last stages. Of its network a config says
//! nothing but its name; how many blocks there are, and how wide they are, is told by the weights.

use super::{check_width, VisionConfig};
use crate::config::Fields;
use crate::error::Error;
use crate::families::qwen;
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::image_processor::parts::{room_for_a_token, LONGEST};
use crate::image_processor::{Filter, ImageProcessor, Layout, ProcessorConfig, Sizing};
use crate::image_prompt::ImagePrompt;
use crate::memory::VisionCost;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "FastVLM",
    &["fastvlm", "llava_qwen2"],
    qwen::qwen2,
    VisionRow {
        encoder: parse,
        processor: ProcessorRow::fixed(&[], processor),
        prompt: ImagePrompt {
            written: "<image>\n",
            added: true,
            ..ImagePrompt::new("<image>")
        },
    },
)];

/// Pixels on a side of what becomes one token: the stem and four stages make a grid smaller, to 64th in all.
const TOKEN: u32 = 64;

/// Places along a side of the smallest grid, which the last convolutions cover.
const PLACES: u32 = 7;

/// The parts of the tower that are known before the weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FastVitConfig {
    /// Width of its features.
    pub hidden_size: u32,
}

fn parse(_: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let tower = top.text("mm_vision_tower")?;
    if tower.as_deref().is_some_and(|name| !name.starts_with("mobileclip_l")) {
        let name = tower.unwrap_or_default();
        return Err(Error::Unsupported(format!(
            "a tower of the kind `{name}` beside FastVLM"
        )));
    }
    if top.text("mm_projector_type")?.is_some_and(|kind| kind != "mlp2x_gelu") {
        return Err(Error::Unsupported(
            "another projector of FastVLM than `mlp2x_gelu`".into(),
        ));
    }
    let hidden_size = top.number("mm_hidden_size")?.unwrap_or(3072);
    check_width("mm_hidden_size", hidden_size.into())?;
    Ok(VisionConfig::FastVit(FastVitConfig { hidden_size }))
}

impl FastVitConfig {
    /// A fixed network, which takes most when its first stage widens what the stem made of 1024 by 1024 pixels.
    pub(super) fn cost(&self) -> VisionCost {
        const PARAMETERS: u64 = 125_000_000;
        const PLACES: u64 = 256 * 256;
        VisionCost {
            hidden: 96,
            width: 4 * 96,
            projections: 2,
            others: PARAMETERS + 2 * u64::from(self.hidden_size).pow(2),
            tokens: 256,
            together: Some(PLACES),
            ..VisionCost::EMPTY
        }
    }
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let side = processor.shortest_edge("size", LONGEST)?;
    let (width, height) = processor.sides("size", side.unwrap_or(1024), LONGEST)?;
    let crop = processor.sides("crop_size", width, LONGEST)?;
    if width != height || crop != (width, height) {
        return Err(Error::UnknownProcessor("one of images that are no squares".into()));
    }
    room_for_a_token(width, PLACES * TOKEN)?;
    if !width.is_multiple_of(TOKEN) {
        let (field, reason) = ("size", format!("{width} pixels are no whole tokens of {TOKEN}"));
        return Err(Error::InvalidProcessor { field, reason });
    }
    Ok(ImageProcessor {
        sizing: Sizing::Square {
            side: width,
            patch: TOKEN,
        },
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(Some(([0.0; 3], [1.0; 3])))?,
        layout: Layout::Planes,
    })
}
