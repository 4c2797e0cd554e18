//! HunYuan, dense and with experts: Llama's shape, in which the heads of queries and keys are normed after they have
//! turned.

use super::llama;
use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::source::Source;
use super::vision::hunyuan;
use crate::config::decoder::{Activation, DecoderConfig, FeedForward, QkNorm};
use crate::config::moe::{MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::{Family, Fields};
use crate::error::Error;
use crate::image_processor::parts::patches;
use crate::image_processor::{Features, Filter, ImageProcessor, ProcessorConfig, SmartResize, CLIP};
use crate::image_prompt::ImagePrompt;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("HunYuan, dense", &["hunyuan_v1_dense"], parse),
    FamilyRow::text("HunYuan with experts", &["hunyuan", "hunyuan_v1_moe"], experts),
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

/// Names of experts in the checkpoints.
const EXPERTS: &[(&str, &str)] = &[("mlp.gate.wg", "mlp.gate"), ("mlp.shared_mlp", "mlp.shared_experts")];

/// HunYuan of 0.5 to 7 billion parameters, and the language part of HunyuanOCR.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    decoder(source.text)?.family()
}

/// HunYuan with experts: A13B. Shares of several experts sum to 1, which mlx-lm leaves out.
pub(super) fn experts(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    if text.flag("use_cla")?.unwrap_or(false) && text.number("cla_share_factor")?.unwrap_or(2u32) > 1 {
        return Err(Error::Unsupported(
            "layers with the keys of the one before (`use_cla`, Hunyuan-Large)".into(),
        ));
    }
    let mut config = decoder(text)?;
    let layers = config.layers.len() as u32;
    let width: u32 = text.required("intermediate_size")?;
    let num_experts = text.required("num_experts")?;
    let top_k = text
        .by_layer("moe_topk", layers)?
        .unwrap_or_else(|| vec![1; layers as usize]);
    let widths = text.by_layer("moe_intermediate_size", layers)?;
    let beside = text.by_layer("num_shared_expert", layers)?;
    let mixed = text.flag("use_mixed_mlp_moe")?.unwrap_or(true);
    for (index, layer) in config.layers.iter_mut().enumerate() {
        if num_experts == 1 {
            break;
        }
        let beside: u32 = beside.as_ref().map_or(1, |beside| beside[index]);
        layer.feed_forward = FeedForward::Moe(MoeConfig {
            num_experts,
            top_k: top_k[index],
            width: widths.as_ref().map_or(width, |widths| widths[index]),
            activation: Activation::Silu,
            bias: false,
            router: RouterConfig::new(Scoring::Softmax, top_k[index] > 1),
            shared: mixed.then(|| SharedExpertConfig::beside(beside.saturating_mul(width))),
        });
    }
    config.renames = &[NORMS, EXPERTS];
    config.family()
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let mut config = llama::decoder(text)?;
    if text.flag("use_qk_norm")?.unwrap_or(true) {
        config.each_attention(|attention| attention.qk_norm = QkNorm::PerHeadTurned);
    }
    config.renames = &[NORMS];
    Ok(config)
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
