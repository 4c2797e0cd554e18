//! Published configs, as far as they tell of towers, and such as no tower has.

use serde_json::{json, Value};

use super::{SiglipProjector, VisionConfig};
use crate::config::decoder::Mixer;
use crate::memory::{Backend, Workload};
use crate::{Family, ModelConfig};

/// A language part that any wrapper may have.
pub(super) fn llama(model_type: &str) -> Value {
    json!({"model_type": model_type, "hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 64, "num_attention_heads": 2,
           "num_key_value_heads": 1, "head_dim": 32, "vocab_size": 320, "rms_norm_eps": 1e-5, "sliding_window": null})
}

pub(super) fn tower(model_type: &str, text: Value, vision: Value, more: Value) -> Option<VisionConfig> {
    let mut config = json!({"model_type": model_type, "text_config": text, "vision_config": vision});
    config
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    ModelConfig::parse(&config.to_string()).unwrap().vision
}

#[test]
fn gemma_3_pools_64_rows_of_patches_to_16_tokens() {
    let vision = json!({"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "model_type": "siglip_vision_model",
                        "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": false});
    let found = tower(
        "gemma3",
        llama("gemma3_text"),
        vision,
        json!({"mm_tokens_per_image": 256}),
    );
    let Some(VisionConfig::Siglip(siglip)) = &found else {
        panic!("{found:?}")
    };
    assert_eq!(
        (siglip.side, siglip.projector),
        (64, SiglipProjector::Pooled { tokens: 16 })
    );
    assert_eq!(
        (siglip.shape.layers, siglip.shape.head_dim(), siglip.rows),
        (27, 72, false)
    );
    assert!(found.as_ref().unwrap().is_bidirectional());
}

#[test]
fn a_smolvlm_that_leaves_out_what_its_class_has_is_read_so() {
    let vision = json!({"hidden_size": 768, "image_size": 512, "model_type": "smolvlm_vision", "num_attention_heads": 12, "patch_size": 16});
    let found = tower("smolvlm", llama("llama"), vision, json!({"scale_factor": 4}));
    let Some(VisionConfig::Siglip(siglip)) = &found else {
        panic!("{found:?}")
    };
    assert_eq!(
        (siglip.side, siglip.projector),
        (32, SiglipProjector::Joined { merge: 4 })
    );
    assert_eq!((siglip.shape.layers, siglip.shape.intermediate_size), (12, 3072));
    assert!(!found.as_ref().unwrap().is_bidirectional());
}

#[test]
fn a_pixtral_that_tells_next_to_nothing_is_read_by_its_class() {
    let vision = json!({"head_dim": 64, "hidden_act": "silu", "image_size": 1024, "model_type": "pixtral", "patch_size": 16,
                        "rope_theta": 10000.0});
    let plain = tower(
        "pixtral",
        llama("mistral"),
        vision.clone(),
        json!({"vision_feature_layer": -1}),
    );
    let Some(VisionConfig::Pixtral(pixtral)) = plain else {
        panic!("{plain:?}")
    };
    assert_eq!(
        (
            pixtral.shape.hidden_size,
            pixtral.shape.layers,
            pixtral.shape.head_dim()
        ),
        (1024, 24, 64)
    );
    assert_eq!(pixtral.merger, None);
    let merged = tower(
        "mistral3",
        llama("mistral"),
        vision.clone(),
        json!({"vision_feature_layer": -2, "spatial_merge_size": 2}),
    );
    let Some(VisionConfig::Pixtral(mistral3)) = merged else {
        panic!("{merged:?}")
    };
    assert_eq!(
        (mistral3.shape.layers, mistral3.merger.map(|merger| merger.merge)),
        (23, Some(2))
    );
    // Features of several layers side by side are none of these models'.
    assert_eq!(
        tower(
            "pixtral",
            llama("mistral"),
            vision,
            json!({"vision_feature_layer": [-1, -2]})
        ),
        None
    );
}

#[test]
fn internvl_is_read_in_both_forms() {
    let vision = json!({"hidden_size": 1024, "image_size": 448, "intermediate_size": 4096, "model_type": "intern_vit_6b", "patch_size": 14,
                        "num_attention_heads": 16, "num_hidden_layers": 24, "norm_type": "layer_norm", "qk_normalization": false});
    let config = json!({"model_type": "internvl_chat", "llm_config": llama("qwen2"), "vision_config": vision, "downsample_ratio": 0.5});
    let found = ModelConfig::parse(&config.to_string()).unwrap().vision;
    let Some(VisionConfig::InternVit(original)) = found else {
        panic!("{found:?}")
    };
    assert_eq!(
        (original.side, original.merge, original.rms, original.transformers),
        (32, 2, false, false)
    );
    let vision = json!({"hidden_size": 1024, "image_size": [448, 448], "patch_size": [14, 14], "model_type": "internvl_vision",
                        "use_qk_norm": false, "norm_type": "layer_norm"});
    let found = tower("internvl", llama("qwen3"), vision, json!({}));
    let Some(VisionConfig::InternVit(transformers)) = found else {
        panic!("{found:?}")
    };
    assert_eq!(
        (transformers.side, transformers.shape.layers, transformers.transformers),
        (32, 24, true)
    );
}

#[test]
fn molmo_2_reads_states_at_two_depths() {
    // As Molmo2-4B has it: the tower has 27 layers, of which its weights lack the last two.
    let text = json!({"model_type": "molmo2_text", "hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32,
                      "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "additional_vocab_size": 128, "rope_theta": 5000000,
                      "use_qk_norm": true, "qk_norm_type": "qwen3", "norm_after": false});
    let vit = json!({"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16,
                     "head_dim": 72, "image_patch_size": 14, "image_num_pos": 729, "hidden_act": "gelu_pytorch_tanh"});
    let adapter = json!({"hidden_size": 1152, "intermediate_size": 9728, "text_hidden_size": 2560, "num_attention_heads": 16, "num_key_value_heads": 16,
                         "head_dim": 72, "hidden_act": "silu", "vit_layers": [-3, -9], "pooling_attention_mask": true});
    let config = json!({"model_type": "molmo2", "text_config": text, "vit_config": vit, "adapter_config": adapter});
    let read = |config: &Value| ModelConfig::parse(&config.to_string()).unwrap();
    let whole = read(&config);
    let (Some(VisionConfig::Molmo(tower)), Family::Decoder(decoder)) = (&whole.vision, &whole.family) else {
        panic!("{whole:?}")
    };
    assert_eq!(
        (tower.taps.as_slice(), tower.shape.layers, tower.side),
        (&[25, 19][..], 25, 27)
    );
    assert!(tower.masked && whole.vision.as_ref().is_some_and(VisionConfig::adds_to_tokens));
    assert_eq!((decoder.vocab_size, decoder.read_only_tokens), (151_936, 128));
    assert!(
        (4.6e9..5.1e9).contains(&(whole.parameters() as f64)),
        "{}",
        whole.parameters()
    );
    for (part, field, value) in [
        ("vit_config", "num_key_value_heads", json!(8)),
        ("vit_config", "head_dim", json!(64)),
        ("vit_config", "image_num_pos", json!(730)),
        ("vit_config", "image_num_pos", json!(64)),
        ("vit_config", "num_hidden_layers", json!(u32::MAX)),
        ("vit_config", "image_patch_size", json!(0)),
        ("adapter_config", "vit_layers", json!([-28])),
        ("adapter_config", "vit_layers", json!([])),
        ("adapter_config", "num_attention_heads", json!(0)),
        ("adapter_config", "head_dim", json!(u32::MAX)),
        ("adapter_config", "intermediate_size", json!(u32::MAX)),
        ("adapter_config", "hidden_act", json!("gelu")),
    ] {
        let mut other = config.clone();
        other[part][field] = value.clone();
        assert_eq!(read(&other).vision, None, "{field} {value}");
    }
    for (field, value) in [
        ("norm_after", json!(true)),
        ("qk_norm_type", json!("olmo3")),
        ("rope_scaling_layers", json!([1])),
        ("additional_vocab_size", json!(u32::MAX)),
    ] {
        let mut other = config.clone();
        other["text_config"][field] = value.clone();
        assert!(ModelConfig::parse(&other.to_string()).is_err(), "{field} {value}");
    }
}

#[test]
fn the_first_molmo_is_told_by_its_class() {
    // As Molmo-7B-D-0924 has it, which says nothing of its tower.
    let mut config = json!({"model_type": "molmo", "hidden_size": 3584, "intermediate_size": 37888, "layer_norm_eps": 1e-6, "norm_after": false,
                            "max_position_embeddings": 4096, "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
                            "qkv_bias": true, "rope_theta": 1000000.0, "vocab_size": 152064, "embedding_size": 152064, "weight_tying": false});
    for text in [json!(null), json!({})] {
        config["text_config"] = text;
        let whole = ModelConfig::parse(&config.to_string()).unwrap();
        let (Some(VisionConfig::Molmo(tower)), Family::Decoder(decoder)) = (&whole.vision, &whole.family) else {
            panic!("{whole:?}")
        };
        assert_eq!(
            (tower.taps.as_slice(), tower.side, tower.width),
            (&[22, 15][..], 24, 18_944)
        );
        assert!(tower.class_token && (tower.shape.eps, decoder.norm.eps) == (1e-5, 1e-6));
        assert_eq!(decoder.read_only_tokens, 128);
        assert!(
            (7.7e9..8.3e9).contains(&(whole.parameters() as f64)),
            "{}",
            whole.parameters()
        );
    }
    for (field, value) in [
        ("norm_after", json!(true)),
        ("embedding_size", json!(100)),
        ("num_attention_heads", json!(0)),
    ] {
        let mut other = config.clone();
        other[field] = value.clone();
        assert!(ModelConfig::parse(&other.to_string()).is_err(), "{field} {value}");
    }
    for (field, value) in [
        ("image_num_pos", json!(576)),
        ("image_num_pos", json!(65)),
        ("image_pooling_2d", json!("none")),
        ("vit_layers", json!([23])),
        ("intermediate_size", json!(100)),
        ("image_patch_size", json!(0)),
        ("image_emb_dim", json!(u32::MAX)),
    ] {
        let mut other = config.clone();
        other["vision_config"] = json!({field: value});
        assert_eq!(
            ModelConfig::parse(&other.to_string()).unwrap().vision,
            None,
            "{field} {value}"
        );
    }
}

#[test]
fn jina_vlm_counts_the_states_after_its_last_norm() {
    let config = json!({"model_type": "jvlm", "text_config": {"model_type": "jvlm_text"}, "vision_config": {"vit_layers": [-4, -10]}});
    let read = |config: &Value| ModelConfig::parse(&config.to_string()).unwrap();
    let Some(VisionConfig::Molmo(tower)) = read(&config).vision else {
        panic!("it sees nothing")
    };
    assert_eq!(
        (tower.taps.as_slice(), tower.side, tower.masked),
        (&[25, 19][..], 27, false)
    );
    for (field, value) in [
        ("use_cls_token", json!(true)),
        ("vit_layers", json!([-1])),
        ("input_size", json!([100, 100])),
        ("input_size", json!([378, 392])),
        ("n_layers", json!(u32::MAX)),
        ("vl_connector_config", json!({"pooling_h": 3})),
        ("block_config", json!({"attn_config": {"n_heads": 0}})),
        ("block_config", json!({"attn_config": {"head_dim": 64}})),
    ] {
        let mut other = config.clone();
        other["vision_config"][field] = value.clone();
        assert_eq!(read(&other).vision, None, "{field} {value}");
    }
}

#[test]
fn a_glm_layer_is_as_wide_inside_as_the_language_part() {
    let vision = json!({"depth": 24, "hidden_size": 1536, "intermediate_size": 13696, "num_heads": 12, "out_hidden_size": 4096,
                        "image_size": 336, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "rms_norm_eps": 1e-5});
    let found = tower("glm4v", llama("glm4v_text"), vision, json!({}));
    let Some(VisionConfig::Glm(glm)) = found else {
        panic!("{found:?}")
    };
    assert_eq!(
        (glm.shape.intermediate_size, glm.merger_width, glm.learned),
        (4096, 13_696, Some(24))
    );
}

#[test]
fn qwen_omni_is_read_by_what_thinks() {
    let vision = json!({"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "out_hidden_size": 64,
                        "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24]});
    let mut text = llama("qwen3_omni_moe_text");
    let experts = json!({"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32});
    text.as_object_mut()
        .unwrap()
        .extend(experts.as_object().unwrap().clone());
    let config =
        json!({"model_type": "qwen3_omni_moe", "thinker_config": {"text_config": text, "vision_config": vision}});
    let config = ModelConfig::parse(&config.to_string()).unwrap();
    let Some(VisionConfig::Qwen(qwen)) = config.vision else {
        panic!("no tower")
    };
    assert_eq!(
        (config.model_type.as_str(), qwen.deepstack),
        ("qwen3_omni_moe", vec![8, 16, 24])
    );
}

#[test]
fn llama_3_2_looks_at_images_in_every_fifth_layer() {
    let text = json!({"model_type": "mllama_text_model", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
                      "num_hidden_layers": 40, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
                      "vocab_size": 128256, "tie_word_embeddings": false, "max_position_embeddings": 131072,
                      "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38],
                      "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                                       "original_max_position_embeddings": 8192, "rope_type": "llama3"}});
    let vision = json!({"model_type": "mllama_vision_model", "attention_heads": 16, "hidden_size": 1280, "image_size": 560,
                        "intermediate_layers_indices": [3, 7, 15, 23, 30], "intermediate_size": 5120, "max_num_tiles": 4,
                        "num_global_layers": 8, "num_hidden_layers": 32, "norm_eps": 1e-5, "patch_size": 14, "vision_output_dim": 7680});
    let config =
        json!({"model_type": "mllama", "image_token_index": 128256, "text_config": text, "vision_config": vision});
    let config = ModelConfig::parse(&config.to_string()).unwrap();
    let (Some(VisionConfig::Mllama(tower)), Family::Decoder(decoder)) = (&config.vision, &config.family) else {
        panic!("{config:?}")
    };
    assert_eq!(
        (tower.states_of_tile(), tower.rows_of_tile(), tower.tiles),
        (1601, 1608, 4)
    );
    assert_eq!(
        tower.arrangements,
        [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (3, 1), (4, 1)]
    );
    let looking =
        |layer: &usize| matches!(decoder.layers[*layer].mixer, Mixer::CrossAttention(cross) if cross.states == 6404);
    assert_eq!(
        (0..40).filter(looking).collect::<Vec<_>>(),
        [3, 8, 13, 18, 23, 28, 33, 38]
    );
    assert_eq!((decoder.vocab_size, decoder.read_only_tokens), (128_256, 8));
    // 9.8 billion without the tower, 10.6 with it and what leads to the text.
    let alone = ModelConfig {
        vision: None,
        ..config.clone()
    };
    let (all, text) = (config.parameters() as f64, alone.parameters() as f64);
    assert!(
        (9.7e9..9.9e9).contains(&text) && (0.8e9..1.0e9).contains(&(all - text)),
        "{text} {all}"
    );
    // Keys and values of one image stay the same however long the text is.
    let workload = |context| Workload {
        context,
        kv_bits: None,
        backend: Backend::Metal,
        prefix_cached: false,
    };
    let grown = config.cache_growth(0, &workload(1024));
    assert_eq!(grown, 32 * 2 * 8 * 128 * 2 * 1024);
    assert_eq!(
        config.estimate_memory(0, &workload(1024)).kv - grown,
        8 * 2 * 8 * 128 * 2 * 6404
    );
    assert!(config.image_encoding_memory(1600, Backend::Metal) > 600 << 20);
}

#[test]
fn gemma_3n_has_four_streams_and_a_tower_of_a_name() {
    let (widths, sparsity) = (vec![8192; 30], [vec![0.95; 10], vec![0.0; 20]].concat());
    let kinds = [vec!["sliding_attention"; 4], vec!["full_attention"]]
        .concat()
        .repeat(6);
    let text = json!({"model_type": "gemma3n_text", "hidden_size": 2048, "intermediate_size": widths, "num_hidden_layers": 30,
                      "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 262_400,
                      "vocab_size_per_layer_input": 262_144, "hidden_size_per_layer_input": 256, "num_kv_shared_layers": 10,
                      "altup_num_inputs": 4, "altup_active_idx": 0, "altup_correct_scale": true, "laurel_rank": 64,
                      "activation_sparsity_pattern": sparsity, "final_logit_softcapping": 30.0,
                      "layer_types": kinds,
                      "rope_local_base_freq": 10000.0, "rope_theta": 1_000_000.0, "rope_scaling": null, "sliding_window": 512});
    let vision = json!({"architecture": "mobilenetv5_300m_enc", "do_pooling": false, "hidden_size": 2048, "model_type": "gemma3n_vision",
                        "rms_norm_eps": 1e-6, "vocab_offset": 262_144, "vocab_size": 128, "model_args": null});
    let written = |text: &Value, vision: &Value| {
        let config = json!({"model_type": "gemma3n", "text_config": text, "vision_config": vision, "image_token_id": 262_145,
                            "eoi_token_id": 262_144, "vision_soft_tokens_per_image": 256});
        ModelConfig::parse(&config.to_string())
    };
    let config = written(&text, &vision).unwrap();
    let (Some(VisionConfig::MobileNet(tower)), Family::Gemma4(gemma)) = (&config.vision, &config.family) else {
        panic!("{config:?}")
    };
    assert_eq!((tower.side, tower.closing_mark()), (16, Some(0)));
    let altup = gemma.altup.as_ref().unwrap();
    assert_eq!(
        (
            altup.streams,
            altup.sparsity[9],
            altup.sparsity[10],
            gemma.mlp_width(29)
        ),
        (4, 0.95, 0.0, 8192)
    );
    assert_eq!((gemma.donor(20), gemma.donor(24), gemma.own_kv_layers()), (18, 19, 20));
    assert_eq!(gemma.full_rope.partial_rotary_factor, 1.0);
    // 4.5 billion with the tables of the layers' inputs, without the part that hears.
    let parameters = config.parameters() as f64;
    assert!((4.5e9..5.2e9).contains(&parameters), "{parameters}");
    // Another network is not this one.
    assert_eq!(
        written(&text, &json!({"architecture": "vit_base"})).unwrap().vision,
        None
    );
    for (field, value) in [
        ("altup_num_inputs", json!(1)),
        ("altup_num_inputs", json!(4_000_000_000u32)),
        ("altup_active_idx", json!(4)),
        ("intermediate_size", json!([8192, 8192])),
        ("activation_sparsity_pattern", json!([0.95])),
        ("activation_sparsity_pattern", json!([[1.5; 15], [1.5; 15]].concat())),
        ("laurel_rank", json!(u32::MAX)),
    ] {
        let mut text = text.clone();
        text[field] = value.clone();
        let error = written(&text, &vision).unwrap_err().to_string();
        assert!(error.contains(field), "{field} {value}: {error}");
    }
}

#[test]
fn hunyuan_ocr_is_read_whole_from_one_level() {
    let vision = json!({"hidden_size": 1152, "out_hidden_size": 1024, "num_hidden_layers": 27, "num_attention_heads": 16,
                        "intermediate_size": 4304, "patch_size": 16, "max_image_size": 2048, "interpolate_mode": "bilinear"});
    let rope = json!({"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "type": "xdrope", "xdrope_section": [16, 16, 16, 16]});
    let config = json!({"model_type": "hunyuan_vl", "vision_config": vision, "vocab_size": 120_818, "hidden_size": 1024,
                        "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
                        "intermediate_size": 3584, "rope_theta": 10000.0, "rope_scaling": rope, "tie_word_embeddings": true});
    let config = ModelConfig::parse(&config.to_string()).unwrap();
    let Some(VisionConfig::Hunyuan(tower)) = &config.vision else {
        panic!("{:?}", config.vision)
    };
    assert_eq!((tower.side, tower.merge, tower.shape.head_dim()), (128, 2, 72));
    let crate::Family::Decoder(decoder) = &config.family else {
        panic!("another family")
    };
    let rope = &decoder.ropes[0];
    let axes: Vec<usize> = [0, 15, 16, 31, 32, 47, 48, 63]
        .map(|pair| rope.sections.unwrap().axis(pair))
        .to_vec();
    assert_eq!(axes, [0, 0, 2, 2, 1, 1, 3, 3]);
    // 10000 · 1000^(128/126): the second pair turns by its 64th root.
    let widened = (10_000.0 * 1000f64.powf(128.0 / 126.0)).powf(1.0 / 64.0);
    assert!(
        (f64::from(rope.periods[1]) - widened).abs() < 1e-4,
        "{}",
        rope.periods[1]
    );
    assert!(rope.dynamic.is_none());
}

#[test]
fn falcon_ocr_has_no_tower_and_sees() {
    let config = json!({"model_type": "falcon_ocr", "dim": 768, "n_layers": 22, "n_heads": 16, "head_dim": 64, "n_kv_heads": 8,
                        "ffn_dim": 2304, "vocab_size": 65_536, "norm_eps": 1e-5, "max_seq_len": 8192, "rope_theta": 10000});
    let read = |config: &Value| ModelConfig::parse(&config.to_string()).unwrap();
    let falcon = read(&config);
    let tower = falcon.vision.as_ref().unwrap();
    assert!(matches!(tower, VisionConfig::Falcon(patches) if patches.patch_size == 16));
    assert!(tower.is_bidirectional() && tower.marks_look_ahead());
    assert_eq!(falcon.context, 8192);
    let mut frames = config.clone();
    frames["temporal_patch_size"] = json!(2);
    assert_eq!(read(&frames).vision, None);
}

#[test]
fn towers_that_cannot_be_are_none() {
    let sound = json!({"hidden_size": 96, "num_hidden_layers": 2, "intermediate_size": 80, "num_attention_heads": 4, "patch_size": 14,
                       "image_size": 56});
    let read = |vision: Value| tower("idefics3", llama("llama"), vision, json!({"scale_factor": 2}));
    assert!(read(sound.clone()).is_some());
    for (field, value) in [
        ("hidden_size", json!(u32::MAX)),
        ("num_hidden_layers", json!(1 << 20)),
        ("intermediate_size", json!(u32::MAX)),
        ("num_attention_heads", json!(0)),
        ("num_attention_heads", json!(5)),
        ("patch_size", json!(0)),
        ("patch_size", json!(100)),
        ("image_size", json!([56, 42])),
        ("image_size", json!(70)),
        ("image_size", json!(u32::MAX)),
        ("hidden_act", json!("softplus")),
    ] {
        let mut vision = sound.clone();
        vision[field] = value.clone();
        assert_eq!(read(vision), None, "{field} {value}");
    }
}
