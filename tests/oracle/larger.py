"""Tiny models in sizes whose memory says something of real ones: all widths times four, more layers, and a longer context."""

FACTOR = 4
TIMES = 3
CONTEXT = 2048
WIDTHS = {
    "a_low_rank_dim", "block_dim", "block_ff_dim", "block_multiple_of", "d_model", "decay_low_rank_dim", "dense_intermediate_size",
    "dim_model_base", "expert_ffn_hidden_size", "ff_intermediate_size", "ffn_dim_divisor", "ffn_hidden_size", "gate_low_rank_dim",
    "global_head_dim", "head_dim", "hidden_dim", "hidden_size", "hidden_size_per_head", "hidden_size_per_layer_input", "index_head_dim",
    "intermediate_size", "intermediate_size_mlp", "kv_channels", "kv_lora_rank", "linear_key_head_dim", "linear_value_head_dim",
    "lru_width", "mamba_d_head", "mamba_d_ssm", "mamba_dt_rank", "mamba_head_dim", "mlp_hidden_size", "model_dim",
    "moe_intermediate_size", "moe_latent_size", "moe_shared_expert_intermediate_size", "mrope_section", "n_embd", "n_inner",
    "o_lora_rank", "prefix_dense_intermediate_size", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "rotary_dim",
    "share_expert_dim", "shared_expert_intermediate_size", "shared_intermediate_size", "sparse_index_dim",
    "swa_head_dim", "swa_v_head_dim", "time_step_rank", "v_head_dim", "v_low_rank_dim",
}
WINDOWS = {"attention_chunk_size", "attention_window_size", "loop_window_size", "sliding_window", "sliding_window_size", "window_size"}
CONTEXTS = {
    "max_context_length", "max_position_embeddings", "max_sequence_length", "model_max_length", "n_ctx", "n_positions", "seq_length",
}
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers")
# Types whose layers are listed in several ways, and stay as many.
LISTED = {"jamba", "kimi_linear", "minimax_m3", "step3p5"}
# Lists of layers by their numbers, which the new ones are not in.
BY_NUMBER = {"full_attention_idx", "mlp_only_layers", "sliding_window_layers"}
# A number for each pair of a rotation.
PAIRS = {"long_factor", "short_factor"}


def is_by_layer(name, value, layers):
    """True for a list, or a word of letters, with one for each layer."""
    listed = isinstance(value, list) and name not in BY_NUMBER or isinstance(value, str) and name.endswith("pattern")
    return listed and layers > 1 and len(value) == layers


def larger(config, deeper=True):
    """The config of such a model."""
    made, deeper = {}, deeper and config.get("model_type") not in LISTED
    layers = next((config[name] for name in LAYERS if config.get(name)), 0)
    for name, value in config.items():
        if isinstance(value, dict):
            value = larger(value, deeper)
        elif name in LAYERS and deeper:
            value = TIMES * value
        elif is_by_layer(name, value, layers) and deeper:
            value = TIMES * value
        elif name in WIDTHS and isinstance(value, list):
            value = [FACTOR * one for one in value]
        elif name in WIDTHS and isinstance(value, int):
            value = FACTOR * value
        elif name in WINDOWS and isinstance(value, int):
            value = 8 * value
        elif name in CONTEXTS:
            value = max(value, CONTEXT)
        elif name in PAIRS and isinstance(value, list):
            value = [one for one in value for _ in range(FACTOR)]
        made[name] = value
    return made
