"""One variant of the parity suite: a model folder, and how it is written."""
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Quantization:
    """The arguments of mlx-lm's `quantize_model`; `mixed` gives some layers other bits and leaves some in full
    precision."""

    bits: int = 4
    group: int = 64
    mode: str = "affine"
    mixed: bool = False


@dataclass(frozen=True)
class Variant:
    """One model folder. `layout` turns mlx-lm's names into those of the real repository."""

    name: str
    config: dict
    dtype: str = "float32"
    quantization: Quantization | None = None
    layout: tuple = ()
    shards: int = 1
    index: bool = True
    # Added to the weights next to the text model, which has to skip them.
    towers: tuple = ()
    # The output layer is left out of the file, which ties it without a word in the config.
    headless: bool = False
    # Called before mlx-lm computes, where it deviates from what the models were trained for.
    repair: Callable | None = None
    # False if a step of one token differs from reading all at once by design.
    steps_alike: bool = True
