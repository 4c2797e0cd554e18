"""Processors of mlx-vlm's that make one square of an image, and those of Phi 3, DeepSeek, Molmo and Jina that make several, for `images.py`."""
import numpy as np
from PIL import Image


def squares(answer, numbers, steps):
    """Name, the processor's file, `config.json` and a function of each, by the functions of `images.py`."""
    from PIL import ImageOps

    from mlx_vlm.models.base import expand2square
    from mlx_vlm.models.deepseek_vl_v2.processing_deepsek_vl_v2 import select_best_resolution
    from mlx_vlm.models.deepseekocr.processing_deepseekocr import dynamic_preprocess
    from mlx_vlm.models.jina_vlm.image_processor import ImageProcessor as JinaImageProcessor, smart_resize
    from mlx_vlm.models.llava_bunny.llava_bunny import ImageProcessor as Bunny
    from mlx_vlm.models.molmo.processing_molmo import MolmoImageProcessor, select_tiling
    from mlx_vlm.models.molmo2 import processing as molmo2
    from mlx_vlm.models.multi_modality.multi_modality import ImageProcessor as Janus
    from mlx_vlm.models.phi3_v.processing_phi3_v import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD, Phi3VImageProcessor

    bunny, janus, phi3 = Bunny(), Janus({"vision_config": {"params": {}}}), Phi3VImageProcessor(num_crops=16)
    mean, std = (np.array(numbers)[:, None, None] for numbers in (OPENAI_CLIP_MEAN, OPENAI_CLIP_STD))

    def of_bunny(image):
        # It takes three rows for three colors.
        if image.height == 3:
            resized = np.asarray(image.resize((384, 384), Image.Resampling.BICUBIC))
            return answer([numbers(resized.transpose(2, 0, 1))], 729)
        return answer([numbers(steps(bunny.preprocess([image])[0]))], 729)

    def of_bunny_padded(image):
        """As the code beside the weights does if the config asks for it."""
        return of_bunny(expand2square(image, (127, 127, 127)))

    def of_janus(image):
        return answer([numbers(steps(janus.preprocess([image])[0]))], 576)

    def of_phi3(image):
        views, (height, width) = phi3._process_single_image(image)
        whole, *tiles = [numbers(steps(view, mean, std), OPENAI_CLIP_MEAN, OPENAI_CLIP_STD) for view in views]
        return answer([*tiles, whole], phi3.calc_num_image_tokens(image), height // 336, width // 336)

    def of_deepseek(image):
        """Its choice of a canvas, and what it does with that."""
        width, height = select_best_resolution(image.size, candidates)
        canvas, whole = (ImageOps.pad(image, size, color=(127, 127, 127)) for size in ((width, height), (384, 384)))
        boxes = [(left, top, left + 384, top + 384) for top in range(0, height, 384) for left in range(0, width, 384)]
        views = [numbers(np.asarray(view).transpose(2, 0, 1)) for view in [*map(canvas.crop, boxes), whole]]
        rows, columns = height // 384, width // 384
        return answer(views, 14 * 15 + 1 + rows * 14 * (columns * 14 + 1), rows, columns)

    def of_ocr(image):
        """As its `tokenize_with_images` does."""
        whole = ImageOps.pad(image, (1024, 1024), color=(127, 127, 127))
        tiles, (columns, rows) = dynamic_preprocess(image) if max(image.size) > 640 else ([], (0, 0))
        views = [numbers(np.asarray(view).transpose(2, 0, 1)) for view in [*tiles, whole]]
        return answer(views, 16 * 17 + 1 + rows * 10 * (columns * 10 + 1), rows, columns)

    def planes(patches):
        side = patches.reshape(len(patches), 27, 27, 14, 14, 3).transpose(0, 5, 1, 3, 2, 4).reshape(len(patches), 3, 378, 378)
        whole, *tiles = [numbers(steps(view)) for view in side]
        return [*tiles, whole]

    def of_molmo2(image):
        (grid,), crops, *_ = molmo2.image_to_patches_and_grids(np.asarray(image), 8, [4, 4], [378, 378], Image.Resampling.BILINEAR, [0.5] * 3,
                                                               [0.5] * 3, 14, 2, 2)
        tiling = molmo2.select_tiling(image.height - 112, image.width - 112, 266, 8)
        return answer(planes(crops), grid[0] * grid[1] + grid[2] * grid[3], *tiling)

    def of_molmo(image):
        """Given steps: from numbers between 0 and 1 it makes the step below of some."""
        crops, tokens, *_ = molmo.image_to_patches_and_tokens(np.asarray(image), 1, 2, 3, 4)
        side = crops.reshape(len(crops), 24, 24, 14, 14, 3).transpose(0, 5, 1, 3, 2, 4).reshape(len(crops), 3, 336, 336)
        whole, *tiles = [numbers(steps(view, mean, std), OPENAI_CLIP_MEAN, OPENAI_CLIP_STD) for view in side]
        tiling = select_tiling(image.height - 112, image.width - 112, 224, 12)
        return answer([*tiles, whole], (tokens == 1).sum(), *tiling)

    def resized(image, size):
        """Whole steps: from numbers between 0 and 1 it makes the step below of some."""
        made = Image.fromarray(np.rint(image * 255).astype(np.uint8)).resize((size[1], size[0]), Image.Resampling.BICUBIC)
        return np.array(made, dtype=np.float32) / 255.0, np.ones(size, dtype=bool)

    def of_jina(image):
        """The app refuses images that are so long as those of Qwen, whose rule it has."""
        if max(image.size) > 200 * min(image.size):
            raise ValueError("too long")
        made = jina.process_image(image)
        height, width = smart_resize(image.height, image.width, 14, jina.min_pixels, jina.max_pixels)
        tiling = jina.select_tiling(height - 112, width - 112, 266, jina.max_crops)
        return answer(planes(made["pixel_values"]), (made["image_tokens"] == jina.patch_token_id).sum(), *tiling)

    jina, molmo = JinaImageProcessor(), MolmoImageProcessor()
    jina.resize_image = resized
    candidates = [[384 * columns, 384 * rows] for columns in range(1, 10) for rows in range(1, 10) if rows * columns < 10]
    half = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    siglip = {"image_processor_type": "SiglipImageProcessor", "size": {"height": 384, "width": 384}, **half}
    vlm = {"image_processor_type": "VLMImageProcessor", "image_size": 384, "min_size": 14, "background_color": [127, 127, 127], **half}
    return [("llava_bunny", siglip, {"model_type": "llava-qwen2"}, of_bunny),
            ("llava_bunny_pad", siglip, {"model_type": "bunny-llama", "image_aspect_ratio": "pad"}, of_bunny_padded),
            ("janus", vlm, {"model_type": "multi_modality", "vision_config": {"params": {"image_size": 384}}}, of_janus),
            ("molmo2", {"image_processor_type": "Molmo2ImageProcessor", "size": {"height": 378, "width": 378}, "resample": 2, "max_crops": 8,
                        "overlap_margins": [4, 4], "patch_size": 14, "pooling_size": [2, 2], **half}, {"model_type": "molmo2"}, of_molmo2),
            ("molmo", {"image_processor_type": "MolmoImageProcessor", "max_crops": 12, "overlap_margins": [4, 4], "base_image_input_size": [336, 336],
                       "image_patch_size": 14, "image_mean": list(OPENAI_CLIP_MEAN), "image_std": list(OPENAI_CLIP_STD)}, {"model_type": "molmo"}, of_molmo),
            ("jvlm", None, {"model_type": "jvlm", "vision_config": {"input_size": [378, 378], "patch_size": 14}}, of_jina),
            ("deepseek_vl_v2", half, {"model_type": "deepseek_vl_v2", "candidate_resolutions": candidates}, of_deepseek),
            ("deepseekocr", half, {"model_type": "deepseek_vl_v2", "vision_config": {"model_name": "deeplip_b_l"}}, of_ocr),
            ("phi3_v", {"image_processor_type": "Phi3VImageProcessor", "num_crops": 16, "image_mean": list(OPENAI_CLIP_MEAN),
                        "image_std": list(OPENAI_CLIP_STD)}, {"model_type": "phi3_v"}, of_phi3)]
