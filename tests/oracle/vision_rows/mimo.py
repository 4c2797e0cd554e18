"""MiMo V2: patches as Qwen2.5-VL's, heads that share keys, and windows by rows or by columns."""
from vision_rows.qwen import CLIP, IDS, TOKENS, given, images_of, processor
from vision_rows.row import VOCABULARY, Row

PATCH = 16


def mimo_v2():
    vision = {"model_type": "mimovl", "depth": 5, "hidden_size": 96, "intermediate_size": 80, "out_hidden_size": 32, "num_heads": 6,
              "num_key_value_heads": 3, "qk_channels": 8, "in_channels": 3, "patch_size": PATCH, "spatial_merge_size": 2,
              "temporal_patch_size": 2, "rms_norm_eps": 1e-5, "use_sink": True, "visual_token_window_size": 5,
              "fullatt_block_indexes": [0, 4], "vit_window_attn_types": [-1, 0, 1, 1, -1]}
    # The part that hears is left out.
    audio = {"out_hidden_size": 32, "audio_channels": 2, "input_local_attn_heads": 2, "input_local_dim": 8, "input_local_head_dim": 4,
             "input_local_intermediate_size": 8, "input_local_layers": 1, "speech_vocab_size": "12", "speech_zeroemb_idx": "11"}
    text = {"hidden_size": 32, "num_hidden_layers": 3, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 16, "v_head_dim": 8, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 1, "swa_head_dim": 16,
            "swa_v_head_dim": 8, "hybrid_layer_pattern": [0, 1, 0], "sliding_window_size": 24, "add_swa_attention_sink_bias": True,
            "add_full_attention_sink_bias": False, "attention_value_scale": 0.707, "layernorm_epsilon": 1e-6, "partial_rotary_factor": 0.5,
            "rope_theta": 10000.0, "swa_rope_theta": 1000.0, "moe_layer_freq": [0, 1, 1], "moe_intermediate_size": 64,
            "n_routed_experts": 4, "n_shared_experts": None, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
            "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": True, "vocab_size": VOCABULARY,
            "max_position_embeddings": 4096, "tie_word_embeddings": False}
    return {"model_type": "mimo_v2", "vision_config": vision, "audio_config": audio, **text, **IDS}


def draw(name, shape, source):
    return source.normal(0, 1, shape) if name.endswith("sinks") else None


def row(name, **more):
    return Row(name, mimo_v2(), images_of(PATCH), given, tokens=TOKENS, processor=processor(PATCH, *CLIP), draw=draw, **more)


ROWS = [row("mimo_v2"), row("mimo_v2-4bit", packed="language", bits=4)]
