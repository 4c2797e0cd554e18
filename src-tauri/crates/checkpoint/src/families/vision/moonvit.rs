//! MoonViT: layer norms, networks of two projections, learned positions that are stretched over each image, and a
//! rotation of neighbors by column and row in turn (Kimi-VL, Kimi K2.5).

use std::ops::RangeInclusive;

use super::shape::TowerShape;
use super::{check_width, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::limits::check_range;
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::families::wrapper::by_language_part;
use crate::image_processor::parts::{MERGE, PATCH};
use crate::image_processor::{Filter, ImageProcessor, Layout, Padded, ProcessorConfig, Sizing};
use crate::image_prompt::ImagePrompt;
use crate::memory::VisionCost;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::vision("Kimi-VL", &["kimi_vl"], by_language_part, VISION),
    FamilyRow::vision(
        "Kimi K2.5",
        &["kimi_k25"],
        by_language_part,
        VisionRow {
            processor: ProcessorRow::always(&["Kimi_K25"], k25_processor),
            prompt: ImagePrompt {
                written: "<|media_begin|>image<|media_content|><|media_pad|><|media_end|>",
                ..ImagePrompt::new("<|media_pad|>")
            },
            ..VISION
        },
    ),
];

const VISION: VisionRow = VisionRow {
    encoder: kimi_vl,
    processor: ProcessorRow::new(&["KimiVL"], processor),
    prompt: ImagePrompt {
        written: "<|media_start|>image<|media_content|><|media_pad|><|media_end|>",
        ..ImagePrompt::new("<|media_pad|>")
    },
};

/// Limits of the most patches.
const PATCHES: RangeInclusive<u32> = 1..=1 << 18;

/// The mean and the deviation of each color unless a file says otherwise.
const HALF: ([f64; 3], [f64; 3]) = ([0.5; 3], [0.5; 3]);

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    padded(processor, processor.number("in_token_limit", 4096, PATCHES)?)
}

/// That of Kimi K2.5, whose limit stands in the file of the original or of transformers.
fn k25_processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let limit = processor.within("media_proc_cfg", &["in_patch_limit"], PATCHES)?;
    padded(
        processor,
        processor.number("max_patches", limit.unwrap_or(16_384), PATCHES)?,
    )
}

fn padded(processor: &ProcessorConfig, patches: u32) -> Result<ImageProcessor, Error> {
    Ok(ImageProcessor {
        sizing: Sizing::Padded(Padded {
            patch: processor.number("patch_size", 14, PATCH)?,
            merge: processor.model_number(&["vision_config.merge_kernel_size"], 2, MERGE)?,
            patches,
            side: 512,
        }),
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(Some(HALF))?,
        layout: Layout::Planes,
    })
}

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoonVitConfig {
    /// The stack.
    pub shape: TowerShape,
    /// Rows and columns of the learned positions.
    pub table: (u32, u32),
    /// Patches along a side of a block that becomes one token.
    pub merge: u32,
}

/// Kimi-VL, and Kimi K2.5 under names of its own.
fn kimi_vl(vision: Fields<'_>, _: Fields<'_>) -> Result<VisionConfig, Error> {
    const MERGE: &str = "merge_kernel_size";
    // The number in the norms is in no config: it is torch's.
    let shape = TowerShape::parse(vision, [1152, 27, 16, 4304, 14], 1e-5, EncoderActivation::GeluTanh)?;
    let own = |field: &'static str, usual: u32| Ok::<_, Error>(vision.number(field)?.unwrap_or(usual));
    let shape = TowerShape {
        hidden_size: own("vt_hidden_size", shape.hidden_size)?,
        layers: own("vt_num_hidden_layers", shape.layers)?,
        heads: own("vt_num_attention_heads", shape.heads)?,
        intermediate_size: own("vt_intermediate_size", shape.intermediate_size)?,
        ..shape
    };
    let shape = shape.check()?;
    let side = |field: &'static str| -> Result<u32, Error> {
        check_range(field, vision.number(field)?.unwrap_or(64), 1..=1024)
    };
    let merge = match vision.numbers(MERGE)?.as_deref() {
        None => 2,
        Some([down, across]) if down == across && down.fract() == 0.0 => *down as u32,
        Some(_) => return unusable(MERGE, "it is not one size for both sides"),
    };
    let shape = shape.check_turning()?;
    let merge = check_range(MERGE, merge, 1..=16)?;
    check_width(MERGE, u64::from(shape.hidden_size) * u64::from(merge).pow(2))?;
    Ok(VisionConfig::MoonVit(MoonVitConfig {
        shape,
        table: (side("init_pos_emb_height")?, side("init_pos_emb_width")?),
        merge,
    }))
}

impl MoonVitConfig {
    pub(super) fn cost(&self) -> VisionCost {
        let cost = self.shape.cost(2, self.table.0.max(self.table.1), 1);
        cost.joined(self.merge)
    }
}
