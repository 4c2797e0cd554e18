//! Falcon-H1: attention and Mamba 2 beside each other in every layer. Everything has a factor of its own, which
//! conversions multiply into their matrices; but for that of keys, which they leave out and the files here have either
//! way. Defaults are those of transformers' `FalconH1Config`.

use super::mamba_fields::{expanded, mamba2};
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, FeedForward, FoldedFactors, JointConfig, LayerConfig, Mamba2Config,
    Mixer, NormPlacement, RowFactors, ScanNorm,
};
use crate::config::limits::check_positive;
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Falcon-H1", &["falcon_h1"], parse)];

/// The names of its tensors beside Llama's.
const RENAMES: &[(&str, &str)] = &[
    ("feed_forward", "mlp"),
    ("pre_ff_layernorm", "post_attention_layernorm"),
    ("final_layernorm", "norm"),
];

/// Projections that may have a bias, which the factors would have to count for.
const BIASES: [&str; 4] = ["attention_bias", "mamba_proj_bias", "mlp_bias", "projectors_bias"];

/// Falcon-H1.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shapes = Shapes {
        eps: text.number("rms_norm_eps")?.unwrap_or(1e-5),
        ..Shapes::parse(text)?
    };
    for field in BIASES {
        if text.flag(field)?.unwrap_or(false) {
            return Err(Error::Unsupported(format!("factors beside biases (`{field}`)")));
        }
    }
    if factor(text, "attention_in_multiplier")? != 1.0 {
        return Err(Error::Unsupported("an `attention_in_multiplier` that is not 1".into()));
    }
    let mamba = mamba(text)?;
    let mut attention = AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0));
    attention.scale *= factor(text, "key_multiplier")?;
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Joint(JointConfig { attention, mamba }),
        feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, Defaults::new(10_000.0))?;
    let config = DecoderConfig {
        renames: &[RENAMES],
        folded: Some(factors(text, &mamba)?),
        ..shapes.decoder(vec![rope], vec![layer; shapes.layers as usize])
    };
    config.family()
}

fn mamba(text: Fields<'_>) -> Result<Mamba2Config, Error> {
    let inner = match text.number("mamba_d_ssm")? {
        Some(inner) => inner,
        None => expanded(text)?,
    };
    let mamba = mamba2(text, inner, ScanNorm::Gate)?;
    let groups = mamba.groups;
    let first = text.flag("mamba_norm_before_gate")?.unwrap_or(true);
    let norm = match (text.flag("mamba_rms_norm")?.unwrap_or(false), first) {
        (false, _) => ScanNorm::Gate,
        (true, true) => ScanNorm::BeforeGate { groups },
        (true, false) => ScanNorm::AfterGate { groups },
    };
    Ok(Mamba2Config { norm, ..mamba })
}

fn factor(text: Fields<'_>, field: &'static str) -> Result<f32, Error> {
    let factor = text.number(field)?.unwrap_or(1.0);
    check_positive(field, factor).map(|()| factor)
}

/// A list of as many factors, all 1 if the config has none.
fn list<const N: usize>(text: Fields<'_>, field: &'static str) -> Result<[f32; N], Error> {
    let Some(factors) = text.numbers(field)? else {
        return Ok([1.0; N]);
    };
    match <[f32; N]>::try_from(factors) {
        Ok(factors) => {
            factors.iter().try_for_each(|factor| check_positive(field, *factor))?;
            Ok(factors)
        }
        Err(factors) => unusable(field, format!("it has {} of {N} factors", factors.len())),
    }
}

fn factors(text: Fields<'_>, mamba: &Mamba2Config) -> Result<FoldedFactors, Error> {
    let [gate, down] = list(text, "mlp_multipliers")?;
    let [z, values, places, queries, steps] = list(text, "ssm_multipliers")?;
    let into = factor(text, "ssm_in_multiplier")?;
    let inner = u64::from(mamba.heads).saturating_mul(mamba.head_width.into());
    let of_groups = u64::from(mamba.groups).saturating_mul(mamba.state_width.into());
    let spans = [
        (inner, z),
        (inner, values),
        (of_groups, places),
        (of_groups, queries),
        (mamba.heads.into(), steps),
    ];
    Ok(FoldedFactors {
        embedding: factor(text, "embedding_multiplier")?,
        logits: factor(text, "lm_head_multiplier")?,
        matrices: vec![
            (
                "mamba.in_proj",
                RowFactors::Spans(spans.map(|(rows, factor)| (rows, factor * into)).into()),
            ),
            ("mamba.out_proj", RowFactors::All(factor(text, "ssm_out_multiplier")?)),
            (
                "self_attn.o_proj",
                RowFactors::All(factor(text, "attention_out_multiplier")?),
            ),
            ("mlp.gate_proj", RowFactors::All(gate)),
            ("mlp.down_proj", RowFactors::All(down)),
        ],
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::ModelConfig;

    /// Fields as Falcon-H1 has them.
    fn with(field: &str, value: Value) -> Result<Box<DecoderConfig>, Error> {
        let mut config = json!({"model_type": "falcon_h1", "hidden_size": 1024, "num_hidden_layers": 36, "vocab_size": 32784,
            "intermediate_size": 2048, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64,
            "mamba_d_ssm": 1536, "mamba_n_heads": 24, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1,
            "key_multiplier": 0.390625, "lm_head_multiplier": 0.0390625, "embedding_multiplier": 5.65,
            "ssm_in_multiplier": 2.0, "ssm_multipliers": [0.5, 0.25, 0.125, 1.0, 4.0], "rope_theta": 1e11});
        config[field] = value;
        match ModelConfig::parse(&config.to_string())?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    #[test]
    fn factors_of_keys_are_part_of_the_scores_and_others_of_matrices() {
        let config = with("mamba_d_conv", json!(4)).unwrap();
        let Mixer::Joint(joint) = &config.layers[35].mixer else {
            panic!("it has both")
        };
        assert_eq!(joint.attention.scale, 0.390625 / 8.0);
        assert_eq!(joint.mamba.norm, ScanNorm::Gate);
        let folded = config.folded.unwrap();
        let RowFactors::Spans(spans) = &folded.matrices[0].1 else {
            panic!("it has parts")
        };
        let expected = [(1536, 1.0), (1536, 0.5), (128, 0.25), (128, 2.0), (24, 8.0)];
        assert_eq!(spans[..], expected);
    }

    #[test]
    fn a_norm_comes_before_the_gate_unless_the_config_says_otherwise() {
        let Mixer::Joint(joint) = &with("mamba_rms_norm", json!(true)).unwrap().layers[0].mixer else {
            panic!("it has both")
        };
        assert_eq!(joint.mamba.norm, ScanNorm::BeforeGate { groups: 1 });
    }

    #[test]
    fn parts_that_are_missing_are_refused_by_name() {
        for (field, value) in [
            ("attention_bias", json!(true)),
            ("projectors_bias", json!(true)),
            ("attention_in_multiplier", json!(0.5)),
            ("key_multiplier", json!(0.0)),
            ("ssm_multipliers", json!([1.0, 2.0])),
            ("ssm_multipliers", json!([1.0, 1.0, 1.0, 1.0, -1.0])),
            ("mlp_multipliers", json!(3)),
            ("mamba_n_heads", json!(0)),
        ] {
            let error = with(field, value.clone()).unwrap_err().to_string();
            assert!(error.contains(field), "{field} {value}: {error}");
        }
    }
}
