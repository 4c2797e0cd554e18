"""As `shapes`, for models that see and whose language parts are families of their own."""
from expert_shapes import mimo_v2_flash


def mimo_v2(**values):
    return {**mimo_v2_flash(**values), "model_type": "mimo_v2", "architectures": ["MiMoV2ForCausalLM"]}
