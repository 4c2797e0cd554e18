"""The parts of a row of the vision suite."""
from dataclasses import dataclass, field

import numpy as np

# Language parts are 32 wide and towers 96, so that a weight taken the wrong way round does not fit; both can be packed
# in groups of 32.
VOCABULARY = 320
# Ids from IMAGE on are after all ordinary tokens. Each family uses those it knows.
IMAGE, VIDEO, START, END, AUDIO = 300, 301, 302, 303, 304
# Ids that a family may need besides.
MORE = range(308, VOCABULARY)


@dataclass
class View:
    """One pass through the vision encoder."""

    # As the app hands it over: [patches, numbers of a patch] or [3, height, width], 32 bit floats.
    pixels: np.ndarray
    width: int
    height: int
    # Rows and columns of patches, and of tokens in the prompt.
    patches: tuple
    tokens: tuple
    # Tokens that take features, if not one for each place of that grid.
    features: int = None


@dataclass
class Image:
    """An image, and the ids that stand for it in the prompt."""

    views: list
    # Marks included; the ids in `soft` take the features, in order.
    run: list
    soft: int = IMAGE
    # Rows and columns if the views are tiles, and whether a view of the whole image comes last.
    tiles: tuple = None
    whole: bool = False
    # Rows and columns of the grid of all tiles that the image covers, and what they are brought to, if it is shown as one.
    joined: list = None
    # Width and height of the image in its tiles, if they are not those of the first view.
    resized: tuple = None


@dataclass
class Row:
    """A tiny model, and its way through mlx-vlm."""

    name: str
    # config.json, as a dict.
    config: dict
    # (numbers, index) to the image of this index: all have different shapes where the family allows it.
    image: object
    # (images, ids) to the arguments of mlx-vlm's model beside the ids.
    given: object
    # The names of ids in the small tokenizer: the placeholder and its marks.
    tokens: dict = field(default_factory=dict)
    # preprocessor_config.json, if there is one.
    processor: dict = None
    # The quantized part of the weights: none, the "language" part, or "all" that a group divides; and its bits.
    packed: str = ""
    bits: int = 8
    # Called with the weights by name, of an mlx-community conversion, to give the files other names and layouts.
    layout: object = None
    # Images that a prompt may have.
    most: int = 3
    # Called before mlx-vlm builds the model.
    prepare: object = None
    # How weights of special names are drawn: (name, shape, source) to an array, or None.
    draw: object = None
    # Config of the model that mlx-vlm is given, if it does not understand the one that is written.
    asked: dict = None
    # True if no sound peer exists, and the reference was written from the model's own description.
    unverified: bool = False
    # True if there is text between images.
    text_between: bool = True


class Numbers:
    """A source of token ids and pixels."""

    def __init__(self, seed):
        self.source = np.random.default_rng(seed)

    def text(self, length):
        return self.source.integers(5, 250, length).tolist()

    def pixels(self, *shape):
        return self.source.normal(0, 1, shape).astype(np.float32)


def prompt(numbers, images, last, text_between=True):
    """Text, each image's run with a little text after it unless there is none between them, then `last` tokens of text."""
    ids = numbers.text(6)
    for image in images:
        ids += image.run + numbers.text(5 if text_between else 0)
    return ids + numbers.text(last)


def described(images, ids):
    """The place of each image in the ids, for the engine's test."""
    found, at = [], 0
    for image in images:
        length = len(image.run)
        at = next(start for start in range(at, len(ids)) if ids[start : start + length] == image.run)
        takes = [at + index for index, token in enumerate(image.run) if token == image.soft]
        views = [{"width": v.width, "height": v.height, "patches": v.patches, "tokens": v.tokens, "features": v.features} for v in image.views]
        found.append({"run": [at, at + length], "features": takes, "views": views, "tiles": image.tiles, "whole": image.whole,
                      "joined": image.joined, "resized": image.resized})
        at += length
    return found
