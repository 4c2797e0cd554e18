//! Gemma 3: norms around both halves of a layer, five sliding layers for each full one, each kind with its own rope.
//! Defaults are those of transformers' `Gemma3TextConfig`, which published configs rely on.

use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::shapes::{windows, Shapes};
use super::source::Source;
use super::vision::siglip;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, FeedForward, LayerConfig, LmHead, Mixer, NormPlacement, QkNorm,
};
use crate::config::limits::check_layers;
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;
use crate::image_processor::parts::{one_size, CENTRED, PATCH};
use crate::image_processor::{Filter, ImageProcessor, ProcessorConfig};
use crate::image_prompt::{ImagePrompt, ImageRun};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::vision(
        "Gemma 3",
        &["gemma3"],
        wrapper,
        VisionRow {
            encoder: siglip::gemma3,
            processor: ProcessorRow::new(&["Gemma3"], processor),
            prompt: ImagePrompt {
                feature: "<image_soft_token>",
                around: "\n\n",
                run: ImageRun::Between("<start_of_image>", "<end_of_image>"),
                ..ImagePrompt::new("<start_of_image>")
            },
        },
    ),
    FamilyRow::text("Gemma 3, text only", &["gemma3_text"], parse),
];

/// Index of the ropes.
pub(super) const SLIDING: usize = 0;
pub(super) const FULL: usize = 1;

/// The text model by itself.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let vocab_size = text.number("vocab_size")?.unwrap_or(262_144);
    decoder(
        text,
        vocab_size,
        text.required("num_attention_heads")?,
        text.required("num_key_value_heads")?,
    )?
    .family()
}

/// `gemma3`: the text model beside a vision tower.
pub(super) fn wrapper(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let vocab_size = source
        .top
        .number("vocab_size")?
        .or(text.number("vocab_size")?)
        .unwrap_or(262_208);
    let heads = text.number("num_attention_heads")?.unwrap_or(8);
    let key_heads = text.number("num_key_value_heads")?.unwrap_or(4);
    decoder(text, vocab_size, heads, key_heads)?.family()
}

fn decoder(text: Fields<'_>, vocab_size: u32, heads: u32, key_heads: u32) -> Result<DecoderConfig, Error> {
    if text.has("attn_logit_softcapping") && text.flag("attn_logit_softcapping").ok().flatten() != Some(false) {
        return Err(Error::Unsupported("`attn_logit_softcapping`".into()));
    }
    let bidirectional = text.flag("use_bidirectional_attention")?.unwrap_or(false);
    let shapes = Shapes {
        hidden_size: text.required("hidden_size")?,
        vocab_size,
        layers: check_layers(text.required("num_hidden_layers")?)?,
        heads,
        key_heads,
        head_dim: text.number("head_dim")?.unwrap_or(256),
        width: text.required("intermediate_size")?,
        eps: text.number("rms_norm_eps")?.unwrap_or(1e-6),
        // Published configs do not tell, and both kinds exist.
        lm_head: LmHead::UntiedIfPresent,
    };
    let attention = AttentionConfig {
        scale: text.number("query_pre_attn_scalar")?.unwrap_or(256.0f32).powf(-0.5),
        qk_norm: QkNorm::PerHead,
        ..AttentionConfig::new(heads, key_heads, shapes.head_dim, None)
    };
    let windows = match windows(text, shapes.layers)? {
        Some(windows) => windows,
        None => pattern(text, shapes.layers)?,
    };
    // Half of the window lies before a position that looks both ways, half after it.
    let reach = |window: u32| if bidirectional { window / 2 + 1 } else { window };
    let layers = windows.into_iter().map(|window| LayerConfig {
        norms: NormPlacement::Sandwich,
        mixer: Mixer::Attention(AttentionConfig {
            window: window.map(reach),
            rope: Some(if window.is_some() { SLIDING } else { FULL }),
            ..attention.clone()
        }),
        feed_forward: FeedForward::dense(shapes.width, Activation::GeluTanh),
    });
    let mut decoder = shapes.decoder(by_kind(text, shapes.head_dim)?, layers.collect());
    decoder.norm.offset = true;
    decoder.embedding_multiplier = Some(rounded_to_bf16((shapes.hidden_size as f32).sqrt()));
    decoder.bidirectional = bidirectional;
    decoder.clip_residual = true;
    decoder.logits_softcap = text.number("final_logit_softcapping")?;
    Ok(decoder)
}

/// The rope of sliding layers and that of full ones.
pub(super) fn by_kind(text: Fields<'_>, head_dim: u32) -> Result<Vec<RopeConfig>, Error> {
    let local = Defaults::new(text.number("rope_local_base_freq")?.unwrap_or(10_000.0));
    let global = Defaults::new(1_000_000.0);
    Ok(vec![
        RopeConfig::parse(text, head_dim, For::Only("sliding_attention"), local)?,
        RopeConfig::parse(text, head_dim, For::Type("full_attention"), global)?,
    ])
}

fn pattern(text: Fields<'_>, layers: u32) -> Result<Vec<Option<u32>>, Error> {
    let pattern = text.first(&["sliding_window_pattern", "_sliding_window_pattern"])?;
    let every = pattern.unwrap_or(6u32);
    let window = text.number("sliding_window")?.unwrap_or(512);
    let is_full = |layer: u32| every == 0 || (layer + 1).is_multiple_of(every);
    Ok((0..layers)
        .map(|layer| if is_full(layer) { None } else { Some(window) })
        .collect())
}

/// The nearest number with 8 bits of mantissa: the factor of the embeddings was rounded so in training, whatever the
/// type of the weights.
fn rounded_to_bf16(value: f32) -> f32 {
    let bits = value.to_bits();
    let even = (bits >> 16) & 1;
    f32::from_bits((bits + 0x7fff + even) & 0xffff_0000)
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    fixed(processor, Filter::Bilinear)
}

/// The same resized in another way, as repositories of other families have it.
pub(super) fn siglip_processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    fixed(processor, Filter::Bicubic)
}

fn fixed(processor: &ProcessorConfig, filter: Filter) -> Result<ImageProcessor, Error> {
    let patch = processor.model_number(&["vision_config.patch_size"], 14, PATCH)?;
    one_size(processor, 224, |_, _| patch, filter, Some(CENTRED))
}

#[cfg(test)]
mod tests {
    use super::rounded_to_bf16;

    #[test]
    fn the_factors_of_the_published_sizes_are_those_of_training() {
        for (hidden, factor) in [(1536.0f32, 39.25), (2560.0, 50.5), (2816.0, 53.0), (5376.0, 73.5)] {
            assert_eq!(rounded_to_bf16(hidden.sqrt()), factor);
        }
    }
}
