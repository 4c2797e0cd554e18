//! RWKV 7: layers of two parts, of which one carries a matrix in each head and both see the token before. Fields are
//! those of the `configuration_rwkv7.py` of flash-linear-attention.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    ChannelMixConfig, EmbeddingNorm, FeedForward, HalvedLayers, LayerConfig, LmHead, Mixer, NormKind, NormPlacement,
    RwkvConfig, TimeMixConfig, TimeMixRanks,
};
use crate::config::limits::{check_heads, check_layers};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("RWKV 7", &["rwkv7"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[("embeddings", "embed_tokens"), ("layers.0.pre_norm", "embed_norm")];

/// RWKV 7.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    refuse_unknown(text)?;
    let (hidden_size, head_dim) = (text.required("hidden_size")?, text.number("head_dim")?.unwrap_or(64u32));
    let width = match text.number("intermediate_size")? {
        Some(width) => width,
        None => hidden_size.saturating_mul(4),
    };
    let heads = hidden_size / head_dim.max(1);
    check_heads("head_dim", hidden_size, heads)?;
    let layers = check_layers(text.required("num_hidden_layers")?.saturating_mul(2))?;
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers,
        heads,
        key_heads: heads,
        head_dim,
        width,
        eps: text.number("norm_eps")?.unwrap_or(1e-5),
        lm_head: match text.flag("tie_word_embeddings")? {
            Some(true) => LmHead::Tied,
            Some(false) | None => LmHead::Untied,
        },
    };
    let ranks = TimeMixRanks {
        decays: text.number("decay_low_rank_dim")?.unwrap_or(64),
        rates: text.number("a_low_rank_dim")?.unwrap_or(64),
        values: text.number("v_low_rank_dim")?.unwrap_or(16),
        gate: text.number("gate_low_rank_dim")?.unwrap_or(128),
    };
    let part = |number: u32| match number % 2 {
        0 => RwkvConfig::Time(TimeMixConfig {
            heads,
            head_dim,
            first: number == 0,
            ranks,
        }),
        _ => RwkvConfig::Channel(ChannelMixConfig {
            width,
            hidden: hidden_size,
        }),
    };
    let layers = (0..layers).map(|number| LayerConfig {
        norms: NormPlacement::Single,
        mixer: Mixer::Rwkv(part(number)),
        feed_forward: FeedForward::Absent,
    });
    let mut config = shapes.decoder(Vec::new(), layers.collect());
    config.norm.kind = NormKind::Layer { bias: true };
    config.embedding_norm = Some(EmbeddingNorm::OfStream);
    config.halved_layers = Some(HalvedLayers::Named);
    config.renames = &[NAMES];
    config.family()
}

/// Refuses what no published model has, by its name.
fn refuse_unknown(text: Fields<'_>) -> Result<(), Error> {
    if text.has("attn") {
        return Err(Error::Unsupported("attention among the layers of RWKV".into()));
    }
    if text.flag("norm_first")? == Some(false) || text.flag("norm_bias")? == Some(false) {
        return Err(Error::Unsupported(
            "RWKV without its first norm or biases of norms".into(),
        ));
    }
    match text.text("hidden_act")?.as_deref() {
        // The second word is no function of RWKV's, and stands in files that were written by other classes.
        None | Some("sqrelu" | "silu") => Ok(()),
        Some(other) => Err(Error::Unsupported(format!("the activation `{other}`"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::{DecoderConfig, ModelConfig};

    fn parse(changes: Value) -> Result<Box<DecoderConfig>, Error> {
        let mut config = json!({"model_type": "rwkv7", "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 65536,
            "intermediate_size": 3072, "head_dim": 64, "norm_eps": 1e-5, "hidden_act": "sqrelu"});
        config
            .as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        match ModelConfig::parse(&config.to_string())?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    #[test]
    fn a_layer_is_two_and_the_first_one_gives_its_values() {
        let config = parse(json!({})).unwrap();
        let first = |layer: usize| match &config.layers[layer].mixer {
            Mixer::Rwkv(RwkvConfig::Time(mix)) => Some((mix.first, mix.heads)),
            _ => None,
        };
        assert_eq!(config.layers.len(), 24);
        assert_eq!(
            [first(0), first(1), first(2)],
            [Some((true, 12)), None, Some((false, 12))]
        );
    }

    #[test]
    fn impossible_shapes_and_other_parts_are_refused_by_name() {
        for (changes, named) in [
            (json!({"head_dim": 50}), "head_dim"),
            (json!({"head_dim": 0}), "head_dim"),
            (json!({"head_dim": 1024}), "head_dim"),
            (json!({"decay_low_rank_dim": 0}), "decay_low_rank_dim"),
            (json!({"gate_low_rank_dim": u32::MAX}), "gate_low_rank_dim"),
            (json!({"num_hidden_layers": u32::MAX}), "num_hidden_layers"),
            (json!({"attn": {"layers": [1]}}), "attention"),
            (json!({"hidden_act": "gelu"}), "gelu"),
            (json!({"norm_bias": false}), "biases"),
        ] {
            let error = parse(changes.clone()).unwrap_err().to_string();
            assert!(error.contains(named), "{changes}: {error}");
        }
    }
}
