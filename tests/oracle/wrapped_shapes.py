"""As `shapes`, for models that see and whose language parts are families of their own."""
from dense_shapes import youtu_llm
from expert_shapes import mimo_v2_flash, step3p5


def mimo_v2(**values):
    return {**mimo_v2_flash(**values), "model_type": "mimo_v2", "architectures": ["MiMoV2ForCausalLM"]}


def step3p7(**values):
    """Step 3.5 in a wrapper."""
    text = step3p5(**values)
    del text["architectures"]
    vision = {"model_type": "perception_encoder", "width": 32, "layers": 1, "heads": 2, "image_size": 28}
    wrapper = {"architectures": ["Step3p7ForConditionalGeneration"], "model_type": "step3p7", "text_config": text}
    return {**wrapper, "vision_config": vision}


def youtu_vl(**values):
    """Youtu-LLM beside a tower, in one file."""
    config = youtu_llm(**{"rope_theta": 500000.0, **values})
    return {**config, "model_type": "youtu_vl", "architectures": ["YoutuVLForConditionalGeneration"]}
