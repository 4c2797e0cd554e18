//! Mamba and Falcon Mamba: layers of one part each, and nothing that keeps keys. Defaults are those of transformers'
//! `MambaConfig` and `FalconMambaConfig`.

use super::mamba_fields::{only_silu, rank};
use super::nemotron_h::{BACKBONE, NORMS};
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    DecoderConfig, FeedForward, LayerConfig, MambaConfig, Mixer, NormPlacement, ScanInputNorms,
};
use crate::config::limits::check_layers;
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("Mamba", &["mamba"], mamba),
    FamilyRow::text("Falcon Mamba", &["falcon_mamba"], falcon_mamba),
];

/// A layer's only part.
pub(super) const PARTS: &[(&str, &str)] = &[("mixer", "mamba")];

/// Mamba.
pub(super) fn mamba(source: Source<'_>) -> Result<Family, Error> {
    decoder(source.text, ScanInputNorms::None)
}

/// Falcon Mamba, which norms what goes into the states.
pub(super) fn falcon_mamba(source: Source<'_>) -> Result<Family, Error> {
    let eps = source.text.number("mixer_rms_eps")?.unwrap_or(1e-6);
    decoder(source.text, ScanInputNorms::Bare(eps))
}

fn decoder(text: Fields<'_>, norms: ScanInputNorms) -> Result<Family, Error> {
    only_silu(text, "hidden_act")?;
    let shapes = stack(text)?;
    let inner = match text.number("intermediate_size")? {
        Some(inner) => inner,
        None => {
            let expand = text.number("expand")?.unwrap_or(2u32);
            shapes.hidden_size.saturating_mul(expand)
        }
    };
    let layer = LayerConfig {
        norms: NormPlacement::Single,
        mixer: Mixer::Mamba(MambaConfig {
            inner,
            state_width: text.number("state_size")?.unwrap_or(16),
            kernel: text.number("conv_kernel")?.unwrap_or(4),
            rank: rank(text, "time_step_rank", shapes.hidden_size)?,
            conv_bias: text.flag("use_conv_bias")?.unwrap_or(true),
            bias: text.flag("use_bias")?.unwrap_or(false),
            norms,
        }),
        feed_forward: FeedForward::Absent,
    };
    let config = DecoderConfig {
        renames: &[NORMS, BACKBONE, PARTS],
        ..shapes.decoder(Vec::new(), vec![layer; shapes.layers as usize])
    };
    config.family()
}

/// The shapes of a stack of layers without attention.
pub(super) fn stack(text: Fields<'_>) -> Result<Shapes, Error> {
    Ok(Shapes {
        hidden_size: text.required("hidden_size")?,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(text.required("num_hidden_layers")?)?,
        heads: 1,
        key_heads: 1,
        head_dim: 0,
        width: 0,
        eps: text.number("layer_norm_epsilon")?.unwrap_or(1e-5),
        lm_head: Shapes::lm_head(text)?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::ModelConfig;

    fn with(field: &str, value: Value) -> Result<MambaConfig, Error> {
        let mut config = json!({"model_type": "mamba", "hidden_size": 760, "num_hidden_layers": 24, "vocab_size": 50280,
            "state_size": 16, "conv_kernel": 4, "use_bias": false, "use_conv_bias": true});
        config[field] = value;
        let Family::Decoder(config) = ModelConfig::parse(&config.to_string())?.family else {
            panic!("another family")
        };
        match config.layers[23].mixer {
            Mixer::Mamba(mamba) => Ok(mamba),
            _ => panic!("it has a state"),
        }
    }

    #[test]
    fn what_the_file_leaves_out_is_as_in_transformers() {
        for (value, rank) in [(json!(null), 48), (json!("auto"), 48), (json!(10), 10)] {
            let mamba = with("time_step_rank", value).unwrap();
            assert_eq!(
                (mamba.inner, mamba.rank, mamba.norms),
                (1520, rank, ScanInputNorms::None)
            );
        }
        let falcon = with("model_type", json!("falcon_mamba")).unwrap();
        assert_eq!(falcon.norms, ScanInputNorms::Bare(1e-6));
    }

    #[test]
    fn impossible_states_are_refused_by_name() {
        for (field, value) in [
            ("intermediate_size", json!(0)),
            ("state_size", json!(0)),
            ("state_size", json!(1 << 20)),
            ("time_step_rank", json!(0)),
            ("time_step_rank", json!("some")),
            ("conv_kernel", json!(1)),
            ("hidden_act", json!("gelu")),
        ] {
            let error = with(field, value.clone()).unwrap_err().to_string();
            assert!(
                error.contains(field) || error.contains("gelu"),
                "{field} {value}: {error}"
            );
        }
    }
}
