//! Falcon-OCR: one decoder for text and patches. Half of each head turns by the place in the prompt, the other half by
//! the place in the image, in each head along directions of its own; norms have no factors, scores have a sink, gates
//! are squared.

use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::shapes::Shapes;
use super::source::Source;
use super::vision::falcon_ocr;
use crate::config::decoder::{
    Activation, AttentionConfig, FeedForward, LayerConfig, LmHead, Mixer, NormPlacement, QkNorm,
};
use crate::config::limits::check_layers;
use crate::config::rope::RopeConfig;
use crate::config::Family;
use crate::error::Error;
use crate::image_processor::parts::{pixel_by_pixel, CENTRED, PATCH};
use crate::image_processor::{Enlarging, Features, Filter, ImageProcessor, ProcessorConfig, Sizing, SmartResize};
use crate::image_prompt::{ImagePrompt, ImageRun};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::vision("Falcon-OCR", &["falcon_ocr"], parse, VisionRow {
    encoder: falcon_ocr::parse,
    processor: ProcessorRow::fixed(&["FalconOCR"], processor),
    prompt: ImagePrompt {
        most: Some(1),
        // The model reads a page after these words alone; what else is asked for stands in their place.
        template: Some(
            "{% for message in messages %}{% if message['role'] == 'user' %}{{ message['content'] }}\n{% endif %}{% endfor %}<|OCR_PLAIN|>",
        ),
        run: ImageRun::Between(
            "<|image_cls|><|image_reg_1|><|image_reg_2|><|image_reg_3|><|image_reg_4|>",
            "<|end_of_image|>",
        ),
        ..ImagePrompt::new("<|image|>")
    },
}),
];

/// Tensor names of the original and of conversions. In the original, rows of gate and up projection alternate.
const NAMES: &[(&str, &str)] = &[
    ("tok_embeddings", "embed_tokens"),
    ("output", "lm_head"),
    ("attention.wqkv", "self_attn.qkv_proj"),
    ("attention.wo", "self_attn.o_proj"),
    ("attention.sinks", "self_attn.sinks"),
    ("feed_forward.w13", "mlp.gate_up_pairs"),
    ("feed_forward.w2", "mlp.down_proj"),
    ("self_attn.wqkv", "self_attn.qkv_proj"),
    ("self_attn.wo", "self_attn.o_proj"),
    ("mlp.w13", "mlp.gate_up_proj"),
    ("mlp.w2", "mlp.down_proj"),
];

/// The only model of the family.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let hidden_size = text.either("dim", "hidden_size")?;
    let heads = text.either("n_heads", "num_attention_heads")?;
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(text.either("n_layers", "num_hidden_layers")?)?,
        heads,
        key_heads: text.first(&["n_kv_heads", "num_key_value_heads"])?.unwrap_or(heads),
        head_dim: text.number("head_dim")?.unwrap_or(hidden_size / heads),
        width: text.either("ffn_dim", "intermediate_size")?,
        eps: text.first(&["norm_eps", "rms_norm_eps"])?.unwrap_or(1e-5),
        lm_head: LmHead::UntiedIfPresent,
    };
    let theta = text.number("rope_theta")?.unwrap_or(10_000.0f32);
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            // Heads that share a key turn it along different directions, so each has its own.
            stored_key_heads: shapes.key_heads,
            qk_norm: QkNorm::PerHead,
            sinks: true,
            ..AttentionConfig::new(heads, heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::dense(shapes.width, Activation::SquaredRelu),
    };
    let rope = RopeConfig::golden(shapes.head_dim, theta)?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    config.renames = &[NAMES];
    config.norm.bare = true;
    config.family()
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let patch = processor.model_number(&["spatial_patch_size"], 16, PATCH)?;
    Ok(ImageProcessor {
        sizing: Sizing::SmartResize(SmartResize {
            patch,
            merge: 1,
            frames: 1,
            min_pixels: 3_136,
            max_pixels: 1_003_520,
            enlarging: Enlarging::Between {
                shortest: 64,
                longest: 1024,
            },
            features: Features::Grid,
        }),
        filter: Filter::Bicubic,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: pixel_by_pixel(patch),
    })
}
