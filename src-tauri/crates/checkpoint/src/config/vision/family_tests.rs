//! Published configs, as far as they tell of towers, and such as no tower has.

use serde_json::{json, Value};

use super::{SiglipProjector, VisionConfig};
use crate::ModelConfig;

/// A language part that any wrapper may have.
fn llama(model_type: &str) -> Value {
    json!({"model_type": model_type, "hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 64, "num_attention_heads": 2,
           "num_key_value_heads": 1, "head_dim": 32, "vocab_size": 320, "rms_norm_eps": 1e-5, "sliding_window": null})
}

fn tower(model_type: &str, text: Value, vision: Value, more: Value) -> Option<VisionConfig> {
    let mut config = json!({"model_type": model_type, "text_config": text, "vision_config": vision});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ModelConfig::parse(&config.to_string()).unwrap().vision
}

#[test]
fn gemma_3_pools_64_rows_of_patches_to_16_tokens() {
    let vision = json!({"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "model_type": "siglip_vision_model",
                        "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": false});
    let found = tower("gemma3", llama("gemma3_text"), vision, json!({"mm_tokens_per_image": 256}));
    let Some(VisionConfig::Siglip(siglip)) = &found else {
        panic!("{found:?}")
    };
    assert_eq!((siglip.side, siglip.projector), (64, SiglipProjector::Pooled { tokens: 16 }));
    assert_eq!((siglip.shape.layers, siglip.shape.head_dim(), siglip.rows), (27, 72, false));
    assert!(found.as_ref().unwrap().looks_both_ways());
}

#[test]
fn a_smolvlm_that_leaves_out_what_its_class_has_is_read_so() {
    let vision =
        json!({"hidden_size": 768, "image_size": 512, "model_type": "smolvlm_vision", "num_attention_heads": 12, "patch_size": 16});
    let found = tower("smolvlm", llama("llama"), vision, json!({"scale_factor": 4}));
    let Some(VisionConfig::Siglip(siglip)) = &found else {
        panic!("{found:?}")
    };
    assert_eq!((siglip.side, siglip.projector), (32, SiglipProjector::Joined { merge: 4 }));
    assert_eq!((siglip.shape.layers, siglip.shape.intermediate_size), (12, 3072));
    assert!(!found.as_ref().unwrap().looks_both_ways());
}

#[test]
fn a_pixtral_that_tells_next_to_nothing_is_read_by_its_class() {
    let vision = json!({"head_dim": 64, "hidden_act": "silu", "image_size": 1024, "model_type": "pixtral", "patch_size": 16,
                        "rope_theta": 10000.0});
    let plain = tower("pixtral", llama("mistral"), vision.clone(), json!({"vision_feature_layer": -1}));
    let Some(VisionConfig::Pixtral(pixtral)) = plain else {
        panic!("{plain:?}")
    };
    assert_eq!(
        (pixtral.shape.hidden_size, pixtral.shape.layers, pixtral.shape.head_dim()),
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
    assert_eq!((mistral3.shape.layers, mistral3.merger.map(|merger| merger.merge)), (23, Some(2)));
    // Features of several layers side by side are none of these models'.
    assert_eq!(
        tower("pixtral", llama("mistral"), vision, json!({"vision_feature_layer": [-1, -2]})),
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
fn a_glm_layer_is_as_wide_inside_as_the_language_part() {
    let vision = json!({"depth": 24, "hidden_size": 1536, "intermediate_size": 13696, "num_heads": 12, "out_hidden_size": 4096,
                        "image_size": 336, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "rms_norm_eps": 1e-5});
    let found = tower("glm4v", llama("glm4v_text"), vision, json!({}));
    let Some(VisionConfig::Glm(glm)) = found else { panic!("{found:?}") };
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
    text.as_object_mut().unwrap().extend(experts.as_object().unwrap().clone());
    let config = json!({"model_type": "qwen3_omni_moe", "thinker_config": {"text_config": text, "vision_config": vision}});
    let config = ModelConfig::parse(&config.to_string()).unwrap();
    let Some(VisionConfig::Qwen(qwen)) = config.vision else {
        panic!("no tower")
    };
    assert_eq!((config.model_type.as_str(), qwen.deepstack), ("qwen3_omni_moe", vec![8, 16, 24]));
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
