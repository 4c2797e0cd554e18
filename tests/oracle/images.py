"""The results of transformers' image processors, for the crate `media` and the image processors of `checkpoint`.

    python images.py --out DIR

DIR/images/NAME holds image files of all kinds and DIR/images/NAME.rgb what Pillow decodes of each (over white, upright, 8 bits, row by row).
DIR/processors/NAME holds a processor's file and a `config.json` beside it. DIR/expected.json says for every processor and image the grids, tokens and the
SHA-256 of each view's numbers, `error` where the processor refuses the image. DIR/resize.json has the SHA-256 of Pillow's resizes.
Written for Pillow 12.3.0 and transformers 5.23; the processors computed with Pillow are asked, never those of torchvision. LFM2-VL, Kimi-VL, Falcon-OCR, Bunny,
Janus, DeepSeek-VL2 and -OCR and Phi 3 Vision have none of that kind in transformers: mlx-vlm's are asked, and their pixels go through the same two lines of numpy.
"""
import argparse
import hashlib
import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from transformers.image_transforms import normalize, rescale
from transformers.image_utils import SizeDict

from image_squares import squares

warnings.filterwarnings("ignore")


def digest(array, kind="<f4"):
    return hashlib.sha256(np.ascontiguousarray(array, dtype=kind).tobytes()).hexdigest()


# ---------------------------------------------------------------------------------------------------------------- images

def drawn(width, height, seed=0):
    """Gradients, noise, lines and blocks: something of a photo and something of a screen."""
    random = np.random.default_rng(seed + 31 * width + height)
    across, down = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    pixels = np.stack([across, down, (across + down) / 2], axis=-1) + random.normal(0, 12, (height, width, 3))
    image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(12):
        corner = (int(random.integers(0, width)), int(random.integers(0, height)))
        colour = tuple(int(value) for value in random.integers(0, 256, 3))
        draw.rectangle([corner, (corner[0] + width // 9, corner[1] + height // 7)], fill=colour)
        draw.line([corner, (int(random.integers(0, width)), int(random.integers(0, height)))], fill=colour[::-1])
    return image


def turned(image, orientation):
    exif = Image.Exif()
    exif[0x112] = orientation
    exif[0x10f] = "A camera"
    exif.get_ifd(0x8825)[1] = "N"
    return {"exif": exif}


def images(out):
    """Writes them and returns their names."""
    sizes = [(1, 1), (1, 3000), (3000, 1), (2, 3), (17, 23), (28, 28), (42, 70), (64, 64), (97, 101), (199, 1), (224, 224), (333, 77), (77, 333),
             (448, 448), (500, 375), (640, 480), (480, 640), (899, 601), (1024, 256), (256, 1024), (1280, 720), (1920, 1080), (1201, 1601)]
    for width, height in sizes:
        drawn(width, height).save(out / f"{width}x{height}.png")
    base = drawn(120, 90)
    alpha = Image.fromarray(np.tile(np.linspace(0, 255, 120).astype(np.uint8), (90, 1)))
    transparent = base.copy()
    transparent.putalpha(alpha)
    transparent.save(out / "transparent.png")
    transparent.save(out / "transparent.webp", lossless=True)
    base.convert("LA").save(out / "grey_alpha.png")
    palette = base.quantize(17)
    palette.save(out / "palette.png")
    palette.save(out / "palette_transparent.png", transparency=3)
    base.convert("1").save(out / "one_bit.png")
    base.convert("L").save(out / "grey.png")
    base.convert("CMYK").save(out / "cmyk.tiff")
    base.convert("CMYK").save(out / "cmyk.jpg", quality=95)
    base.save(out / "photo.jpg", quality=92, subsampling=0)
    base.save(out / "subsampled.jpg", quality=80)
    base.save(out / "progressive.jpg", quality=90, progressive=True)
    base.save(out / "lossy.webp", quality=90)
    base.save(out / "plain.bmp")
    base.save(out / "lzw.tiff", compression="tiff_lzw")
    deep = np.asarray(drawn(61, 47)).astype(np.uint16) * 257
    write_deep(out / "deep.png", deep)
    base.save(out / "animated.gif", save_all=True, append_images=[drawn(120, 90, 1), drawn(120, 90, 2)], duration=50)
    base.save(out / "animated.webp", save_all=True, append_images=[drawn(120, 90, 1)], lossless=True)
    base.save(out / "animated.png", save_all=True, append_images=[drawn(120, 90, 1)], default_image=False)
    for orientation in range(1, 9):
        base.save(out / f"turned{orientation}.jpg", quality=95, **turned(base, orientation))
    base.save(out / "turned6.png", **turned(base, 6))
    base.save(out / "turned8.webp", lossless=True, **turned(base, 8))
    return sorted(path.name for path in out.iterdir())


def write_deep(path, pixels):
    """A PNG of 16 bits a color, which Pillow reads and cannot write."""
    import struct
    import zlib
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def decoded(path):
    """As transformers loads it: upright, over white."""
    from PIL import ImageOps
    image = ImageOps.exif_transpose(Image.open(path))
    if image.mode in ("RGBA", "LA") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255))
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")


# -------------------------------------------------------------------------------------------------------------- processors

def processors():
    """Name, class, the processor's file, `config.json`, and how its answer is taken apart."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    from transformers.models.ernie4_5_vl_moe.image_processing_pil_ernie4_5_vl_moe import Ernie4_5_VLMoeImageProcessorPil
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
    from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil
    from transformers.models.glm46v.image_processing_pil_glm46v import Glm46VImageProcessorPil
    from transformers.models.glm4v.image_processing_pil_glm4v import Glm4vImageProcessorPil
    from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil
    from transformers.models.hunyuan_vl.image_processing_pil_hunyuan_vl import HunYuanVLImageProcessorPil
    from transformers.models.idefics2.image_processing_pil_idefics2 import Idefics2ImageProcessorPil
    from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
    from transformers.models.llava_next.image_processing_pil_llava_next import LlavaNextImageProcessorPil
    from transformers.models.llava_onevision.image_processing_pil_llava_onevision import LlavaOnevisionImageProcessorPil
    from transformers.models.minicpmv4_6.image_processing_pil_minicpmv4_6 import MiniCPMV4_6ImageProcessorPil
    from transformers.models.mllama.image_processing_pil_mllama import MllamaImageProcessorPil
    from transformers.models.paddleocr_vl.image_processing_pil_paddleocr_vl import PaddleOCRVLImageProcessorPil
    from transformers.models.pixtral.image_processing_pil_pixtral import PixtralImageProcessorPil
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
    from transformers.models.siglip2.image_processing_pil_siglip2 import Siglip2ImageProcessorPil, get_image_size_for_max_num_patches
    from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

    class CLIPImageProcessor(CLIPImageProcessorPil):
        """It brings all of an image to the size of which it takes the middle, however long that is; the app refuses such images."""

        def __call__(self, image, **more):
            if 336**2 * max(image.size) // min(image.size) > 1 << 25:
                raise ValueError("too long")
            return super().__call__(image, **more)

    class Siglip2ImageProcessorNoUpscale(Siglip2ImageProcessorPil):
        """As the repository of Phi 4 Reasoning Vision describes it: an image keeps its number of patches, if that is within limits."""

        min_num_patches = 256

        def resize(self, image, size, resample=None, **more):
            own = (image.shape[-1] // 16) * (image.shape[-2] // 16)
            height, width = get_image_size_for_max_num_patches(*image.shape[-2:], 16, min(max(own, self.min_num_patches), self.max_num_patches))
            return super().resize(image, SizeDict(height=height, width=width), resample, **more)

    half = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    clip = {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
    imagenet = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    edges = lambda least, most: {"size": {"shortest_edge": least, "longest_edge": most}}
    square = lambda side: {"size": {"height": side, "width": side}}
    cropped = lambda side: {"size": {"shortest_edge": side}, "crop_size": {"height": side, "width": side}}
    pinpoints = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008], [1344, 672]]
    qwen3 = {"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, "min_pixels": None, "max_pixels": None, **half, **edges(65536, 16777216)}
    return [
        ("qwen2_vl", Qwen2VLImageProcessorPil, {"min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14, "temporal_patch_size": 2,
                                               "merge_size": 2, **clip}, {"model_type": "qwen2_vl"}, grid),
        ("dots_ocr", Qwen2VLImageProcessorPil, {"min_pixels": 3136, "max_pixels": 11289600, "patch_size": 14, "temporal_patch_size": 1,
                                               "merge_size": 2, **clip}, {"model_type": "dots_ocr"}, grid),
        ("qwen2_5_vl_nulls", Qwen2VLImageProcessorPil, {"min_pixels": None, "max_pixels": None, "size": None}, {"model_type": "qwen2_5_vl"}, grid),
        ("qwen3_vl", Qwen2VLImageProcessorPil, qwen3, {"model_type": "qwen3_vl"}, grid),
        ("glm4v", Glm4vImageProcessorPil, edges(12544, 9633792), {"model_type": "glm4v"}, grid),
        ("glm_ocr", Glm46VImageProcessorPil, edges(12544, 9633792), {"model_type": "glm_ocr"}, grid),
        ("paddleocr_vl", PaddleOCRVLImageProcessorPil, {"min_pixels": 147384, "max_pixels": 2822400, **half}, {"model_type": "paddleocr_vl"}, grid),
        ("ernie4_5_vl_moe", Ernie4_5_VLMoeImageProcessorPil, {"patch_size": 14, "merge_size": 2, **clip}, {"model_type": "ernie4_5_vl_moe"}, grid),
        ("hunyuan_vl", HunYuanVLImageProcessorPil, {"min_pixels": 262144, "max_pixels": 4194304, "resample": 1}, {"model_type": "hunyuan_vl"}, hunyuan),
        ("gemma3", Gemma3ImageProcessorPil, {**square(896), **half}, {"model_type": "gemma3", "mm_tokens_per_image": 256,
                                                                     "vision_config": {"patch_size": 14}}, fixed),
        ("gemma3n", SiglipImageProcessorPil, {**square(768), "do_normalize": False, "resample": 2}, {"model_type": "gemma3n"}, fixed),
        ("gemma4", Gemma4ImageProcessorPil, {}, {"model_type": "gemma4"}, gemma4),
        ("pixtral", PixtralImageProcessorPil, {}, {"model_type": "llava", "vision_config": {"model_type": "pixtral", "patch_size": 16}}, longest(16)),
        ("mistral3", PixtralImageProcessorPil, {"patch_size": {"height": 28, "width": 28}, "size": {"longest_edge": 1540}},
         {"model_type": "mistral3", "spatial_merge_size": 2, "vision_config": {"patch_size": 14}}, longest(28)),
        ("idefics2", Idefics2ImageProcessorPil, {"do_image_splitting": True, **edges(378, 980)}, {"model_type": "idefics2"}, quarters),
        ("idefics2_whole", Idefics2ImageProcessorPil, edges(378, 980), {"model_type": "idefics2"}, quarters),
        ("idefics3", Idefics3ImageProcessorPil, {}, {"model_type": "idefics3", "scale_factor": 2, "vision_config": {"patch_size": 14}}, tiles(169)),
        ("smolvlm", SmolVLMImageProcessorPil, {"size": {"longest_edge": 2048}, "max_image_size": {"longest_edge": 512}},
         {"model_type": "smolvlm", "scale_factor": 4, "vision_config": {"patch_size": 16}}, tiles(64)),
        ("internvl", GotOcr2ImageProcessorPil, {**square(448), "crop_to_patches": True, "min_patches": 1, "max_patches": 12, **imagenet},
         {"model_type": "internvl", "downsample_ratio": 0.5, "vision_config": {"patch_size": [14, 14]}}, crops),
        ("llava", CLIPImageProcessor, cropped(336), {"model_type": "llava", "vision_config": {"patch_size": 14, "image_size": 336}}, square_of(576)),
        ("llava_siglip", SiglipImageProcessorPil, {**square(384), **half}, {"model_type": "llava", "vision_config": {"patch_size": 14, "image_size": 384}},
         square_of(729)),
        ("paligemma", SiglipImageProcessorPil, {**square(448), **half, "resample": 3}, {"model_type": "paligemma", "vision_config": {"patch_size": 14, "image_size": 448}},
         square_of(1024)),
        ("llava_next", LlavaNextImageProcessorPil, {**cropped(336), "image_grid_pinpoints": pinpoints, **clip},
         {"model_type": "llava_next", "vision_config": {"patch_size": 14, "image_size": 336}}, canvas_of("llava_next", 336, pinpoints)),
        ("llava_onevision", LlavaOnevisionImageProcessorPil, {}, {"model_type": "llava_onevision", "vision_config": {"patch_size": 14, "image_size": 384}},
         canvas_of("llava_onevision", 384, LlavaOnevisionImageProcessorPil.image_grid_pinpoints)),
        ("aya_vision", GotOcr2ImageProcessorPil, {**square(364), "crop_to_patches": True, "min_patches": 1, "max_patches": 12, **half},
         {"model_type": "aya_vision", "downsample_factor": 2, "vision_config": {"patch_size": 14, "image_size": 364}}, crops_of(169)),
        ("minicpmv4_6", MiniCPMV4_6ImageProcessorPil, {}, {"model_type": "minicpmv4_6"}, slices),
        ("phi4_siglip", Siglip2ImageProcessorNoUpscale, {"patch_size": 16, "max_num_patches": 3600, "min_num_patches": 256}, {"model_type": "phi4-siglip"},
         naflex),
        ("mllama", MllamaImageProcessorPil, {**square(560), "max_image_tiles": 4, **clip}, {"model_type": "mllama", "vision_config": {"patch_size": 14}}, canvas),
    ]


def answer(views, tokens, rows=0, columns=0):
    """Shape and SHA-256 of each view, tokens in the prompt, rows and columns of tiles."""
    return {"views": [[list(view.shape), digest(view)] for view in views], "tokens": int(tokens), "tiles": [int(rows), int(columns)]}


def grid(made):
    _, rows, columns = made["image_grid_thw"][0]
    pixels = np.asarray(made["pixel_values"])
    return answer([pixels.reshape(len(pixels), -1)], rows * columns // 4)


def hunyuan(made):
    _, rows, columns = made["image_grid_thw"][0]
    return answer([np.asarray(made["pixel_values"])], (columns // 2 + 1) * rows // 2 + 2)


def fixed(made):
    return answer([np.asarray(made["pixel_values"])[0]], 256)


def gemma4(made):
    real = (np.asarray(made["image_position_ids"])[0] >= 0).all(axis=-1)
    return answer([np.asarray(made["pixel_values"])[0][real]], made["num_soft_tokens_per_image"][0])


def longest(side):
    def taken(made):
        image = np.asarray(made["pixel_values"])[0]
        return answer([image], image.shape[1] // side * (image.shape[2] // side))
    return taken


def quarters(made):
    """Views without what is padded for the largest."""
    masks = np.asarray(made["pixel_attention_mask"])[0]
    views = [view[:, :mask[:, 0].sum(), :mask[0].sum()] for view, mask in zip(np.asarray(made["pixel_values"])[0], masks)]
    return answer(views, 64 * len(views), *([2, 2] if len(views) > 1 else []))


def tiles(each):
    def taken(made):
        views = list(np.asarray(made["pixel_values"])[0])
        return answer(views, each * len(views), made["rows"][0][0], made["cols"][0][0])
    return taken


def crops_of(each):
    def taken(made):
        views = list(np.asarray(made["pixel_values"]))
        return answer(views, each * len(views))
    return taken


crops = crops_of(256)


def square_of(tokens):
    return lambda made: answer([np.asarray(made["pixel_values"])[0]], tokens)


def canvas_of(family, tile, pinpoints):
    """Tiles of a canvas: the whole, which is first, comes last here. The processor of texts says how many features there are."""
    import importlib
    from types import SimpleNamespace

    from transformers.image_processing_utils import select_best_resolution

    module = importlib.import_module(f"transformers.models.{family}.processing_{family}")
    texts = object.__new__(getattr(module, "LlavaNextProcessor" if family == "llava_next" else "LlavaOnevisionProcessor"))
    texts.image_processor = SimpleNamespace(image_grid_pinpoints=pinpoints)
    texts.patch_size, texts.num_additional_image_tokens, texts.num_image_tokens, texts.vision_aspect_ratio = 14, 0, 729, "anyres_max_9"

    def taken(made):
        size = [int(side) for side in made["image_sizes"][0]]
        whole, *tiles = np.asarray(made["pixel_values"])[0]
        rows, columns = (side // tile for side in select_best_resolution(size, pinpoints))
        return answer([*tiles, whole], texts._get_number_of_features(*size, tile, tile), rows, columns)
    return taken


def slices(made):
    """Patches of all views beside each other: the whole, which is first, comes last here."""
    pixels, found, start = np.asarray(made["pixel_values"])[0], [], 0
    for rows, columns in np.asarray(made["target_sizes"]).tolist():
        part = pixels[..., start:start + rows * columns * 14]
        start += part.shape[-1]
        found.append(part.reshape(3, 14, rows, columns, 14).transpose(0, 2, 1, 3, 4).reshape(3, rows * 14, columns * 14))
    whole, *tiles = found
    return answer([*tiles, whole], (np.asarray(made["target_sizes"]).prod(-1) // 16).sum(), *made["grids"][0])


def naflex(made):
    rows = np.asarray(made["pixel_values"])[0][np.asarray(made["pixel_attention_mask"])[0] == 1]
    return answer([rows], len(rows))


def canvas(made):
    count = made["num_tiles"][0][0]
    return answer(list(np.asarray(made["pixel_values"])[0, 0][:count]), 0)


def steps(values, mean=0.5, std=0.5):
    """The 256 steps that such numbers were made of, which rounding moved by far less than a half."""
    return np.rint((np.asarray(values, dtype=np.float64) * std + mean) * 255).astype(np.uint8)


def numbers(pixels, mean=(0.5,) * 3, std=(0.5,) * 3):
    """[3, height, width] of steps, as transformers makes numbers of them."""
    scaled = rescale(pixels, 1 / 255, input_data_format="channels_first")
    return normalize(scaled, mean, std, input_data_format="channels_first")


def functions(file):
    """The functions of a file of transformers that cannot be imported without torch."""
    import ast
    from functools import lru_cache

    import transformers

    tree = ast.parse((Path(transformers.__file__).parent / "models" / file).read_text())
    tree.body = [part for part in tree.body if isinstance(part, ast.FunctionDef)]
    found = {"np": np, "lru_cache": lru_cache}
    exec(compile(tree, file, "exec"), found)
    return found


def others():
    """The processors that are mlx-vlm's."""
    from mlx_vlm.models.falcon_ocr.processing_falcon_ocr import preprocess_image
    from mlx_vlm.models.fastvlm.processing import expand_to_square, resize_image
    from mlx_vlm.models.kimi_vl.processing_kimi_vl import KimiVLImageProcessor
    from mlx_vlm.models.lfm2_vl.processing_lfm2_vl import Lfm2VlNumpyImageProcessor

    lfm2 = Lfm2VlNumpyImageProcessor(resample=2)
    cohere2 = functions("cohere2_vision/image_processing_cohere2_vision.py")
    kimi = KimiVLImageProcessor(pad_input=True)

    def renumbered(rows):
        side = steps(rows).reshape(len(rows), -1, 3)
        return numbers(side.transpose(2, 0, 1)).transpose(1, 2, 0).reshape(len(rows), -1)

    def of_lfm2(image):
        views, rows, columns, _ = lfm2._views_for_image(image, True, 2, 10, True)
        made = [lfm2._view_to_patches(view) for view in views]
        real = [renumbered(patches[:high * wide]) for patches, _, high, wide in made]
        return answer(real, sum(high * wide // 4 for _, _, high, wide in made), rows if rows * columns > 1 else 0, columns if rows * columns > 1 else 0)

    def of_falcon(image):
        pixels, rows, columns = preprocess_image(image)
        patches = pixels.reshape(rows, 16, columns, 16, 3).transpose(0, 2, 1, 3, 4).reshape(rows * columns, -1)
        return answer([renumbered(patches)], rows * columns)

    def of_kimi(image):
        padded = np.asarray(kimi.rescale(image))
        return answer([numbers(padded.transpose(2, 0, 1))], padded.shape[0] // 28 * (padded.shape[1] // 28))

    def of_cohere2(image):
        """The processor itself wants torchvision; this is its choice of tiles, with Pillow's resizes."""
        columns, rows = cohere2["get_optimal_tiled_canvas"]((image.height, image.width), (512, 512), 1, 12)
        canvas = image.resize((columns * 512, rows * 512), Image.Resampling.BICUBIC)
        boxes = [(column * 512, row * 512, column * 512 + 512, row * 512 + 512) for row in range(rows) for column in range(columns)]
        views = [canvas.crop(box) for box in boxes] + [image.resize((512, 512), Image.Resampling.BICUBIC)] * (len(boxes) > 1)
        return answer([numbers(np.asarray(view).transpose(2, 0, 1)) for view in views], 256 * len(views))

    def of_fastvlm(image):
        """The same functions given steps: from numbers between 0 and 1 they make the step below of some."""
        square = resize_image(expand_to_square(np.asarray(image), 0), 1024)
        scaled = rescale(steps(square, 0, 1).transpose(2, 0, 1), 1 / 255, input_data_format="channels_first")
        return answer([normalize(scaled, [0.0] * 3, [1.0] * 3, input_data_format="channels_first")], 256)

    return [("fastvlm", {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 1024}, "crop_size": {"height": 1024, "width": 1024},
                         "image_mean": [0.0] * 3, "image_std": [1.0] * 3}, {"model_type": "llava_qwen2", "mm_vision_tower": "mobileclip_l_1024"}, of_fastvlm),
            ("cohere2_vision", {"image_processor_type": "Cohere2VisionImageProcessorFast", "size": {"height": 512, "width": 512}, "max_patches": 12,
                                "image_mean": [0.5] * 3, "image_std": [0.5] * 3},
             {"model_type": "cohere2_vision", "downsample_factor": 2, "vision_config": {"patch_size": 16, "image_size": 512}}, of_cohere2),
            ("kimi_vl", {"image_processor_type": "KimiVLImageProcessor", "patch_size": 14, "in_token_limit": 4096, "pad_input": True,
                         "image_mean": [0.5] * 3, "image_std": [0.5] * 3}, {"model_type": "kimi_vl"}, of_kimi),
            ("lfm2_vl", {"image_processor_type": "Lfm2VlImageProcessorFast", "resample": 2, "do_resize": False}, {"model_type": "lfm2_vl"}, of_lfm2),
            ("falcon_ocr", None, {"model_type": "falcon_ocr", "spatial_patch_size": 16}, of_falcon), *squares(answer, numbers, steps)]


def asked(name, process, taken, images):
    found = {}
    for file, image in images.items():
        try:
            found[file] = taken(process(image))
        except Exception as error:  # what a processor refuses, ours may refuse
            found[file] = {"error": str(error)}
    return name, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    (out / "images").mkdir(parents=True, exist_ok=True)
    names = images(out / "images")
    loaded = {name: decoded(out / "images" / name) for name in names}
    for name, image in loaded.items():
        (out / "images" / f"{name}.rgb").write_bytes(np.asarray(image).tobytes())
    jobs = []
    for name, kind, file, config, taken in processors():
        if "return_row_col_info" in vars(kind):
            ask = {"return_row_col_info": True}
        else:
            ask = {}
        processor = kind(**{field: value for field, value in file.items() if not (field == "size" and value is None)})
        written = {"image_processor_type": kind.__name__.removesuffix("Pil"), **file}
        write(out / "processors" / name, written, config)
        jobs.append((name, lambda image, processor=processor, ask=ask: processor(image, return_tensors="np", **ask), taken))
    for name, written, config, process in others():
        write(out / "processors" / name, written, config)
        jobs.append((name, process, lambda made: made))
    # How an image is turned is told by what was decoded; one of them is enough.
    shown = {name: image for name, image in loaded.items() if not name.startswith("turned") or name == "turned6.jpg"}
    # Pillow and numpy work beside each other in threads.
    with ThreadPoolExecutor(2) as pool:
        expected = dict(pool.map(lambda job: asked(*job, shown), jobs))
    sizes = {name: image.size for name, image in loaded.items()}
    (out / "expected.json").write_text(json.dumps({"sizes": sizes, "processors": expected}))
    (out / "resize.json").write_text(json.dumps(resizes(loaded)))


def write(folder, processor, config):
    folder.mkdir(parents=True, exist_ok=True)
    if processor is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    (folder / "config.json").write_text(json.dumps(config))


def resizes(loaded):
    """Pillow's resizes by every filter, up and down, of one side or both."""
    filters = {"lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
    cases = []
    for name in ("1x1.png", "2x3.png", "17x23.png", "97x101.png", "333x77.png", "1x3000.png", "640x480.png"):
        for filter, number in filters.items():
            for size in ((1, 1), (7, 5), (64, 64), (97, 40), (333, 200), (640, 48), (13, 777)):
                resized = loaded[name].resize(size, number)
                cases.append([name, filter, size, digest(np.asarray(resized), "u1")])
    return cases


if __name__ == "__main__":
    main()
