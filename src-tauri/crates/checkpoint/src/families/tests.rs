//! Rules that hold for the parser of every family.
#![allow(clippy::unwrap_used)]

use protocol::ModelKind;
use serde_json::{json, Map, Value};

use super::KNOWN_MODEL_TYPES;
use crate::config::decoder::{Activation, FeedForward, JointConfig, LmHead, Mixer, NormPlacement, QkNorm};
use crate::config::encoder::{EncoderActivation, Positions};
use crate::{DecoderConfig, Error, Family, ModelConfig};

/// Every field that a family requires.
const FIELDS: &str = r#"{
    "hidden_size": 128, "num_hidden_layers": 4, "intermediate_size": 192, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 320, "max_position_embeddings": 512, "sliding_window": 16, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": true, "head_dim": 32,
    "num_experts": 8, "num_local_experts": 8, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
    "n_shared_experts": 1, "shared_expert_intermediate_size": 64, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
    "routed_scaling_factor": 1.0, "norm_topk_prob": true,
    "index_n_heads": 2, "index_head_dim": 32, "index_topk": 8, "index_block_size": 8, "index_topk_blocks": 4,
    "index_local_blocks": 1, "hc_mult": 2, "hc_magnitude": 1.5, "hc_eps": 1e-6, "swiglu_limit": 7.0, "o_groups": 2,
    "ff_intermediate_size": 192, "gegelu_limit": 20.0, "blocksparse_block_size": 8, "blocksparse_vert_stride": 3,
    "blocksparse_num_local_blocks": 2, "dense_attention_every_n_layers": 2, "layer_norm_epsilon": 1e-5,
    "ngram_vocab_size_ratio": 3, "emb_neighbor_num": 3, "emb_split_num": 2, "eos_token_id": 2,
    "decay_low_rank_dim": 24, "a_low_rank_dim": 24, "v_low_rank_dim": 16, "gate_low_rank_dim": 32, "norm_bias": true,
    "indexer_types": ["full", "shared", "full", "shared"], "dense_intermediate_size": 192,
    "sparse_attention_config": {"sparse_attention_freq": [0, 1, 1, 1], "sparse_num_index_heads": 1},
    "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
    "num_layers": 2, "ffn_hidden_size": 192, "expert_ffn_hidden_size": 64, "moe_topk": 2,
    "hidden_dim": 128, "num_kv_reuse_layers": 1, "group_norm_size": 4, "layer_group_size": 2, "mla_use_nope": true,
    "linear_attn_config": {"num_heads": 2, "head_dim": 32, "kda_layers": [1, 2, 4]},
    "linear_conv_kernel_dim": 4, "conv_L_cache": 3, "conv_dim": 128, "norm_eps": 1e-5, "block_ff_dim": 192,
    "full_attn_idxs": [1, 3], "num_dense_layers": 1,
    "kv_lora_rank": 32, "q_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
    "num_query_heads": [4, 2, 4, 4], "num_kv_heads": [2, 1, 2, 4], "ffn_multipliers": [0.5, 1.0, 1.5, 2.25],
    "block_configs": [
        {"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 2.5}},
        {"attention": {"no_op": true}, "ffn": {"replace_with_linear": true}},
        {"attention": {"replace_with_linear": true}, "ffn": {"no_op": true}},
        {"attention": {"n_heads_in_group": 1}, "ffn": {"ffn_mult": 1.0}}
    ],
    "hidden_size_per_layer_input": 16, "backbone_hidden_size": 128, "global_head_dim": 32, "num_kv_shared_layers": 0,
    "moe_num_experts": 8, "moe_k": 2, "moe_top_k": 2, "num_attention_groups": 2, "num_shared_experts": 1,
    "d_model": 128, "n_heads": 4, "n_layers": 4, "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 5e5},
    "ffn_config": {"ffn_hidden_size": 64, "moe_num_experts": 8, "moe_top_k": 2},
    "hybrid_override_pattern": "M*-E", "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_ssm": 64, "mamba_d_state": 16,
    "mamba_d_conv": 4, "mamba_n_groups": 2, "mamba_num_heads": 4, "mamba_head_dim": 16, "num_heads": 4, "n_groups": 2,
    "ssm_state_size": 16, "state_size": 16, "conv_kernel": 4, "time_step_limit": [0.0, 1.0], "expand": 2,
    "shared_intermediate_size": 64, "moe_shared_expert_intermediate_size": 64, "mamba_rms_norm": true,
    "ssm_multipliers": [1, 1, 1, 1, 1], "mlp_multipliers": [1, 1], "ssm_in_multiplier": 1, "key_multiplier": 1
}"#;

/// A config that has it all.
fn config(model_type: &str) -> Value {
    let mut config: Value = serde_json::from_str(FIELDS).unwrap();
    config["model_type"] = json!(model_type);
    if model_type.ends_with("_assistant") {
        // Its layers have none.
        config["hidden_size_per_layer_input"] = json!(0);
    }
    // Elsewhere each layer has a number of its own.
    if model_type == "afm7" {
        config["num_kv_heads"] = json!(2);
    }
    // Without a list its heads have 64 pairs.
    if matches!(model_type, "ernie4_5_moe_vl" | "ernie4_5_vl_moe") {
        config["rope_scaling"] = json!({"mrope_section": [5, 5, 6]});
    }
    // Its experts are refused by name.
    if model_type == "youtu_vl" {
        config["n_routed_experts"] = Value::Null;
    }
    config
}

fn parse(config: &Value) -> Result<ModelConfig, Error> {
    ModelConfig::parse(&config.to_string())
}

fn decoder(config: &Value) -> DecoderConfig {
    match parse(config).unwrap().family {
        Family::Decoder(decoder) => *decoder,
        Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("it is no plain decoder"),
    }
}

#[test]
fn every_type_has_one_row_and_every_family_reads_a_config() {
    assert!(
        KNOWN_MODEL_TYPES.is_sorted_by(|a, b| a < b),
        "one is there twice: {KNOWN_MODEL_TYPES:?}"
    );
    for &model_type in KNOWN_MODEL_TYPES.iter() {
        let mut text = config(model_type);
        match parse(&text) {
            // A wrapper reads whatever language part is inside.
            Err(Error::MissingField("text_config")) => text["model_type"] = json!("llama"),
            _ if model_type == "mistral3" => text["model_type"] = json!("ministral3"),
            parsed => assert_eq!(
                parsed
                    .unwrap_or_else(|error| panic!("{model_type}: {error}"))
                    .model_type,
                model_type
            ),
        }
        let inside = json!({"model_type": model_type, "vocab_size": 320, "text_config": text});
        parse(&inside).unwrap_or_else(|error| panic!("{model_type} as a text_config: {error}"));
    }
}

/// The document of supported models follows the kind.
#[test]
fn a_row_says_if_its_models_generate() {
    for row in super::rows().filter(|row| row.vision.is_none()) {
        for model_type in row.model_types {
            let looks_both_ways = parse(&config(model_type)).unwrap().family.is_bidirectional();
            assert_eq!(looks_both_ways, row.kind == ModelKind::Embedding, "{model_type}");
        }
    }
}

/// Whatever a file claims, the answer is a config or an error.
#[test]
fn no_value_of_any_field_makes_a_parser_panic() {
    let hostile = [
        json!(null),
        json!(0),
        json!(1),
        json!(3),
        json!(-1),
        json!(0.5),
        json!(u32::MAX),
        json!(i64::MIN),
        json!(1e300),
        json!({"__float__": "NaN"}),
        json!({"__float__": "Infinity"}),
        json!(true),
        json!("none"),
        json!([]),
        json!(["full_attention", "none", 1]),
        json!({}),
        json!({"rope_type": "yarn", "factor": 0.0, "beta_fast": 0.0, "original_max_position_embeddings": 0}),
        json!({"rope_type": "yarn", "factor": 1e30, "beta_fast": -1.0, "mscale": -50.0}),
        json!({"rope_type": "longrope", "long_factor": [], "short_factor": []}),
        json!({"rope_type": "longrope", "long_factor": [0.0, -1.0], "original_max_position_embeddings": 1}),
        json!({"rope_type": "dynamic", "factor": 1e-30}),
        json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 0.0, "high_freq_factor": 0.0}),
        json!({"rope_type": "proportional", "partial_rotary_factor": 9.0, "factor": -1.0}),
        json!({"full_attention": {"rope_theta": 0.0}, "sliding_attention": 5}),
        json!([-1.0, {"__float__": "Infinity"}]),
        json!([1.0, 0.5]),
        json!("ME?"),
    ];
    let more = [
        "rope_theta",
        "rope_scaling",
        "rope_parameters",
        "layer_types",
        "partial_rotary_factor",
        "quantization",
        "hidden_act",
    ];
    for &model_type in KNOWN_MODEL_TYPES.iter() {
        let whole = config(model_type);
        let fields: Vec<&str> = whole
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .chain(more)
            .collect();
        for field in fields.into_iter().filter(|field| *field != "model_type") {
            for value in &hostile {
                let mut spoiled = whole.clone();
                spoiled[field] = value.clone();
                let Ok(config) = parse(&spoiled) else { continue };
                if let Family::Decoder(decoder) = config.family {
                    assert_sound(&decoder, &format!("{model_type} with {field} {value}"));
                }
            }
        }
    }
    let empty = Value::Object(Map::new());
    assert!(parse(&empty).is_err());
}

/// The properties that the engine relies on.
fn assert_sound(decoder: &DecoderConfig, what: &str) {
    assert!(decoder.layers.len() <= 4096, "{what}");
    for layer in &decoder.layers {
        if let Mixer::Mamba2(mamba) | Mixer::Joint(JointConfig { mamba, .. }) = &layer.mixer {
            assert!(mamba.inner() + mamba.channels() <= 1 << 24, "{what}");
            assert!(mamba.heads.is_multiple_of(mamba.groups) && mamba.kernel > 1, "{what}");
        }
        if let Some(attention) = layer.mixer.attention() {
            assert!(attention.heads * attention.head_dim <= 1 << 24, "{what}");
            assert!(
                attention.head_dim.is_multiple_of(2) && attention.window != Some(0),
                "{what}"
            );
            assert!(attention.rope.is_none_or(|rope| rope < decoder.ropes.len()), "{what}");
        }
    }
    for rope in &decoder.ropes {
        assert!(
            rope.periods.iter().all(|period| period.abs() > 0.0) && rope.amplitude > 0.0,
            "{what}: {rope:?}"
        );
        assert_eq!(rope.periods.len() as u32, rope.dims / 2, "{what}");
    }
}

#[test]
fn shapes_beyond_all_reason_are_refused_by_name() {
    for (field, value) in [
        ("num_hidden_layers", json!(u32::MAX)),
        ("hidden_size", json!(1 << 25)),
        ("intermediate_size", json!(u32::MAX)),
        ("head_dim", json!(1 << 20)),
        ("head_dim", json!(33)),
        ("num_key_value_heads", json!(3)),
        ("vocab_size", json!(u32::MAX)),
        ("rms_norm_eps", json!({"__float__": "NaN"})),
        ("rope_theta", json!(0.0)),
    ] {
        let mut config = config("qwen3");
        config[field] = value.clone();
        let error = parse(&config).unwrap_err().to_string();
        assert!(error.contains(&format!("`{field}`")), "{field} {value}: {error}");
    }
}

#[test]
fn families_differ_in_what_they_are_known_for() {
    let attention = |decoder: &DecoderConfig, layer: usize| match &decoder.layers[layer].mixer {
        Mixer::Attention(attention) => attention.clone(),
        other => panic!("{other:?}"),
    };
    let qwen2 = decoder(&config("qwen2"));
    assert!(attention(&qwen2, 0).qkv_bias && !attention(&qwen2, 0).o_bias);
    assert_eq!(attention(&qwen2, 0).window, None, "use_sliding_window is off");
    assert_eq!(attention(&decoder(&config("qwen3")), 0).qk_norm, QkNorm::PerHead);
    assert_eq!(attention(&decoder(&config("mistral")), 0).window, Some(16));

    let smollm3 = decoder(&config("smollm3"));
    let ropes: Vec<bool> = (0..4).map(|layer| attention(&smollm3, layer).rope.is_some()).collect();
    assert_eq!(ropes, [true, true, true, false]);

    let olmo3 = decoder(&config("olmo3"));
    assert_eq!(
        (olmo3.layers[0].norms, attention(&olmo3, 0).qk_norm),
        (NormPlacement::Post, QkNorm::Whole)
    );
    let windows: Vec<bool> = (0..4).map(|layer| attention(&olmo3, layer).window.is_some()).collect();
    assert_eq!(windows, [true, true, true, false]);

    let mut gemma3 = config("gemma3_text");
    gemma3["num_hidden_layers"] = json!(6);
    gemma3["rope_scaling"] = json!({"rope_type": "linear", "factor": 8.0});
    let gemma3 = decoder(&gemma3);
    assert!(
        gemma3.norm.offset
            && gemma3.lm_head == LmHead::UntiedIfPresent
            && gemma3.layers[0].norms == NormPlacement::Sandwich
    );
    let (sliding, full) = (attention(&gemma3, 0), attention(&gemma3, 5));
    assert_eq!((sliding.window, full.window), (Some(16), None));
    let period = |attention: &crate::config::decoder::AttentionConfig| gemma3.ropes[attention.rope.unwrap()].periods[0];
    assert_eq!(
        (period(&sliding), period(&full)),
        (1.0, 8.0),
        "only full layers are stretched"
    );
    let FeedForward::Dense(dense) = gemma3.layers[0].feed_forward else {
        panic!("it is dense")
    };
    assert_eq!(dense.activation, Activation::GeluTanh);

    let glm4 = decoder(&config("glm4"));
    assert!(glm4.ropes[0].traditional && glm4.ropes[0].dims == 16);
}

#[test]
fn a_window_as_long_as_the_context_is_none() {
    let mut phi3 = config("phi3");
    phi3["sliding_window"] = json!(262_144);
    let Mixer::Attention(attention) = &decoder(&phi3).layers[0].mixer else {
        panic!("it has attention")
    };
    assert_eq!(attention.window, None);
}

#[test]
fn both_forms_of_rope_settings_mean_the_same() {
    let with = |fields: Value| {
        let mut config = config("llama");
        for (field, value) in fields.as_object().unwrap() {
            config[field] = value.clone();
        }
        decoder(&config).ropes
    };
    let llama3 = json!({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 64});
    let old = with(json!({"rope_theta": 5e5, "rope_scaling": llama3}));
    let mut flat = llama3.clone();
    flat["rope_theta"] = json!(5e5);
    assert_eq!(old, with(json!({"rope_parameters": flat})));
    assert_ne!(old, with(json!({"rope_theta": 5e5})));
    let linear = with(json!({"rope_scaling": {"type": "linear", "factor": 4.0}}));
    assert_eq!(linear[0].periods[0], 4.0);
    let mut dynamic = config("llama");
    dynamic["rope_scaling"] = json!({"type": "dynamic", "factor": 4.0});
    assert_eq!(
        parse(&dynamic).unwrap().context,
        2048,
        "four times what it was trained for"
    );
}

/// Published configs leave out much of what they mean, each in its own way.
#[test]
fn configs_as_they_are_published_mean_what_transformers_makes_of_them() {
    let attention = |decoder: &DecoderConfig, layer: usize| match &decoder.layers[layer].mixer {
        Mixer::Attention(attention) => attention.clone(),
        other => panic!("{other:?}"),
    };
    // Gemma 3 12B: neither vocabulary, width of heads, context nor rope are written.
    let gemma3 = json!({
        "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
        "text_config": {
            "hidden_size": 3840, "intermediate_size": 15360, "model_type": "gemma3_text", "num_attention_heads": 16,
            "num_hidden_layers": 48, "num_key_value_heads": 8, "sliding_window": 1024,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        },
    });
    assert_eq!(parse(&gemma3).unwrap().context, 131_072);
    let gemma3 = decoder(&gemma3);
    assert_eq!(
        (
            gemma3.vocab_size,
            attention(&gemma3, 0).head_dim,
            attention(&gemma3, 0).scale
        ),
        (262_208, 256, 0.0625)
    );
    assert_eq!(
        (attention(&gemma3, 4).window, attention(&gemma3, 5).window),
        (Some(1024), None)
    );

    // Phi 3 mini: code for old transformers, a window of its own.
    let phi3 = json!({
        "model_type": "phi3", "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "hidden_act": "silu", "hidden_size": 3072,
        "intermediate_size": 8192, "max_position_embeddings": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 32, "original_max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_scaling": null,
        "rope_theta": 10000.0, "sliding_window": 2047, "tie_word_embeddings": false, "attention_bias": false, "vocab_size": 32064,
    });
    let phi3 = decoder(&phi3);
    assert_eq!(
        (attention(&phi3, 31).window, attention(&phi3, 0).head_dim),
        (Some(2047), 96)
    );

    // Ministral 3 and Devstral 2: everything about positions in one place.
    let rope = json!({
        "beta_fast": 4.0, "beta_slow": 1.0, "factor": 16.0, "llama_4_scaling_beta": 0.1, "mscale": 1.0, "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 16384, "rope_theta": 1e6, "rope_type": "yarn", "type": "yarn",
    });
    let ministral3 = json!({
        "model_type": "mistral3", "text_config": {
            "model_type": "ministral3", "head_dim": 128, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 34,
            "num_attention_heads": 32, "num_key_value_heads": 8, "rope_parameters": rope, "sliding_window": null, "vocab_size": 131072,
        },
    });
    let ministral3 = decoder(&ministral3);
    assert_eq!(
        attention(&ministral3, 0)
            .query_scaling
            .map(|growth| growth.original_context),
        Some(16384)
    );
    assert_eq!(
        (ministral3.lm_head, ministral3.ropes[0].amplitude),
        (LmHead::UntiedIfPresent, 1.0)
    );
    assert!(
        ministral3.ropes[0].periods[63] > 15.9e6 * 0.8,
        "the slowest pair is stretched: {:?}",
        ministral3.ropes[0].periods[63]
    );

    // GLM 4 as newer transformers writes it.
    let mut glm4 = config("glm4");
    glm4["rope_parameters"] = json!({"rope_theta": 10000.0, "partial_rotary_factor": 0.5, "rope_type": "default"});
    assert_eq!(decoder(&glm4).ropes[0].dims, 16);

    // OLMo 3 as newer transformers writes it: a rope for each type of layer.
    let mut olmo3 = config("olmo3");
    let yarn = json!({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192, "rope_theta": 5e5});
    olmo3["rope_parameters"] =
        json!({"sliding_attention": {"rope_type": "default", "rope_theta": 5e5}, "full_attention": yarn});
    let olmo3 = decoder(&olmo3);
    let rope = |layer: usize| &olmo3.ropes[attention(&olmo3, layer).rope.unwrap()];
    assert_eq!(
        (rope(0).amplitude, rope(0).periods[1]),
        (1.0, 5e5f64.powf(1.0 / 16.0) as f32)
    );
    assert!((rope(3).amplitude - 1.207_944).abs() < 1e-5);
}

#[test]
fn encoders_read_as_many_positions_as_their_tables_have_left() {
    let encoder = |text: Value| match parse(&text).unwrap() {
        ModelConfig {
            family: Family::Encoder(encoder),
            context,
            kind: protocol::ModelKind::Embedding,
            ..
        } => (*encoder, context),
        other => panic!("{other:?}"),
    };
    let minilm = json!({"architectures": ["BertModel"], "hidden_act": "gelu", "hidden_size": 384, "intermediate_size": 1536,
        "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 12,
        "num_hidden_layers": 6, "type_vocab_size": 2, "vocab_size": 30522, "position_embedding_type": "absolute"});
    let (config, context) = encoder(minilm);
    assert_eq!(
        (config.head_dim(), config.activation, context),
        (32, EncoderActivation::Gelu, 512)
    );
    let e5 = json!({"hidden_size": 1024, "intermediate_size": 4096, "max_position_embeddings": 514, "model_type": "xlm-roberta",
        "num_attention_heads": 16, "num_hidden_layers": 24, "pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 250002});
    assert_eq!(encoder(e5).1, 512);
    let nomic = json!({"activation_function": "swiglu", "layer_norm_epsilon": 1e-12, "mlp_fc1_bias": false, "mlp_fc2_bias": false,
        "model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_inner": 3072, "n_layer": 12, "n_positions": 8192,
        "prenorm": false, "qkv_proj_bias": false, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
        "rotary_emb_interleaved": false, "rotary_scaling_factor": null, "type_vocab_size": 2, "use_rms_norm": false,
        "vocab_size": 30528});
    let (config, context) = encoder(nomic);
    assert!(config.gated && !config.bias && context == 8192);
    let Positions::Rotary { rope, .. } = config.positions else {
        panic!("{:?}", config.positions)
    };
    assert_eq!(
        (rope.dims, rope.periods[1].round()),
        (64, 1000f32.powf(2.0 / 64.0).round())
    );
}

#[test]
fn a_bidirectional_gemma_makes_embeddings() {
    let mut text = config("gemma3_text");
    text["use_bidirectional_attention"] = json!(true);
    let parsed = parse(&text).unwrap();
    assert_eq!(parsed.kind, protocol::ModelKind::Embedding);
    let gemma = decoder(&text);
    assert!(gemma.bidirectional && gemma.lm_head == LmHead::Absent);
    let Mixer::Attention(attention) = &gemma.layers[0].mixer else {
        panic!("its layers have attention")
    };
    // 16 positions: 8 before, 8 after, and itself.
    assert_eq!(attention.window, Some(9));
}

#[test]
fn parts_that_are_missing_are_refused_by_name() {
    for (model_type, field, value, named) in [
        ("deepseek_v32", "q_lora_rank", json!(null), "q_lora_rank"),
        ("deepseek_v32", "index_head_dim", json!(8), "qk_rope_head_dim"),
        ("bailing_moe", "norm_head", json!(true), "norm_head"),
        ("bailing_moe", "use_bias", json!(true), "use_bias"),
        ("bailing_moe", "rotary_dim", json!(64), "rotary_dim"),
        ("bailing_moe", "score_function", json!("luck"), "luck"),
        ("ernie4_5_moe", "use_bias", json!(true), "use_bias"),
        ("hunyuan", "use_cla", json!(true), "use_cla"),
        ("hunyuan", "moe_topk", json!([1]), "moe_topk"),
        ("minimax", "attn_type_list", json!([1, 0, 1, 1]), "lightning"),
        ("laguna", "moe_apply_router_weight_on_input", json!(true), "on_input"),
        (
            "laguna",
            "num_attention_heads_per_layer",
            json!([4, 4, 4, 3]),
            "num_key_value_heads",
        ),
        ("phimoe", "router_jitter_noise", json!(0.0), "router_jitter_noise"),
        ("spark2_5", "hidden_act", json!("silu"), "hidden_act"),
        ("spark2_5", "headwise_attn_output_gate", json!(false), "gates"),
        ("step3p5", "moe_layers_enum", json!("1,two"), "moe_layers_enum"),
        ("llama4", "attention_chunk_size", json!(0), "attention_chunk_size"),
        ("mimo_v2_flash", "swa_v_head_dim", json!(31), "v_head_dim"),
    ] {
        let mut config = config(model_type);
        config[field] = value.clone();
        let error = parse(&config).unwrap_err().to_string();
        assert!(error.contains(named), "{model_type} with {field} {value}: {error}");
    }
}
