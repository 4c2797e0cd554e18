//! Published configs of models that see through CLIP, SigLIP or FastViT and a small projector, and such as no model
//! has.

use serde_json::{json, Value};

use super::family_tests::{llama, tower};
use super::{LlavaConfig, LlavaProjector, VisionConfig};
use crate::config::decoder::Mixer;
use crate::{Family, ModelConfig};

#[test]
fn llava_is_read_by_the_classes_of_its_parts() {
    // The repository of LLaVA 1.5 tells of its language part only what is not Llama's own.
    let text =
        json!({"model_type": "llama", "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "vocab_size": 32064});
    let vision = json!({"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096, "model_type": "clip_vision_model",
                        "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768});
    let config =
        json!({"model_type": "llava", "text_config": text, "vision_config": vision, "image_token_index": 32000});
    let config = ModelConfig::parse(&config.to_string()).unwrap();
    let (Some(VisionConfig::Llava(clip)), Family::Decoder(decoder)) = (&config.vision, &config.family) else {
        panic!("{config:?}")
    };
    assert_eq!(
        (decoder.hidden_size, decoder.layers.len(), decoder.vocab_size),
        (4096, 32, 32064)
    );
    assert_eq!(
        (clip.taps.as_slice(), clip.shape.layers, clip.side),
        (&[23][..], 23, 24)
    );
    assert!(clip.class_token && !clip.row_ends);
    // Seven billion, of which the tower has 0.3, without an output layer that no file was seen to have.
    assert!((6.8e9..7.2e9).contains(&(config.parameters() as f64)));

    let siglip = json!({"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 384, "intermediate_size": 4304,
                        "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14});
    let granite = json!({"model_type": "granite", "hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 64,
                         "num_attention_heads": 2, "vocab_size": 320, "embedding_multiplier": 12.0});
    let layers = json!({"vision_feature_layer": [-24, -20, -12, -1], "vision_feature_select_strategy": "full"});
    let found = tower("llava_next", granite, siglip.clone(), layers);
    let Some(VisionConfig::Llava(granite)) = &found else {
        panic!("{found:?}")
    };
    assert_eq!(
        (granite.taps.as_slice(), granite.multiplier),
        (&[4, 8, 16, 27][..], Some(12.0))
    );
    assert!(granite.row_ends && !granite.class_token);

    let command = tower(
        "cohere2_vision",
        llama("cohere2"),
        siglip,
        json!({"downsample_factor": 3}),
    );
    let Some(VisionConfig::Llava(command)) = &command else {
        panic!("{command:?}")
    };
    let gated = LlavaProjector::Gated {
        merge: 3,
        width: 36_864,
        norm: None,
    };
    assert!(command.projector == gated && command.post_norm);
    // Pixtral's repository calls itself LLaVA.
    let pixtral = json!({"model_type": "pixtral", "patch_size": 16, "hidden_act": "silu"});
    let found = tower("llava", llama("mistral"), pixtral, json!({"vision_feature_layer": -1}));
    assert!(matches!(found, Some(VisionConfig::Pixtral(_))), "{found:?}");
}

#[test]
fn llava_with_impossible_numbers_sees_nothing() {
    let sound = json!({"model_type": "llava", "vision_feature_layer": -2, "vision_feature_select_strategy": "default"});
    let clip = json!({"model_type": "clip_vision_model", "hidden_size": 96, "num_hidden_layers": 2, "intermediate_size": 80,
                      "num_attention_heads": 4, "patch_size": 14, "image_size": 56});
    assert!(tower("llava", llama("llama"), clip.clone(), sound.clone()).is_some());
    for (model_type, field, value) in [
        ("llava", "vision_feature_layer", json!(-4)),
        ("llava", "vision_feature_layer", json!(3)),
        ("llava", "vision_feature_layer", json!([])),
        ("llava", "vision_feature_layer", json!(vec![1; 17])),
        ("llava", "vision_feature_layer", json!(1.5)),
        ("llava", "vision_feature_select_strategy", json!("full")),
        ("llava", "projector_hidden_act", json!("mish")),
        ("llava_next", "use_image_newline_parameter", json!(false)),
        ("aya_vision", "vision_feature_select_strategy", json!("full")),
    ] {
        let mut more = sound.clone();
        more[field] = value.clone();
        more["model_type"] = json!(model_type);
        assert_eq!(
            tower(model_type, llama("llama"), clip.clone(), more),
            None,
            "{field} {value}"
        );
    }
    let siglip = json!({"model_type": "siglip_vision_model", "hidden_size": 96, "num_hidden_layers": 2, "intermediate_size": 80,
                        "num_attention_heads": 4, "patch_size": 14, "image_size": 56});
    for (field, value) in [
        ("downsample_factor", json!(3)),
        ("downsample_factor", json!(0)),
        ("alignment_intermediate_size", json!(0)),
        ("alignment_intermediate_size", json!(7)),
        ("alignment_intermediate_size", json!(u32::MAX)),
        ("vision_feature_layer", json!([-1, -2])),
    ] {
        let mut more = json!({"downsample_factor": 2});
        more[field] = value.clone();
        assert_eq!(
            tower("aya_vision", llama("cohere2"), siglip.clone(), more),
            None,
            "{field} {value}"
        );
    }
    let other = json!({"model_type": "eva_vision_model", "hidden_size": 96});
    assert_eq!(tower("llava", llama("llama"), other, json!({})), None);
}

#[test]
fn minicpm_v_merges_patches_twice_and_knows_one_position_of_a_token() {
    let text = json!({"model_type": "qwen3_5_text", "hidden_size": 64, "num_hidden_layers": 4, "intermediate_size": 64,
                      "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "vocab_size": 320, "linear_num_value_heads": 4,
                      "linear_num_key_heads": 2, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
                      "rope_parameters": {"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10000.0}});
    let vision = json!({"model_type": "minicpmv4_6_vision", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
                        "num_attention_heads": 16, "image_size": 980, "patch_size": 14});
    let config = json!({"model_type": "minicpmv4_6", "text_config": text, "vision_config": vision});
    let config = ModelConfig::parse(&config.to_string()).unwrap();
    let (Some(VisionConfig::MiniCpm(found)), Family::Decoder(decoder)) = (&config.vision, &config.family) else {
        panic!("{config:?}")
    };
    assert_eq!((found.side, found.before, found.shape.layers), (70, 7, 27));
    assert!(decoder.ropes.iter().all(|rope| rope.sections.is_none()));
    for (field, value) in [
        ("insert_layer_id", json!(27)),
        ("merger_times", json!(2)),
        ("merge_kernel_size", json!([2, 4])),
        ("drop_vision_last_layer", json!(true)),
        ("downsample_mode", json!("4x")),
    ] {
        let mut more = json!({});
        more[field] = value.clone();
        assert_eq!(
            tower("minicpmv4_6", text.clone(), vision.clone(), more),
            None,
            "{field} {value}"
        );
    }
}

#[test]
fn phi_4_reads_states_before_the_last_layer() {
    let mut text = llama("phi4-siglip");
    let vision = json!({"model_type": "siglip2_vision_model", "num_patches": 256});
    text.as_object_mut().unwrap().extend([
        ("vision_config".to_owned(), vision),
        (
            "mm_vision_tower".to_owned(),
            json!("google/siglip2-so400m-patch16-naflex"),
        ),
    ]);
    let read = |config: &Value| ModelConfig::parse(&config.to_string()).unwrap().vision;
    let Some(VisionConfig::Siglip(found)) = read(&text) else {
        panic!("{:?}", read(&text))
    };
    assert_eq!(
        (found.shape.layers, found.shape.hidden_size, found.side, found.bare),
        (26, 1152, 16, true)
    );
    for (field, value) in [
        ("mm_vision_tower", json!("google/siglip-so400m-patch14-384")),
        ("mm_projector_type", json!("linear")),
        ("mm_vision_select_layer", json!(-28)),
        ("mm_vision_select_layer", json!(0)),
    ] {
        let mut config = text.clone();
        config[field] = value.clone();
        assert_eq!(read(&config), None, "{field} {value}");
    }
}

/// Fields of a config with which a tower is read, each changed to one with which none is.
fn check_refusals(config: &Value, changes: &[(&str, Value)]) {
    let read = |config: &Value| ModelConfig::parse(&config.to_string()).unwrap().vision;
    assert!(read(config).is_some());
    for (pointer, value) in changes {
        let mut config = config.clone();
        let (object, field) = pointer.rsplit_once('/').unwrap();
        config.pointer_mut(object).unwrap()[field] = value.clone();
        assert_eq!(read(&config), None, "{pointer} {value}");
    }
}

fn llava_of(config: &Value) -> LlavaConfig {
    match ModelConfig::parse(&config.to_string()).unwrap().vision {
        Some(VisionConfig::Llava(tower)) => tower,
        other => panic!("{other:?}"),
    }
}

#[test]
fn paligemma_reads_prompts_as_a_whole() {
    // As paligemma2-3b-pt-224 has it, as far as it matters here.
    let text = json!({"model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216, "num_attention_heads": 8, "num_hidden_layers": 26,
                      "num_image_tokens": 256, "num_key_value_heads": 4, "query_pre_attn_scalar": 256, "sliding_window": 4096, "vocab_size": 257216});
    let vision = json!({"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_attention_heads": 16,
                        "num_hidden_layers": 27, "patch_size": 14, "projection_dim": 2304, "vision_use_head": false});
    let config = json!({"model_type": "paligemma", "text_config": text, "vision_config": vision, "image_token_index": 257152,
                        "projection_dim": 2304});
    let tower = llava_of(&config);
    assert_eq!(
        (tower.side, tower.taps.as_slice(), tower.shape.layers),
        (16, &[27][..], 27)
    );
    assert!(tower.whole_prompts && tower.post_norm && tower.projector == LlavaProjector::Projection);
    let read = ModelConfig::parse(&config.to_string()).unwrap();
    assert!(read.vision.as_ref().is_some_and(VisionConfig::reads_whole_prompts));
    let Family::Decoder(decoder) = &read.family else {
        panic!("{read:?}")
    };
    assert_eq!(decoder.logits_softcap, Some(30.0));
    assert!((2.8e9..3.2e9).contains(&(read.parameters() as f64)));
    let mut causal = config.clone();
    causal["text_config"]["use_bidirectional_attention"] = json!(false);
    assert!(!llava_of(&causal).whole_prompts);
    let mut other = config.clone();
    other["text_config"]["model_type"] = json!("llama");
    assert!(ModelConfig::parse(&other.to_string()).is_err());
    check_refusals(
        &config,
        &[
            ("/vision_config/image_size", json!(7)),
            ("/vision_config/model_type", json!("eva")),
            ("/vision_config/hidden_size", json!(u32::MAX)),
            ("/text_config/use_bidirectional_attention", json!("yes")),
        ],
    );
}

#[test]
fn bunny_tells_of_its_tower_by_a_name() {
    let mut config = llama("bunny-llama");
    config["mm_vision_tower"] = json!("google/siglip-so400m-patch14-384");
    let tower = llava_of(&config);
    assert_eq!(
        (tower.shape.hidden_size, tower.taps.as_slice(), tower.side),
        (1152, &[27][..], 27)
    );
    config["vision_config"] = json!({});
    check_refusals(
        &config,
        &[
            ("/mm_vision_tower", json!("openai/clip-vit-large-patch14-336")),
            ("/mm_projector_type", json!("linear")),
            ("/use_s2", json!(true)),
            ("/vision_config", json!([])),
            ("/vision_config/num_hidden_layers", json!(u32::MAX)),
            ("/vision_config/image_size", json!(0)),
        ],
    );
}

#[test]
fn janus_sees_and_deepseek_vl_does_not() {
    // As Janus-Pro-7B has it.
    let params = json!({"image_size": 384, "model_name": "siglip_large_patch16_384", "select_feature": "same", "select_layer": -1});
    let aligner = json!({"depth": 2, "input_dim": 1024, "n_embed": 4096, "projector_type": "mlp_gelu"});
    let config = json!({
        "model_type": "multi_modality",
        "language_config": {"max_position_embeddings": 16384, "model_type": "llama", "num_hidden_layers": 30, "vocab_size": 102400},
        "vision_config": {"cls": "CLIPVisionTower", "model_type": "vision", "params": params},
        "aligner_config": {"cls": "MlpProjector", "model_type": "aligner", "params": aligner},
        "gen_vision_config": {"cls": "VQ-16", "model_type": "gen_vision", "params": {"n_embed": 8}}});
    let tower = llava_of(&config);
    assert_eq!((tower.shape.layers, tower.side, tower.shape.eps), (24, 24, 1e-6));
    assert!(tower.post_norm && !tower.class_token);
    let parameters = ModelConfig::parse(&config.to_string()).unwrap().parameters() as f64;
    assert!((6.6e9..7.4e9).contains(&parameters), "{parameters}");
    check_refusals(
        &config,
        &[
            ("/gen_vision_config", Value::Null),
            ("/vision_config/cls", json!("HybridVisionTower")),
            ("/vision_config/params/model_name", json!("sam_b_downsample")),
            ("/vision_config/params/select_layer", json!(-2)),
            ("/vision_config/params/image_size", json!(u32::MAX)),
            ("/aligner_config/params/projector_type", json!("linear")),
            ("/aligner_config/params/depth", json!(3)),
        ],
    );
}

#[test]
fn deepseek_vl_2_is_read_with_both_kinds_of_attention() {
    // As the smallest model has it, but for what its class has too.
    let text = json!({"hidden_size": 1280, "intermediate_size": 6848, "moe_intermediate_size": 896, "num_hidden_layers": 12,
        "num_attention_heads": 10, "num_key_value_heads": 10, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
        "first_k_dense_replace": 1, "use_mla": false, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "vocab_size": 129280});
    let config = json!({
        "model_type": "deepseek_vl_v2", "language_config": text, "tile_tag": "2D", "global_view_pos": "head",
        "vision_config": {"layers": 27, "mlp_ratio": 3.7362, "model_name": "siglip_so400m_patch14_384", "patch_size": 14, "width": 1152},
        "projector_config": {"n_embed": 1280, "projector_type": "downsample_mlp_gelu"}});
    let tower = llava_of(&config);
    assert_eq!(
        (tower.shape.layers, tower.side, tower.shape.intermediate_size),
        (27, 27, 4304)
    );
    let unfolded = LlavaProjector::Unfolded { merge: 2, width: 1280 };
    assert!(tower.post_norm && tower.row_ends && tower.projector == unfolded);
    // 3.4 billion, of which 0.4 are the tower's.
    let parameters = ModelConfig::parse(&config.to_string()).unwrap().parameters() as f64;
    assert!((3.2e9..3.6e9).contains(&parameters), "{parameters}");
    let mut latent = config.clone();
    for (field, value) in [
        ("use_mla", json!(true)),
        ("qk_nope_head_dim", json!(128)),
        ("qk_rope_head_dim", json!(64)),
        ("v_head_dim", json!(128)),
        ("kv_lora_rank", json!(512)),
    ] {
        latent["language_config"][field] = value;
    }
    let Family::Decoder(decoder) = ModelConfig::parse(&latent.to_string()).unwrap().family else {
        panic!("another family")
    };
    assert!(matches!(decoder.layers[0].mixer, Mixer::Mla(_)));
    check_refusals(
        &config,
        &[
            ("/tile_tag", json!("1D")),
            ("/global_view_pos", json!("tail")),
            ("/vision_config/model_name", json!("sam_b")),
            ("/vision_config/width", json!(u32::MAX)),
            ("/vision_config/layers", json!(u32::MAX)),
            ("/projector_config/projector_type", json!("linear")),
            ("/projector_config/n_embed", json!(u32::MAX)),
            ("/projector_config/depth", json!(3)),
            ("/projector_config/downsample_ratio", json!(0)),
        ],
    );
}

#[test]
fn deepseek_ocr_is_told_by_the_name_of_its_tower() {
    // As its repository has it, under the type of DeepSeek-VL2.
    let text = json!({"hidden_size": 1280, "intermediate_size": 6848, "moe_intermediate_size": 896, "num_hidden_layers": 12,
        "num_attention_heads": 10, "num_key_value_heads": 10, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
        "first_k_dense_replace": 1, "use_mla": false, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "vocab_size": 129280});
    let clip = json!({"heads": 16, "image_size": 224, "layers": 24, "patch_size": 14, "width": 1024});
    let sam = json!({"downsample_channels": [512, 1024], "global_attn_indexes": [2, 5, 8, 11], "heads": 12, "layers": 12, "width": 768});
    let config = json!({
        "model_type": "deepseek_vl_v2", "language_config": text, "tile_tag": "2D", "global_view_pos": "head",
        "vision_config": {"model_name": "deeplip_b_l", "model_type": "vision", "width": {"clip-l-14-224": clip, "sam_vit_b": sam}},
        "projector_config": {"input_dim": 2048, "n_embed": 1280, "projector_type": "linear"}});
    let read = |config: &Value| ModelConfig::parse(&config.to_string()).unwrap();
    let Some(VisionConfig::DeepEncoder(tower)) = read(&config).vision else {
        panic!("another tower")
    };
    assert_eq!(
        (tower.sam.side, tower.sam.whole, tower.clip_side),
        (64, vec![2, 5, 8, 11], 16)
    );
    assert_eq!((tower.clip.eps, tower.clip.intermediate_size), (1e-5, 4096));
    // 3.2 billion, of which 0.4 are the tower's.
    let parameters = read(&config).parameters() as f64;
    assert!((3.0e9..3.4e9).contains(&parameters), "{parameters}");
    let mut bare = config.clone();
    bare["model_type"] = json!("deepseekocr");
    bare["vision_config"] = json!({});
    assert!(matches!(read(&bare).vision, Some(VisionConfig::DeepEncoder(_))));
    check_refusals(
        &config,
        &[
            ("/tile_tag", json!("1D")),
            ("/projector_config/projector_type", json!("mlp_gelu")),
            ("/vision_config/width/sam_vit_b/heads", json!(0)),
            ("/vision_config/width/sam_vit_b/width", json!(u32::MAX)),
            ("/vision_config/width/sam_vit_b/layers", json!(u32::MAX)),
            ("/vision_config/width/sam_vit_b/downsample_channels", json!([])),
            ("/vision_config/width/sam_vit_b/downsample_channels", json!([512, 512])),
            ("/vision_config/width/sam_vit_b/window_size", json!(0)),
            ("/vision_config/width/sam_vit_b/image_size", json!(u32::MAX)),
            ("/vision_config/width/clip-l-14-224/width", json!(u32::MAX)),
            ("/vision_config/width/clip-l-14-224/image_size", json!(0)),
        ],
    );
}

#[test]
fn idefics_2_looks_at_patches_by_64_rows() {
    // The language part tells only what is not as in the class of Mistral.
    let text =
        json!({"model_type": "mistral", "max_position_embeddings": 32768, "vocab_size": 32003, "rms_norm_eps": 1e-5});
    let vision = json!({"model_type": "idefics2", "hidden_size": 1152, "image_size": 980, "intermediate_size": 4304, "num_attention_heads": 16,
                        "num_hidden_layers": 27, "patch_size": 14});
    let perceiver = json!({"model_type": "idefics2"});
    let config =
        json!({"model_type": "idefics2", "text_config": text, "vision_config": vision, "perceiver_config": perceiver});
    let read = ModelConfig::parse(&config.to_string()).unwrap();
    let Some(VisionConfig::Idefics2(tower)) = read.vision else {
        panic!("{:?}", read.vision)
    };
    assert_eq!((tower.side, tower.latents, tower.depth, tower.heads), (70, 64, 3, 16));
    assert_eq!(
        (tower.kv_heads, tower.head_dim, tower.width, tower.eps),
        (4, 96, 14_336, 1e-6)
    );
    // Eight billion.
    let parameters = read.parameters() as f64;
    assert!((7.8e9..8.8e9).contains(&parameters), "{parameters}");
    check_refusals(
        &config,
        &[
            ("/perceiver_config", Value::Null),
            ("/perceiver_config/hidden_act", json!("gelu")),
            ("/perceiver_config/resampler_n_heads", json!(0)),
            ("/perceiver_config/num_key_value_heads", json!(3)),
            ("/perceiver_config/resampler_head_dim", json!(u32::MAX)),
            ("/perceiver_config/resampler_n_latents", json!(u32::MAX)),
            ("/perceiver_config/resampler_depth", json!(0)),
            ("/vision_config/image_size", json!(0)),
        ],
    );
}

#[test]
fn phi_3_vision_has_the_one_tower_of_its_name() {
    let mut config = llama("phi3_v");
    config["img_processor"] = json!({"name": "clip_vision_model", "image_dim_out": 1024, "num_img_tokens": 144});
    config["embd_layer"] = json!({"hd_transform_order": "sub_glb", "projection_cls": "mlp", "use_hd_transform": true, "with_learnable_separator": true});
    let tower = llava_of(&config);
    assert_eq!(
        (tower.taps.as_slice(), tower.side, tower.projector),
        (&[23][..], 24, LlavaProjector::Marked { merge: 2 })
    );
    check_refusals(
        &config,
        &[
            ("/img_processor/name", json!("siglip")),
            ("/img_processor/layer_idx", json!(-1)),
            ("/embd_layer/hd_transform_order", json!("glb_sub")),
            ("/embd_layer/projection_cls", json!("linear")),
            ("/embd_layer/use_hd_transform", json!(false)),
            ("/vision_config", json!({"image_size": 350})),
        ],
    );
}

#[test]
fn fastvlm_tells_of_its_tower_by_a_name() {
    let mut config = llama("llava_qwen2");
    config["mm_vision_tower"] = json!("mobileclip_l_1024");
    let read = |config: &Value| ModelConfig::parse(&config.to_string()).unwrap().vision;
    assert!(matches!(read(&config), Some(VisionConfig::FastVit(tower)) if tower.hidden_size == 3072));
    for (field, value) in [
        ("mm_vision_tower", json!("openai/clip-vit-large-patch14-336")),
        ("mm_projector_type", json!("linear")),
        ("mm_hidden_size", json!(u32::MAX)),
    ] {
        let mut config = config.clone();
        config[field] = value.clone();
        assert_eq!(read(&config), None, "{field} {value}");
    }
}
