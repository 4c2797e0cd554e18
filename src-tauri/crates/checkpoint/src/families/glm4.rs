//! GLM 4, dense: norms around both halves of a layer, neighbors of half a head turn against each other. The models of
//! 2024 have norms before them alone.

use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::shapes::Shapes;
use super::source::Source;
use super::vision::glm;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, FeedForward, LayerConfig, Mixer, NormPlacement,
};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;
use crate::image_processor::parts::{patches, FRAMES};
use crate::image_processor::{Enlarging, ImageProcessor, ProcessorConfig, SmartResize, CLIP};
use crate::image_prompt::ImagePrompt;

/// How GLM-4.1V and its successors read images.
pub(super) const VISION: VisionRow = VisionRow {
    encoder: glm::glm4v,
    processor: ProcessorRow::new(&["Glm4v", "Glm46V"], processor),
    prompt: ImagePrompt {
        written: "<|begin_of_image|><|image|><|end_of_image|>",
        ..ImagePrompt::new("<|image|>")
    },
};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("GLM 4", &["glm4"], parse),
    FamilyRow::text("GLM 4 9B of 2024, GLM-Edge", &["glm"], glm),
    FamilyRow::vision("GLM-4.1V", &["glm4v"], parse, VISION),
    FamilyRow::vision(
        "GLM-OCR",
        &["glm_ocr"],
        parse,
        VisionRow {
            encoder: glm::glm_ocr,
            ..VISION
        },
    ),
];

/// Names of the norms in the checkpoints.
const NORMS: &[(&str, &str)] = &[
    ("post_attention_layernorm", "pre_feedforward_layernorm"),
    ("post_self_attn_layernorm", "post_attention_layernorm"),
    ("post_mlp_layernorm", "post_feedforward_layernorm"),
];

/// GLM 4 of 9 and 32 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    let mut config = decoder(text, NormPlacement::Sandwich, bias)?;
    config.renames = &[NORMS];
    config.family()
}

/// GLM 4 of 2024; defaults are those of transformers' `GlmConfig`.
pub(super) fn glm(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let bias = text.flag("attention_bias")?.unwrap_or(true);
    let mut config = decoder(text, NormPlacement::Pre, bias)?;
    config.norm.eps = text.number("rms_norm_eps")?.unwrap_or(1.5625e-7);
    config.family()
}

fn decoder(text: Fields<'_>, norms: NormPlacement, qkv_bias: bool) -> Result<DecoderConfig, Error> {
    let shapes = Shapes::parse(text)?;
    let defaults = Defaults {
        traditional: true,
        partial: 0.5,
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let layer = LayerConfig {
        norms,
        mixer: Mixer::Attention(AttentionConfig {
            qkv_bias,
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
    };
    let layers = vec![layer; shapes.layers as usize];
    Ok(shapes.decoder(vec![rope], layers))
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let frames = processor.number("temporal_patch_size", 2, FRAMES)?;
    let counted = |rule| SmartResize {
        frames,
        enlarging: Enlarging::Together,
        ..rule
    };
    patches(processor, 14, 2, (12_544, 11_760_000), counted, true, CLIP)
}
