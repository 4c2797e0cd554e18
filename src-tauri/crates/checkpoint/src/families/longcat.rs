//! LongCat Flash: two halves in each layer, each with attention over latents and a network, and experts that read what
//! the first network reads and are added after the second. Some experts give back what they get. Defaults are those of
//! the `configuration_longcat_flash.py` beside the weights.

use super::deepseek::{self, INTERLEAVED};
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, DecoderConfig, DenseConfig, FeedForward, HalvedLayers, LmHead, Mixer, NgramConfig, ShortcutConfig,
};
use crate::config::limits::{check_layers, check_nonzero, check_range};
use crate::config::mla::IndexerConfig;
use crate::config::moe::{Correction, MoeConfig, RouterConfig, Scoring};
use crate::config::rope::{Defaults, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("LongCat Flash", &["longcat_flash"], parse),
    FamilyRow::text("LongCat Flash with an index", &["longcat_flash_sparse"], sparse),
    FamilyRow::text("LongCat Flash Lite", &["longcat_flash_ngram"], lite),
];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("ngram_embeddings.word_embeddings", "embed_tokens"),
    ("mlp.router.classifier", "mlp.gate"),
    ("mlp.router.e_score_correction_bias", "mlp.gate.e_score_correction_bias"),
];

/// The base of rotary positions.
const THETA: f32 = 10_000_000.0;

/// Added to the variance of keys of an index.
const INDEX_EPS: f32 = 1e-5;

/// Added to the mean square in the norms of the latents.
const LATENT_EPS: f32 = 1e-5;

/// LongCat Flash.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    decoder(source.text, THETA)?.family()
}

/// LongCat Flash Lite: the same with tables of short runs of tokens.
pub(super) fn lite(source: Source<'_>) -> Result<Family, Error> {
    const END: &str = "eos_token_id";
    let text = source.text;
    let mut config = decoder(text, THETA)?;
    let neighbors = text.number("emb_neighbor_num")?.unwrap_or(4u32);
    let splits = text.number("emb_split_num")?.unwrap_or(4u32);
    check_range("emb_neighbor_num", neighbors, 2..=8)?;
    check_nonzero("emb_split_num", splits)?;
    let ratio = text.number("ngram_vocab_size_ratio")?.unwrap_or(78u32);
    let end = text.numbers(END)?.and_then(|ends| ends.first().copied());
    config.ngrams = Some(NgramConfig {
        rows: u64::from(ratio) * u64::from(config.vocab_size),
        neighbors,
        splits,
        width: config.hidden_size / (neighbors - 1).saturating_mul(splits),
        end: Some(end.filter(|end| *end >= 0.0).map_or(2, |end| end as u32)),
        beside: false,
    });
    config.family()
}

/// LongCat Flash with an index, which the second half of each layer shares with the first, and tables of short runs.
pub(super) fn sparse(source: Source<'_>) -> Result<Family, Error> {
    const METHOD: &str = "attention_method";
    let text = source.text;
    let mut config = decoder(text, 1_000_000.0)?;
    match text.text(METHOD)?.as_deref() {
        None | Some("LSA") => index(text, &mut config)?,
        Some("MLA") => {}
        Some(other) => return Err(Error::Unsupported(format!("attention by `{other}`"))),
    }
    let ratio = text.number("oe_vocab_size_ratio")?.unwrap_or(0u32);
    if ratio > 0 {
        let neighbors = text.number("oe_neighbor_num")?.unwrap_or(4u32);
        let splits = text.number("oe_split_num")?.unwrap_or(4u32);
        check_range("oe_neighbor_num", neighbors, 2..=8)?;
        check_nonzero("oe_split_num", splits)?;
        config.ngrams = Some(NgramConfig {
            rows: u64::from(ratio) * u64::from(config.vocab_size),
            neighbors,
            splits,
            width: config.hidden_size / (neighbors - 1).saturating_mul(splits),
            end: None,
            beside: true,
        });
    }
    config.family()
}

/// Gives the first half of each layer an index, and lets the second half look at what it chose.
fn index(text: Fields<'_>, config: &mut DecoderConfig) -> Result<(), Error> {
    let rms = match text.text("index_k_norm_type")?.as_deref() {
        None | Some("rms") => true,
        Some("layer" | "layernorm") => false,
        Some(other) => return Err(Error::Unsupported(format!("keys of an index normed by `{other}`"))),
    };
    let indexer = IndexerConfig {
        heads: text.required("index_n_heads")?,
        head_dim: text.number("index_head_dim")?.unwrap_or(128),
        top_k: text.required("index_topk")?,
        rope: config.ropes.len(),
        turns_last: false,
        eps: if rms { config.norm.eps } else { INDEX_EPS },
        rms,
        first: text.number("index_init_tokens")?.unwrap_or(0),
        near: text.number("index_local_tokens")?.unwrap_or(0),
    };
    let traditional = text.flag("indexer_rope_interleave")?.unwrap_or(true);
    let rope = config.ropes.first().cloned();
    config.ropes.extend(rope.map(|rope| RopeConfig { traditional, ..rope }));
    for (half, layer) in config.layers.iter_mut().enumerate() {
        if let Mixer::Mla(latent) = &mut layer.mixer {
            latent.indexer = half.is_multiple_of(2).then_some(indexer);
            latent.follows = !half.is_multiple_of(2);
        }
    }
    Ok(())
}

fn decoder(text: Fields<'_>, theta: f32) -> Result<DecoderConfig, Error> {
    let layers = text.number("num_layers")?.unwrap_or(28u32);
    let heads = text.required("num_attention_heads")?;
    let shapes = Shapes {
        hidden_size: text.required("hidden_size")?,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(layers.saturating_mul(2))?,
        heads,
        key_heads: heads,
        head_dim: 0,
        width: text.required("ffn_hidden_size")?,
        eps: text.number("rms_norm_eps")?.unwrap_or(1e-5),
        lm_head: LmHead::Untied,
    };
    let (hidden, width) = (shapes.hidden_size as f32, shapes.width);
    let rope = Defaults { theta, ..INTERLEAVED };
    let mut config = deepseek::shaped(text, shapes, Some(LATENT_EPS), text.required("v_head_dim")?, rope)?;
    let factor = |field: &'static str, rank: Option<u32>| -> Result<f32, Error> {
        let scaled = text.flag(field)?.unwrap_or(true);
        Ok(match rank.filter(|rank| scaled && *rank > 0) {
            Some(rank) => (hidden / rank as f32).sqrt(),
            None => 1.0,
        })
    };
    let queries = factor("mla_scale_q_lora", text.number("q_lora_rank")?)?;
    let latents = factor("mla_scale_kv_lora", text.number("kv_lora_rank")?)?;
    let experts = experts(text)?;
    for (index, layer) in config.layers.iter_mut().enumerate() {
        if let Mixer::Mla(latent) = &mut layer.mixer {
            latent.scale *= queries;
            latent.latent_factor = latents;
        }
        if index.is_multiple_of(2) {
            let dense = DenseConfig {
                width,
                activation: Activation::Silu,
                bias: false,
            };
            layer.feed_forward = FeedForward::Shortcut(ShortcutConfig { dense, experts });
        }
    }
    config.halved_layers = Some(HalvedLayers::Numbered);
    config.renames = &[NAMES];
    Ok(config)
}

fn experts(text: Fields<'_>) -> Result<MoeConfig, Error> {
    const KIND: &str = "zero_expert_type";
    let passing = text.number("zero_expert_num")?.unwrap_or(0);
    match text.text(KIND)?.as_deref() {
        None | Some("identity") => {}
        Some(_) if passing == 0 => {}
        Some(other) => return unusable(KIND, format!("there are no experts of the kind `{other}`")),
    }
    Ok(MoeConfig {
        num_experts: text.required("n_routed_experts")?,
        top_k: text.required("moe_topk")?,
        width: text.required("expert_ffn_hidden_size")?,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            factor: text.number("routed_scaling_factor")?.unwrap_or(1.0),
            correction: Correction::Always,
            passing,
            ..RouterConfig::new(Scoring::Softmax, text.flag("norm_topk_prob")?.unwrap_or(false))
        },
        shared: None,
    })
}
