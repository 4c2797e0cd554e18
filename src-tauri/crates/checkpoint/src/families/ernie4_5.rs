//! ERNIE 4.5, dense, with experts and with experts for images as well: Llama's shape, in which neighbors turn against
//! each other; in PaddleOCR-VL, halves do.

use super::experts::{place, refuse_biases, scoring, sparse_layers};
use super::llama;
use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::source::Source;
use super::vision::{ernie, siglip};
use crate::config::decoder::{Activation, DecoderConfig, FeedForward, ModalMoeConfig};
use crate::config::moe::{Correction, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::rope::{Defaults, For, RopeConfig, SectionOrder, Sections};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};
use crate::image_processor::parts::patches;
use crate::image_processor::{Enlarging, ImageProcessor, Layout, ProcessorConfig, SmartResize, CLIP};
use crate::image_prompt::{ImagePrompt, ImageRun};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("ERNIE 4.5", &["ernie4_5"], parse),
    FamilyRow::text("ERNIE 4.5 with experts", &["ernie4_5_moe"], experts),
    FamilyRow::vision(
        "PaddleOCR-VL",
        &["paddleocr_vl"],
        paddleocr,
        VisionRow {
            encoder: siglip::paddleocr,
            processor: ProcessorRow::always(&["PaddleOCRVL"], processor),
            prompt: ImagePrompt {
                written: "<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>",
                ..ImagePrompt::new("<|IMAGE_PLACEHOLDER|>")
            },
        },
    ),
    FamilyRow::vision(
        "ERNIE 4.5 VL",
        &["ernie4_5_moe_vl", "ernie4_5_vl_moe"],
        modal,
        VisionRow {
            encoder: ernie::parse,
            processor: ProcessorRow::always(&["Ernie4_5_VLMoe", "Ernie4_5_VL_Moe", "Ernie4_5_VL"], modal_processor),
            // The marks go through the experts of images, so they belong to the run.
            prompt: ImagePrompt {
                also_written: &[
                    "<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>",
                    "<|IMAGE_START|><|image@placeholder|><|IMAGE_END|>",
                ],
                run: ImageRun::Between("<|IMAGE_START|>", "<|IMAGE_END|>"),
                ..ImagePrompt::new("<|IMAGE_PLACEHOLDER|>")
            },
        },
    ),
];

/// Names of the correction in the checkpoints of the maker and of transformers.
const NAMES: &[(&str, &str)] = &[("mlp.moe_statics", "mlp.gate"), ("mlp.gate.moe_statics", "mlp.gate")];

/// Names of the experts in conversions of ERNIE 4.5 VL, in the original files and in those of transformers.
const MODAL_NAMES: &[(&str, &str)] = &[
    ("mlp.switch_mlp_1", "mlp.vision_moe.switch_mlp"),
    ("mlp.gate_1", "mlp.vision_moe.gate"),
    ("mlp.gate.weight_1", "mlp.vision_moe.gate.weight"),
    (
        "mlp.e_score_correction_bias_1",
        "mlp.vision_moe.gate.e_score_correction_bias",
    ),
    ("mlp.e_score_correction_bias", "mlp.gate.e_score_correction_bias"),
    ("mlp.vision_moe.gate.moe_statics", "mlp.vision_moe.gate"),
    ("mlp.text_moe.gate.moe_statics", "mlp.gate"),
    ("mlp.text_moe", "mlp"),
    ("mlp.moe_statics", "mlp.gate"),
];

/// ERNIE 4.5 without experts.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let mut config = decoder(source.text)?;
    config.ropes.iter_mut().for_each(|rope| rope.traditional = true);
    config.family()
}

/// ERNIE 4.5 with experts. The correction of their choice is in the original files alone: mlx-lm leaves it out.
pub(super) fn experts(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    refuse_biases(text, "use_bias")?;
    let mut config = decoder(text)?;
    let head_dim = config.attention().next().map_or(2, |attention| attention.head_dim);
    let defaults = Defaults {
        traditional: true,
        ..Defaults::new(500_000.0)
    };
    config.ropes = vec![RopeConfig::parse(text, head_dim, For::All, defaults)?];
    config.norm.eps = text.number("rms_norm_eps")?.unwrap_or(1e-5);
    let width = match text.number("moe_intermediate_size")?.filter(|width| *width > 0) {
        Some(width) => width,
        None => text.required("intermediate_size")?,
    };
    let experts = routed(text, text.required("moe_num_experts")?, width)?;
    let first = text.number::<u32>("moe_layer_start_index")?.unwrap_or(1) as usize;
    // -1 stands for the last layer.
    let last = text.number::<f32>("moe_layer_end_index")?.filter(|last| *last >= 0.0);
    let step = text.number::<u32>("moe_layer_interval")?.unwrap_or(1).max(1) as usize;
    place(&mut config, experts, |layer| {
        (layer + 1).is_multiple_of(step) && layer >= first && last.is_none_or(|last| layer as f32 <= last)
    });
    config.renames = &[NAMES];
    config.family()
}

/// ERNIE 4.5 VL. Fields of experts are lists of two, for text and for images. Defaults are those of transformers.
fn modal(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    refuse_biases(text, "use_bias")?;
    if text.flag("rope_3d")? == Some(false) {
        return Err(Error::Unsupported(
            "ERNIE 4.5 VL without rows and columns in its positions".into(),
        ));
    }
    let mut config = decoder(text)?;
    let head_dim = config.attention().next().map_or(2, |attention| attention.head_dim);
    let defaults = Defaults {
        traditional: true,
        ..Defaults::new(500_000.0)
    };
    let mut rope = RopeConfig::parse(text, head_dim, For::All, defaults)?;
    rope.sections = Some(sections(text, rope.periods.len())?);
    config.ropes = vec![rope];
    config.norm.eps = text.number("rms_norm_eps")?.unwrap_or(1e-5);
    let counts = both(text, "moe_num_experts", [64; 2])?;
    let widths = both(text, "moe_intermediate_size", [1536, 512])?;
    let experts = ModalMoeConfig {
        text: routed(text, counts[0], widths[0])?,
        vision: MoeConfig {
            shared: None,
            ..routed(text, counts[1], widths[1])?
        },
    };
    let sparse = sparse_layers(text, config.layers.len() as u32)?;
    let ends = |field: &'static str| Ok::<Vec<f32>, Error>(text.numbers(field)?.unwrap_or_default());
    let first = ends("moe_layer_start_index")?
        .into_iter()
        .reduce(f32::min)
        .unwrap_or(1.0);
    let last = ends("moe_layer_end_index")?
        .into_iter()
        .reduce(f32::max)
        .filter(|last| *last >= 0.0);
    let step = text.number::<u32>("moe_layer_interval")?.unwrap_or(1).max(1) as usize;
    for (index, layer) in config.layers.iter_mut().enumerate() {
        let number = index as f32;
        let within = (index + 1).is_multiple_of(step) && number >= first && last.is_none_or(|last| number <= last);
        if sparse.as_ref().map_or(within, |sparse| sparse[index]) {
            layer.feed_forward = FeedForward::ModalMoe(experts);
        }
    }
    config.renames = &[MODAL_NAMES];
    config.family()
}

/// The pairs that turn by rows, by columns and by the time (`mrope_section`).
fn sections(text: Fields<'_>, pairs: usize) -> Result<Sections, Error> {
    const FIELD: &str = "mrope_section";
    let mut written = None;
    for table in ["rope_parameters", "rope_scaling"] {
        if let Some(table) = text.object(table)? {
            written = written.or(table.numbers(FIELD)?);
        }
    }
    let parts = written.unwrap_or_else(|| vec![22.0, 22.0, 20.0]);
    let whole = parts.iter().all(|part| *part >= 0.0 && part.fract() == 0.0);
    match parts[..] {
        [rows, columns, time] if whole && rows == columns && rows + columns + time == pairs as f32 => Ok(Sections {
            pairs: [time, rows, columns, 0.0].map(|part| part as u32),
            order: SectionOrder::TimeLast,
        }),
        _ => unusable(
            FIELD,
            format!("{parts:?} are not as many pairs for rows as for columns and the others of {pairs}"),
        ),
    }
}

/// A number for text and one for images, which are the same if there is one alone.
fn both(text: Fields<'_>, field: &'static str, usual: [u32; 2]) -> Result<[u32; 2], Error> {
    match text.numbers(field)?.as_deref() {
        None => Ok(usual),
        Some([one]) => Ok([*one as u32; 2]),
        Some([text, vision]) => Ok([*text as u32, *vision as u32]),
        Some(parts) => unusable(field, format!("it has {} parts, not 2", parts.len())),
    }
}

/// The experts, this many of this width, and the network beside them.
fn routed(text: Fields<'_>, num_experts: u32, width: u32) -> Result<MoeConfig, Error> {
    let beside = text.number::<u32>("moe_num_shared_experts")?.filter(|count| *count > 0);
    Ok(MoeConfig {
        num_experts,
        top_k: text.number("moe_k")?.unwrap_or(6),
        width,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            correction: Correction::IfPresent,
            ..RouterConfig::new(scoring(text, "moe_gate_act", Scoring::Softmax)?, true)
        },
        shared: beside.map(|count| SharedExpertConfig::beside(count.saturating_mul(width))),
    })
}

/// The language part of PaddleOCR-VL.
pub(super) fn paddleocr(source: Source<'_>) -> Result<Family, Error> {
    decoder(source.text)?.family()
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let mut config = llama::decoder(text)?;
    let bias = text.flag("use_bias")?.unwrap_or(false);
    config.each_attention(|attention| (attention.qkv_bias, attention.o_bias) = (bias, bias));
    for layer in &mut config.layers {
        if let FeedForward::Dense(dense) = &mut layer.feed_forward {
            dense.bias = bias;
        }
    }
    Ok(config)
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let in_turn = |rule| SmartResize {
        enlarging: Enlarging::InTurn,
        ..rule
    };
    patches(processor, 14, 1, (147_456, 2_359_296), in_turn, false, CLIP)
}

/// ERNIE 4.5 VL, which has no second frame, whatever its file says of films.
fn modal_processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let mut read = patches(processor, 14, 1, (3_136, 4_842_768), |rule| rule, true, CLIP)?;
    if let Layout::Patches { frames, .. } = &mut read.layout {
        *frames = 1;
    }
    Ok(read)
}
