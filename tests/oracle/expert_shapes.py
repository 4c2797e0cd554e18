"""As `shapes`, for the younger families, most of which have experts."""
from shapes import decoder


def ernie4_5_moe(**values):
    experts = {
        "head_dim": 32,
        "use_bias": False,
        "rope_theta": 500000.0,
        "moe_num_experts": 8,
        "moe_k": 3,
        "moe_intermediate_size": 64,
        "moe_num_shared_experts": 2,
        "moe_layer_start_index": 1,
        "moe_layer_interval": 1,
        "moe_use_aux_free": True,
    }
    return decoder("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", **{**experts, **values})
