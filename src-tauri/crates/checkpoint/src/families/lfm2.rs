//! LFM 2: gated short convolutions, and attention in a few layers.

use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::shapes::Shapes;
use super::source::Source;
use super::vision::siglip;
use super::wrapper::by_language_part;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, FeedForward, GatedConvConfig, LayerConfig, LmHead, Mixer,
    NormPlacement, QkNorm,
};
use crate::config::limits::{check_layers, check_nonzero, check_positive};
use crate::config::moe::{Correction, MoeConfig, RouterConfig, Scoring};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};
use crate::image_processor::parts::{pixel_by_pixel, room_for_a_token, CENTRED, MERGE, PATCH, SIDE, TILES};
use crate::image_processor::{Filter, ImageProcessor, LfmTiles, ProcessorConfig, Sizing};
use crate::image_prompt::{ImagePrompt, ImageRun};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("LFM2", &["lfm2"], lfm2),
    FamilyRow::embedding("LFM2 for embeddings", &["lfm2_embedding", "lfm2_encoder"], embedder),
    FamilyRow::text("LFM2 with experts", &["lfm2_moe"], lfm2_moe),
    FamilyRow::vision(
        "LFM2-VL",
        &["lfm2_vl", "lfm2-vl"],
        by_language_part,
        VisionRow {
            encoder: siglip::lfm2,
            processor: ProcessorRow::new(&["Lfm2Vl"], processor),
            prompt: ImagePrompt {
                run: ImageRun::Lfm2,
                ..ImagePrompt::new("<image>")
            },
        },
    ),
];

/// The names of its tensors beside Llama's.
const RENAMES: &[(&str, &str)] = &[
    ("embedding_norm", "norm"),
    ("operator_norm", "input_layernorm"),
    ("ffn_norm", "post_attention_layernorm"),
    ("self_attn.out_proj", "self_attn.o_proj"),
    ("self_attn.q_layernorm", "self_attn.q_norm"),
    ("self_attn.k_layernorm", "self_attn.k_norm"),
    ("feed_forward.w1", "mlp.gate_proj"),
    ("feed_forward.w2", "mlp.down_proj"),
    ("feed_forward.w3", "mlp.up_proj"),
    ("feed_forward.expert_bias", "mlp.gate.e_score_correction_bias"),
    ("feed_forward", "mlp"),
];

/// Names of the encoder beside a head for hidden tokens.
const OF_ENCODER: &[(&str, &str)] = &[
    ("lfm2.embed_tokens", "embed_tokens"),
    ("lfm2.embedding_norm", "embedding_norm"),
    ("lfm2.layers", "layers"),
];

/// LFM 2, dense.
pub(super) fn lfm2(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let dense = FeedForward::dense(width(text)?, Activation::Silu);
    decoder(text, |_| dense.clone())?.family()
}

/// LFM 2 whose positions see those after them, too.
fn embedder(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let dense = FeedForward::dense(width(text)?, Activation::Silu);
    let mut config = decoder(text, |_| dense.clone())?;
    config.bidirectional = true;
    config.renames = &[OF_ENCODER, RENAMES];
    for layer in &mut config.layers {
        if let Mixer::GatedConv(conv) = &mut layer.mixer {
            if conv.kernel.is_multiple_of(2) {
                return unusable("conv_L_cache", format!("{} tokens have no middle", conv.kernel));
            }
            conv.centered = true;
        }
    }
    config.family()
}

/// LFM 2 with experts in all layers but the first ones.
pub(super) fn lfm2_moe(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let dense = FeedForward::dense(text.required("intermediate_size")?, Activation::Silu);
    let experts = MoeConfig {
        num_experts: text.required("num_experts")?,
        top_k: text.required("num_experts_per_tok")?,
        width: text.required("moe_intermediate_size")?,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            factor: text.number("routed_scaling_factor")?.unwrap_or(1.0),
            correction: Correction::when(text.flag("use_expert_bias")?.unwrap_or(true)),
            ..RouterConfig::new(Scoring::Sigmoid, text.flag("norm_topk_prob")?.unwrap_or(true))
        },
        shared: None,
    };
    let before = text.number::<u32>("num_dense_layers")?.unwrap_or(0) as usize;
    let feed = |layer| match layer < before {
        true => dense.clone(),
        false => FeedForward::Moe(experts),
    };
    decoder(text, feed)?.family()
}

fn decoder(text: Fields<'_>, feed_forward: impl Fn(usize) -> FeedForward) -> Result<DecoderConfig, Error> {
    let (hidden_size, heads) = (text.required("hidden_size")?, text.required("num_attention_heads")?);
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(text.required("num_hidden_layers")?)?,
        heads,
        key_heads: text.number("num_key_value_heads")?.unwrap_or(heads),
        head_dim: hidden_size / heads,
        width: 0,
        eps: text.number("norm_eps")?.unwrap_or(1e-5),
        lm_head: LmHead::Tied,
    };
    let bias = text.flag("conv_bias")?.unwrap_or(false);
    let conv = GatedConvConfig {
        kernel: text.number("conv_L_cache")?.unwrap_or(3),
        bias,
        centered: false,
    };
    let attention = AttentionConfig {
        qk_norm: QkNorm::PerHead,
        ..AttentionConfig::new(heads, shapes.key_heads, shapes.head_dim, Some(0))
    };
    let layers = full_layers(text, shapes.layers)?
        .into_iter()
        .enumerate()
        .map(|(layer, full)| LayerConfig {
            norms: NormPlacement::Pre,
            mixer: if full {
                Mixer::Attention(attention.clone())
            } else {
                Mixer::GatedConv(conv)
            },
            feed_forward: feed_forward(layer),
        });
    let defaults = Defaults::new(1_000_000.0);
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    Ok(DecoderConfig {
        renames: &[RENAMES],
        ..shapes.decoder(vec![rope], layers.collect())
    })
}

/// Width of the dense network: two thirds of what the config says, times a factor, up to a multiple, if
/// `block_auto_adjust_ff_dim` asks for it.
fn width(text: Fields<'_>) -> Result<u32, Error> {
    let stated = match text.number("block_ff_dim")? {
        Some(width) => width,
        None => text.required("intermediate_size")?,
    };
    if !text.flag("block_auto_adjust_ff_dim")?.unwrap_or(true) {
        return Ok(stated);
    }
    let factor: f32 = text.number("block_ffn_dim_multiplier")?.unwrap_or(1.0);
    let multiple: u32 = text.number("block_multiple_of")?.unwrap_or(256);
    check_positive("block_ffn_dim_multiplier", factor)?;
    check_nonzero("block_multiple_of", multiple)?;
    let adjusted = f64::from(factor) * f64::from((2 * u64::from(stated) / 3) as u32);
    let blocks = (adjusted as u64).div_ceil(multiple.into());
    match u32::try_from(blocks.saturating_mul(multiple.into())) {
        Ok(width) => Ok(width),
        Err(_) => unusable("block_ff_dim", format!("it makes a network {adjusted} wide")),
    }
}

/// Which layers are attention: by `full_attn_idxs`, else by `layer_types`.
fn full_layers(text: Fields<'_>, layers: u32) -> Result<Vec<bool>, Error> {
    if let Some(full) = text.numbers("full_attn_idxs")? {
        return Ok((0..layers).map(|layer| full.contains(&(layer as f32))).collect());
    }
    text.layer_types(layers, &[("full_attention", true), ("conv", false)])?
        .ok_or(Error::MissingField("layer_types"))
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let patch = processor.number("encoder_patch_size", 16, PATCH)?;
    let merge = processor.number("downsample_factor", 2, MERGE)?;
    let tile = processor.number("tile_size", 512, SIDE)?;
    room_for_a_token(tile, patch * merge)?;
    let splitting = processor.flag("do_image_splitting", true)?;
    let max_tiles = processor.number("max_tiles", 10, TILES)?;
    Ok(ImageProcessor {
        sizing: Sizing::LfmTiles(LfmTiles {
            tile,
            min_tiles: processor.number("min_tiles", 2, TILES)?.min(max_tiles),
            max_tiles: if splitting { max_tiles } else { 1 },
            thumbnail: processor.flag("use_thumbnail", true)?,
            min_tokens: processor.number("min_image_tokens", 64, 1..=16_384)?,
            max_tokens: processor.number("max_image_tokens", 256, 1..=16_384)?,
            tolerance: processor.fraction("max_pixels_tolerance", 2.0, 0.01..=1e6)?,
            patch,
            merge,
        }),
        filter: processor.filter(Filter::Bilinear)?,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: pixel_by_pixel(patch),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::ModelConfig;

    /// The shapes of the published 1.2B model.
    fn text() -> Value {
        json!({"model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
               "num_key_value_heads": 8, "vocab_size": 65536, "norm_eps": 1e-5, "conv_L_cache": 3, "conv_bias": false,
               "block_ff_dim": 12288, "block_auto_adjust_ff_dim": true, "block_ffn_dim_multiplier": 1.0,
               "block_multiple_of": 256, "full_attn_idxs": [2, 5, 8, 10, 12, 14]})
    }

    fn with(field: &str, value: Value) -> Result<DecoderConfig, Error> {
        let mut text = text();
        text[field] = value;
        match ModelConfig::parse(&text.to_string())?.family {
            Family::Decoder(config) => Ok(*config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    fn width(config: &DecoderConfig) -> u32 {
        match &config.layers[0].feed_forward {
            FeedForward::Dense(dense) => dense.width,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_network_is_as_wide_as_the_adjustment_makes_it() {
        assert_eq!(width(&with("conv_bias", json!(false)).unwrap()), 8192);
        assert_eq!(width(&with("block_ffn_dim_multiplier", json!(1.3)).unwrap()), 10752);
        assert_eq!(width(&with("block_auto_adjust_ff_dim", json!(false)).unwrap()), 12288);
    }

    #[test]
    fn attention_stands_where_either_list_says() {
        let is_conv = |config: &DecoderConfig, layer: usize| matches!(config.layers[layer].mixer, Mixer::GatedConv(_));
        let by_index = with("conv_bias", json!(false)).unwrap();
        assert!(is_conv(&by_index, 0) && !is_conv(&by_index, 2) && is_conv(&by_index, 15));
        let mut types = vec!["conv"; 16];
        types[1] = "full_attention";
        let mut text = text();
        text["full_attn_idxs"] = Value::Null;
        text["layer_types"] = json!(types);
        let Family::Decoder(by_type) = ModelConfig::parse(&text.to_string()).unwrap().family else {
            panic!("another family")
        };
        assert!(is_conv(&by_type, 0) && !is_conv(&by_type, 1) && is_conv(&by_type, 2));
    }

    #[test]
    fn impossible_shapes_are_refused_by_name() {
        for (field, value) in [
            ("block_multiple_of", json!(0)),
            ("block_ffn_dim_multiplier", json!(-1.0)),
            ("block_ffn_dim_multiplier", json!(1e30)),
            ("conv_L_cache", json!(1)),
            ("num_attention_heads", json!(0)),
            ("full_attn_idxs", json!("all")),
        ] {
            assert!(with(field, value.clone()).is_err(), "{field} {value}");
        }
    }
}
