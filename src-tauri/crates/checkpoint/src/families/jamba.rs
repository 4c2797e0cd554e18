//! Jamba: Mamba in most layers, attention without positions in the others, and experts in some. Defaults are those of
//! transformers' `JambaConfig`; its scores of the chosen experts do not sum to 1.

use super::llama;
use super::mamba_fields::{expanded, rank};
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, FeedForward, MambaConfig, Mixer, ScanInputNorms};
use crate::config::moe::{MoeConfig, RouterConfig, Scoring};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Jamba", &["jamba"], parse)];

/// The names of its tensors beside Llama's.
const RENAMES: &[(&str, &str)] = &[
    ("feed_forward.router", "mlp.gate"),
    ("feed_forward", "mlp"),
    ("pre_ff_layernorm", "post_attention_layernorm"),
    ("final_layernorm", "norm"),
];

/// Jamba.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::sliding(text, Vec::new())?;
    config.each_attention(|attention| attention.rope = None);
    config.ropes.clear();
    let mamba = MambaConfig {
        inner: expanded(text)?,
        state_width: text.number("mamba_d_state")?.unwrap_or(16),
        kernel: text.number("mamba_d_conv")?.unwrap_or(4),
        rank: rank(text, "mamba_dt_rank", config.hidden_size)?,
        conv_bias: text.flag("mamba_conv_bias")?.unwrap_or(true),
        bias: text.flag("mamba_proj_bias")?.unwrap_or(false),
        norms: ScanInputNorms::Weighted(config.norm.eps),
    };
    let attends = Places::parse(text, ["attn_layer_period", "attn_layer_offset"], (8, 4))?;
    let mixes = Places::parse(text, ["expert_layer_period", "expert_layer_offset"], (2, 1))?;
    let experts = experts(text)?;
    for (index, layer) in (0..).zip(&mut config.layers) {
        if !attends.has(index) {
            layer.mixer = Mixer::Mamba(mamba);
        }
        if let Some(experts) = experts.filter(|_| mixes.has(index)) {
            layer.feed_forward = FeedForward::Moe(experts);
        }
    }
    config.renames = &[RENAMES];
    config.family()
}

/// One layer in several.
struct Places {
    period: u32,
    offset: u32,
}

impl Places {
    fn parse(
        text: Fields<'_>,
        [period_name, offset_name]: [&'static str; 2],
        default: (u32, u32),
    ) -> Result<Self, Error> {
        let places = Self {
            period: text.number(period_name)?.unwrap_or(default.0),
            offset: text.number(offset_name)?.unwrap_or(default.1),
        };
        if places.offset < places.period {
            return Ok(places);
        }
        unusable(offset_name, format!("{} is not below {}", places.offset, places.period))
    }

    fn has(&self, layer: u32) -> bool {
        layer % self.period == self.offset
    }
}

/// The experts of layers that have such; `None` if there is one, which is a plain network.
fn experts(text: Fields<'_>) -> Result<Option<MoeConfig>, Error> {
    let count = text.number("num_experts")?.unwrap_or(16);
    if count == 1 {
        return Ok(None);
    }
    Ok(Some(MoeConfig {
        num_experts: count,
        top_k: text.number("num_experts_per_tok")?.unwrap_or(2),
        width: text.required("intermediate_size")?,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig::new(Scoring::Softmax, false),
        shared: None,
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::config::decoder::DecoderConfig;
    use crate::ModelConfig;

    fn with(field: &str, value: Value) -> Result<Box<DecoderConfig>, Error> {
        let mut config = json!({"model_type": "jamba", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 65536,
            "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8});
        config[field] = value;
        match ModelConfig::parse(&config.to_string())?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    #[test]
    fn layers_are_what_their_places_say() {
        let config = with("mamba_dt_rank", json!("auto")).unwrap();
        let attends = |layer: &usize| config.layers[*layer].mixer.attention().is_some();
        let mixes = |layer: &usize| matches!(config.layers[*layer].feed_forward, FeedForward::Moe(_));
        assert_eq!((0..32).filter(attends).collect::<Vec<_>>(), [4, 12, 20, 28]);
        assert_eq!((0..8).filter(mixes).collect::<Vec<_>>(), [1, 3, 5, 7]);
        let Mixer::Mamba(mamba) = config.layers[0].mixer else {
            panic!("it has a state")
        };
        assert_eq!((mamba.inner, mamba.rank), (8192, 256));
        let dense = with("num_experts", json!(1)).unwrap();
        assert!(dense
            .layers
            .iter()
            .all(|layer| matches!(layer.feed_forward, FeedForward::Dense(_))));
    }

    #[test]
    fn impossible_places_are_refused_by_name() {
        for (field, value) in [
            ("attn_layer_offset", json!(8)),
            ("expert_layer_offset", json!(2)),
            ("num_experts_per_tok", json!(17)),
            ("num_experts", json!(0)),
        ] {
            let error = with(field, value.clone()).unwrap_err().to_string();
            assert!(error.contains(field), "{field} {value}: {error}");
        }
        assert!(with("attn_layer_period", json!(0)).is_err());
    }
}
