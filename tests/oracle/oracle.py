"""mlx-lm's model as the oracle wants it."""
import ctypes
from pathlib import Path

import mlx.core as mx
from mlx_lm.utils import dequantize_model, load_model


def load_in_f32(path):
    """The model in 32 bit floats: cast first, dequantized then. The other order rounds the weights to the scales' 16 bits."""
    model, _ = load_model(Path(path))
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
