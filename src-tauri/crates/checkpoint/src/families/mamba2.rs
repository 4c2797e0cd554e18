//! Mamba 2 alone: layers of one part each, and nothing that keeps keys. Defaults are those of transformers'
//! `Mamba2Config`.

use super::mamba::{stack, PARTS};
use super::mamba_fields::{only_silu, step_limit};
use super::nemotron_h::{BACKBONE, NORMS};
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{DecoderConfig, FeedForward, LayerConfig, Mamba2Config, Mixer, NormPlacement, ScanNorm};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Mamba 2, Codestral Mamba", &["mamba2"], parse)];

/// Mamba 2.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    only_silu(text, "hidden_act")?;
    let shapes = stack(text)?;
    let layer = LayerConfig {
        norms: NormPlacement::Single,
        mixer: Mixer::Mamba2(Mamba2Config {
            heads: text.number("num_heads")?.unwrap_or(128),
            head_width: text.number("head_dim")?.unwrap_or(64),
            groups: text.number("n_groups")?.unwrap_or(8),
            state_width: text.first(&["ssm_state_size", "state_size"])?.unwrap_or(128),
            kernel: text.number("conv_kernel")?.unwrap_or(4),
            conv_bias: text.flag("use_conv_bias")?.unwrap_or(true),
            bias: text.flag("use_bias")?.unwrap_or(false),
            step_limit: step_limit(text)?,
            step_rank: None,
            norm: ScanNorm::AfterGate { groups: 1 },
        }),
        feed_forward: FeedForward::Absent,
    };
    let config = DecoderConfig {
        renames: &[NORMS, BACKBONE, PARTS],
        ..shapes.decoder(Vec::new(), vec![layer; shapes.layers as usize])
    };
    config.family()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::ModelConfig;

    /// Fields as Codestral Mamba has them.
    fn with(field: &str, value: Value) -> Result<ModelConfig, Error> {
        let mut config = json!({"model_type": "mamba2", "hidden_size": 4096, "num_hidden_layers": 64, "vocab_size": 32768,
            "num_heads": 128, "head_dim": 64, "n_groups": 8, "state_size": 128, "conv_kernel": 4, "use_bias": false,
            "time_step_limit": [0.0, {"__float__": "Infinity"}], "tie_word_embeddings": false});
        config[field] = value;
        ModelConfig::parse(&config.to_string())
    }

    #[test]
    fn every_layer_is_a_state_and_nothing_else() {
        let Family::Decoder(config) = with("expand", json!(2)).unwrap().family else {
            panic!("another family")
        };
        assert!(config.ropes.is_empty() && config.layers.len() == 64);
        let Mixer::Mamba2(mamba) = config.layers[63].mixer else {
            panic!("it has a state")
        };
        assert_eq!((mamba.inner(), mamba.channels()), (8192, 10240));
        assert_eq!(config.layers[0].feed_forward, FeedForward::Absent);
    }

    #[test]
    fn impossible_states_are_refused_by_name() {
        for (field, value, named) in [
            ("n_groups", json!(3), "n_groups"),
            ("num_heads", json!(0), "n_groups"),
            ("head_dim", json!(0), "mamba_head_dim"),
            ("state_size", json!(0), "state_size"),
            ("hidden_act", json!("relu"), "relu"),
            ("time_step_limit", json!(3), "time_step_limit"),
        ] {
            let error = with(field, value.clone()).unwrap_err().to_string();
            assert!(error.contains(named), "{field} {value}: {error}");
        }
    }
}
