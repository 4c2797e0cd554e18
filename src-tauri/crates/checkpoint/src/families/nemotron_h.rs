//! Nemotron-H and Nemotron Nano 2 and 3: layers of one part each, which is Mamba 2, attention without positions, a
//! network that squares, or experts that do. Defaults are those of transformers' `NemotronHConfig`; steps have no limit
//! unless the config names one, as they were trained.

use super::mamba_fields::{only_silu, step_limit};
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, EncoderActivation, FeedForward, LayerConfig, Mamba2Config, Mixer,
    NormPlacement, PlainConfig, ScanNorm,
};
use crate::config::limits::{check_layers, check_nonzero};
use crate::config::moe::{
    Correction, ExpertGroups, GroupScore, LatentMoeConfig, MoeConfig, RouterConfig, Scoring, SharedExpertConfig,
};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text(
    "Nemotron-H, Nemotron Nano 2 and 3",
    &["nemotron_h"],
    parse,
)];

/// The names around the layers.
pub(super) const BACKBONE: &[(&str, &str)] = &[
    ("backbone.layers", "layers"),
    ("backbone.embeddings", "embed_tokens"),
    ("backbone.norm_f", "norm"),
    ("embeddings", "embed_tokens"),
    ("norm_f", "norm"),
];

/// A layer's part is its `mixer`, whatever it is.
const PARTS: &[(&str, &str)] = &[
    ("mixer.q_proj", "self_attn.q_proj"),
    ("mixer.k_proj", "self_attn.k_proj"),
    ("mixer.v_proj", "self_attn.v_proj"),
    ("mixer.o_proj", "self_attn.o_proj"),
    ("mixer.up_proj", "mlp.up_proj"),
    ("mixer.down_proj", "mlp.down_proj"),
    ("mixer.gate", "mlp.gate"),
    ("mixer.switch_mlp", "mlp.switch_mlp"),
    ("mixer.experts", "mlp.experts"),
    ("mixer.shared_experts", "mlp.shared_experts"),
    ("mixer.fc1_latent_proj", "mlp.fc1_latent_proj"),
    ("mixer.fc2_latent_proj", "mlp.fc2_latent_proj"),
    ("mixer", "mamba"),
];

/// The norm before it, but not the one inside Mamba. To be applied before the last norm gets its name.
pub(super) const NORMS: &[(&str, &str)] = &[("mixer.norm", "mixer.norm"), ("norm", "input_layernorm")];

/// The part of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Mamba,
    Attention,
    Dense,
    Experts,
}

/// Nemotron-H.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let parts = parts(text)?;
    let (hidden_size, heads) = (text.required("hidden_size")?, text.required("num_attention_heads")?);
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(parts.len() as u32)?,
        heads,
        key_heads: text.number("num_key_value_heads")?.unwrap_or(heads),
        head_dim: text
            .first(&["head_dim", "attention_head_dim"])?
            .unwrap_or(hidden_size / heads),
        width: text.number("intermediate_size")?.unwrap_or(21_504),
        eps: text.first(&["layer_norm_epsilon", "norm_eps"])?.unwrap_or(1e-5),
        lm_head: Shapes::lm_head(text)?,
    };
    let layer = |part: &Part| -> Result<LayerConfig, Error> {
        let (mixer, feed_forward) = match part {
            Part::Mamba => (Mixer::Mamba2(mamba(text)?), FeedForward::Absent),
            Part::Attention => (Mixer::Attention(attention(text, &shapes)?), FeedForward::Absent),
            Part::Dense => (Mixer::Absent, FeedForward::Plain(dense(text, shapes.width)?)),
            Part::Experts => (Mixer::Absent, experts(text)?),
        };
        Ok(LayerConfig {
            norms: NormPlacement::Single,
            mixer,
            feed_forward,
        })
    };
    let layers = parts.iter().map(layer).collect::<Result<_, _>>()?;
    let config = DecoderConfig {
        renames: &[NORMS, BACKBONE, PARTS],
        ..shapes.decoder(Vec::new(), layers)
    };
    config.family()
}

/// The part of each layer: by a letter each in `hybrid_override_pattern`, or by the names that transformers writes.
fn parts(text: Fields<'_>) -> Result<Vec<Part>, Error> {
    const PATTERN: &str = "hybrid_override_pattern";
    let of_letter = |letter: char| match letter {
        'M' => Ok(Part::Mamba),
        '*' => Ok(Part::Attention),
        '-' => Ok(Part::Dense),
        'E' => Ok(Part::Experts),
        other => Err(Error::Unsupported(format!("layers of type `{other}`"))),
    };
    let names = ["layers_block_type", "layer_types"];
    if let Some(field) = names.into_iter().find(|field| text.has(field)) {
        let names = text.texts(field)?.unwrap_or_default();
        let of_name = |name: &str| match name {
            "mamba" | "linear_attention" => Ok(Part::Mamba),
            "attention" | "full_attention" => Ok(Part::Attention),
            "mlp" => Ok(Part::Dense),
            "moe" => Ok(Part::Experts),
            other => Err(Error::Unsupported(format!("layers of type `{other}`"))),
        };
        return names.into_iter().map(of_name).collect();
    }
    if let Ok(Some(letters)) = text.texts(PATTERN) {
        return letters
            .iter()
            .flat_map(|letters| letters.chars())
            .map(of_letter)
            .collect();
    }
    match text.text(PATTERN)? {
        Some(letters) => letters.chars().map(of_letter).collect(),
        None => Err(Error::MissingField(PATTERN)),
    }
}

fn mamba(text: Fields<'_>) -> Result<Mamba2Config, Error> {
    only_silu(text, "mamba_hidden_act")?;
    let groups = text.first(&["n_groups", "mamba_n_groups"])?.unwrap_or(8);
    Ok(Mamba2Config {
        heads: text.number("mamba_num_heads")?.unwrap_or(128),
        head_width: text.number("mamba_head_dim")?.unwrap_or(64),
        groups,
        state_width: text.first(&["ssm_state_size", "mamba_d_state"])?.unwrap_or(128),
        kernel: text.first(&["conv_kernel", "mamba_d_conv"])?.unwrap_or(4),
        conv_bias: text.flag("use_conv_bias")?.unwrap_or(true),
        bias: text.flag("mamba_proj_bias")?.unwrap_or(false),
        step_limit: step_limit(text)?,
        step_rank: None,
        norm: ScanNorm::AfterGate { groups },
    })
}

fn attention(text: Fields<'_>, shapes: &Shapes) -> Result<AttentionConfig, Error> {
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    Ok(AttentionConfig {
        qkv_bias: bias,
        o_bias: bias,
        ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, None)
    })
}

fn dense(text: Fields<'_>, width: u32) -> Result<PlainConfig, Error> {
    Ok(PlainConfig {
        width,
        activation: EncoderActivation::named(text.text("mlp_hidden_act")?.as_deref().unwrap_or("relu2"))?,
        bias: text.flag("mlp_bias")?.unwrap_or(false),
    })
}

/// Experts, chosen as DeepSeek V3 chooses them.
fn experts(text: Fields<'_>) -> Result<FeedForward, Error> {
    let beside = dense(text, 0)?;
    if beside.bias {
        return Err(Error::Unsupported("experts with biases (`mlp_bias`)".into()));
    }
    if beside.activation != EncoderActivation::SquaredRelu {
        return Err(Error::Unsupported("experts whose activation is not `relu2`".into()));
    }
    let top_k = text.required("num_experts_per_tok")?;
    let width = text.required("moe_intermediate_size")?;
    let shared: u32 = text.number("n_shared_experts")?.unwrap_or(1);
    let shared = match (shared, text.number("moe_shared_expert_intermediate_size")?) {
        (0, _) => None,
        (_, stated) => Some(SharedExpertConfig {
            activation: Activation::UngatedSquaredRelu,
            ..SharedExpertConfig::beside(stated.unwrap_or(width))
        }),
    };
    let count: u32 = text.number("n_group")?.unwrap_or(1);
    check_nonzero("n_group", count)?;
    let experts = MoeConfig {
        num_experts: text.required("n_routed_experts")?,
        top_k,
        width,
        activation: Activation::UngatedSquaredRelu,
        bias: false,
        router: RouterConfig {
            factor: text.number("routed_scaling_factor")?.unwrap_or(1.0),
            correction: Correction::Always,
            groups: match (count, text.number("topk_group")?.unwrap_or(1)) {
                (1, _) => None,
                (count, top_k) => Some(ExpertGroups {
                    count,
                    top_k,
                    score: GroupScore::TwoBest,
                }),
            },
            ..RouterConfig::new(
                Scoring::Sigmoid,
                top_k > 1 && text.flag("norm_topk_prob")?.unwrap_or(true),
            )
        },
        shared,
    };
    Ok(match text.number("moe_latent_size")? {
        Some(width) => FeedForward::LatentMoe(LatentMoeConfig { experts, width }),
        None => FeedForward::Moe(experts),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::ModelConfig;

    /// Fields as Nemotron 3 Nano has them, with a short pattern.
    fn nano(changes: Value) -> Result<Box<DecoderConfig>, Error> {
        let mut config = json!({"model_type": "nemotron_h", "hidden_size": 2688, "vocab_size": 131072,
            "intermediate_size": 1856, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
            "hybrid_override_pattern": "MEM*E-", "mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128,
            "n_groups": 8, "conv_kernel": 4, "layer_norm_epsilon": 1e-5, "n_routed_experts": 128, "n_shared_experts": 1,
            "num_experts_per_tok": 6, "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712,
            "routed_scaling_factor": 2.5, "norm_topk_prob": true, "n_group": 1, "topk_group": 1,
            "mlp_hidden_act": "relu2", "tie_word_embeddings": false});
        let changes = changes.as_object().unwrap().clone();
        config.as_object_mut().unwrap().extend(changes);
        match ModelConfig::parse(&config.to_string())?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    #[test]
    fn each_layer_is_one_part_in_every_way_of_writing_it() {
        let config = nano(json!({})).unwrap();
        let mixes: Vec<bool> = config.layers.iter().map(|layer| layer.mixer != Mixer::Absent).collect();
        assert_eq!(mixes, [true, false, true, true, false, false]);
        let fed = config
            .layers
            .iter()
            .filter(|layer| layer.feed_forward != FeedForward::Absent);
        assert_eq!(fed.count(), 3);
        assert!(config.layers[3]
            .mixer
            .attention()
            .is_some_and(|attention| attention.rope.is_none()));
        let names = json!(["mamba", "moe", "mamba", "attention", "moe", "mlp"]);
        let newer = json!([
            "linear_attention",
            "moe",
            "linear_attention",
            "full_attention",
            "moe",
            "mlp"
        ]);
        for changes in [
            json!({"layers_block_type": names, "hybrid_override_pattern": null}),
            json!({"layer_types": newer, "hybrid_override_pattern": null}),
            json!({"hybrid_override_pattern": ["M", "E", "M", "*", "E", "-"]}),
        ] {
            assert_eq!(nano(changes.clone()).unwrap(), config, "{changes}");
        }
    }

    #[test]
    fn experts_square_without_a_gate_and_stand_beside_a_shared_one() {
        let FeedForward::Moe(experts) = nano(json!({})).unwrap().layers[1].feed_forward else {
            panic!("it has experts")
        };
        assert!(
            !experts.activation.is_gated()
                && experts.router.correction == Correction::Always
                && experts.router.normalised
        );
        assert_eq!(experts.shared.map(|shared| shared.width), Some(3712));
    }

    #[test]
    fn a_limit_of_steps_may_be_infinite() {
        let text = r#"{"model_type": "nemotron_h", "hidden_size": 128, "vocab_size": 320, "num_attention_heads": 4,
            "hybrid_override_pattern": "M", "time_step_limit": [0.25, Infinity]}"#;
        let Family::Decoder(config) = ModelConfig::parse(text).unwrap().family else {
            panic!("another family")
        };
        let Mixer::Mamba2(mamba) = config.layers[0].mixer else {
            panic!("it has a state")
        };
        assert_eq!(mamba.step_limit, (0.25, f32::INFINITY));
    }

    #[test]
    fn parts_that_are_missing_are_refused_by_name() {
        for (field, value, named) in [
            ("hybrid_override_pattern", json!("MX"), "`X`"),
            ("hybrid_override_pattern", json!(null), "hybrid_override_pattern"),
            ("layer_types", json!(["lstm"]), "lstm"),
            ("moe_latent_size", json!(0), "moe_latent_size"),
            ("mlp_bias", json!(true), "mlp_bias"),
            ("mlp_hidden_act", json!("silu"), "relu2"),
            ("mlp_hidden_act", json!("mish"), "mish"),
            ("mamba_hidden_act", json!("gelu"), "gelu"),
            ("n_groups", json!(7), "n_groups"),
        ] {
            let error = nano(json!({field: value.clone()})).unwrap_err().to_string();
            assert!(error.contains(named), "{field} {value}: {error}");
        }
    }
}
