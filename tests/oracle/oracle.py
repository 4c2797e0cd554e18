"""mlx-lm's model as the oracle wants it, or mlx-vlm's if mlx-lm has none."""
import ctypes
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from types import SimpleNamespace

import mlx.core as mx
from mlx_lm.utils import _get_classes, dequantize_model
from mlx_lm.utils import load_model as load_folder


def is_of_mlx_vlm(config):
    """True if mlx-lm has no such model, which mlx-vlm is asked for then."""
    try:
        _get_classes(config)
    except ValueError:
        return True
    return False


@cache
def language_part(model_type):
    """mlx-vlm's model for text, which answers with logits as mlx-lm's do."""
    package = f"mlx_vlm.models.{model_type}"
    # Those for text alone may be made of another model's parts.
    has_part = find_spec(f"{package}.language")
    part = import_module(f"{package}.language").LanguageModel if has_part else import_module(package).Model

    class Model(part):
        def __init__(self, config):
            self.wrapped = config if hasattr(config, "text_config") else None
            takes = len(signature(part.__init__).parameters) - 1
            super().__init__(*((config.text_config, config)[:takes] if self.wrapped else (config,)))

        def sanitize(self, weights):
            if hasattr(super(), "sanitize") or not self.wrapped:
                return super().sanitize(weights) if hasattr(super(), "sanitize") else weights
            # The model with a tower turns the names of its files into its own.
            weights = import_module(package).Model.sanitize(SimpleNamespace(config=self.wrapped), weights)
            return {name.removeprefix("language_model."): value for name, value in weights.items()}

        @property
        def quant_predicate(self):
            asked = getattr(super(), "quant_predicate", None)

            def answer(path, module):
                form = asked(path, module)
                # One that only mlx-vlm's quantizer has a use for.
                return True if isinstance(form, dict) and "bits" not in form else form

            return asked and answer

        def __call__(self, inputs, cache=None):
            return super().__call__(inputs, cache=cache).logits

    return Model


def model_classes(config):
    """The classes of a model and of its arguments."""
    if not is_of_mlx_vlm(config):
        return _get_classes(config)
    model_type = config["model_type"]
    return language_part(model_type), import_module(f"mlx_vlm.models.{model_type}").ModelConfig


def load_model(path):
    return load_folder(Path(path), get_model_classes=model_classes)


def load_in_f32(path):
    """The model in 32 bit floats: cast first, dequantized then. The other order rounds the weights to the scales' 16 bits."""
    model, _ = load_model(path)
    model.set_dtype(mx.float32)
    model = dequantize_model(model)
    # Formats with bytes as scales come dequantized in 16 bits, which hold their numbers exactly.
    model.set_dtype(mx.float32)
    model.eval()
    mx.eval(model.parameters())
    return model


def blas():
    """The library that multiplies matrices on a CPU: OpenBLAS where it was preloaded, else what the wheel brings."""
    process = ctypes.CDLL(None)
    if not hasattr(process, "openblas_get_config"):
        return "the BLAS of MLX's wheel"
    process.openblas_get_config.restype = ctypes.c_char_p
    version = " ".join(process.openblas_get_config().decode().split()[:2])
    return f"{version}, {process.openblas_get_num_threads()} threads"
