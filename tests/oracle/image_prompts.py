"""The ids that transformers' processors make of conversations with images, for the room `prompt`.

    python image_prompts.py OUT_FOLDER

Writes OUT_FOLDER/NAME/{config.json,tokenizer.json,tokenizer_config.json,chat_template.jinja} and OUT_FOLDER/NAME.json: a list of {"messages", "plans", "ids"}.
The tokenizers are small ones that join runs of line ends. Processors are made without their image processors, because torch is not there: what those would say
of an image, its grid or its tiles, is made up here, and what the processor writes for it is the processor's own `replace_image_token`.
"""
import json
import random
import re
import sys
import types
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, processing_utils, utils

# If Pillow is there, Pixtral's processor reads its image processor, which requires torch.
utils.is_vision_available = lambda: False

PROSE = "Which of these two images shows a cat?\n\n What is different:\n\n\n the colour, or\nthe size?\n\n\n\n1. Look\n2. Say user model assistant "
TEXTS = ["What is this?", "\nWhat is it?", "\n\n1. Look", " Look\n\n", "", "the size?\n\n\n", "  two images\n the colour"]


def qwen(name):
    return ("{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
            "{% if p.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n"
            "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def gemma(placeholder):
    return ("{% for m in messages %}<start_of_turn>{{ m.role }}\n{% if m.content is string %}{{ m.content | trim }}{% else %}{% for p in m.content %}"
            "{% if p.type == 'image' %}" + placeholder + "{% else %}{{ p.text | trim }}{% endif %}{% endfor %}{% endif %}<end_of_turn>\n"
            "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}")


def plain(placeholder, begin="", end="\n"):
    return ("{% for m in messages %}" + begin + "{{ m.role }}:{% if m.content is string %} {{ m.content }}{% else %}{% for p in m.content %}"
            "{% if p.type == 'image' %}" + placeholder + "{% else %} {{ p.text }}{% endif %}{% endfor %}{% endif %}" + end + "{% endfor %}"
            "{% if add_generation_prompt %}assistant:{% endif %}")


def llama():
    return ("{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{% if m.content is string %}{{ m.content }}{% else %}"
            "{% for p in m.content %}{% if p.type == 'image' %}<|image|>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}<|eot_id|>{% endfor %}"
            "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}")


def grid(rows, columns):
    return {"tiles": None, "whole": False, "views": [{"rows": rows, "columns": columns, "features": rows * columns}]}


def tiled(rows, columns, each, whole):
    views = [{"rows": 1, "columns": each, "features": each}] * (rows * columns) + [{"rows": 1, "columns": whole, "features": whole}]
    return {"tiles": [rows, columns] if rows * columns else None, "whole": True, "views": views}


def beside(rows, columns):
    """Tiles that no token takes a feature of."""
    return {"tiles": [rows, columns], "whole": False, "views": [{"rows": 2, "columns": 2, "features": 0}] * (rows * columns)}


GRIDS = [(1, 1), (3, 2), (2, 5)]
TILES = [(0, 0), (2, 3), (1, 2)]
# Families whose tokenizers may lack the token for an image, and how it is spelled. All encode the texts around one apart.
ADDED = {"llava_qwen2": "<image>", "llava-qwen2": "<image>", "phi3_v": "<|image|>", "phi4-siglip": "<image>"}

# The marks around images of Idefics 2, once between two.
FENCE = "<fake_token_around_image>"


class Family:
    """A processor without its image processor, and what that would have said of three images."""

    def __init__(self, model_type, processor, template, special, named=None, spelling="byte level", **options):
        self.model_type, self.processor, self.template, self.special = model_type, processor, template, special
        self.named, self.spelling, self.options = named or {}, spelling, options

    def make(self, tokenizer, index):
        """The image's plan, and the text that the processor writes for it."""
        import importlib

        import numpy

        module, _, name = self.processor.rpartition(".")
        if self.model_type in ADDED:
            return grid(*GRIDS[index]), "<image>", ADDED[self.model_type]
        if self.model_type == "idefics2":
            rows, columns = (2, 2) if index else (0, 0)
            return tiled(rows, columns, 4, 4), f"{FENCE}{'<image>' * 4}{FENCE}" * (rows * columns + 1), "<image>"
        if self.model_type in ("deepseek_vl_v2", "deepseekocr"):
            # As mlx-vlm's `tokenize_with_images` does, whose classes want a tokenizer of their own.
            rows, columns = GRIDS[index]
            return grid(rows, columns), "<image>" * (rows * columns), "<image>"
        cls = getattr(importlib.import_module(f"transformers.models.{module}"), name)
        shape = GRIDS[index]
        side = 2 if self.model_type == "cohere2_vision" else 16
        image = types.SimpleNamespace(merge_size=2, spatial_patch_size=1, use_thumbnail=True, patch_size=side, slice_mode=True, use_image_id=True,
                                      downsample_mode="16x")
        options = {"image_processor": image, "tokenizer": tokenizer, **self.options}
        options = {key: value for key, value in options.items() if key in cls.__init__.__code__.co_varnames or key in ("image_processor", "tokenizer")}
        if "feature_extractor" in cls.__init__.__code__.co_varnames:
            options["feature_extractor"] = None
        if "video_processor" in cls.__init__.__code__.co_varnames:
            options["video_processor"] = types.SimpleNamespace(slice_mode=False, downsample_mode="16x")
        processor = cls(**options)
        processor.image_processor, processor.tokenizer = image, tokenizer
        rows, columns = shape
        inputs, plan = {"image_grid_thw": numpy.array([[1, 2 * rows, 2 * columns]])}, grid(rows, columns)
        if self.model_type in ("gemma3", "gemma3n"):
            inputs, plan = {"num_crops": [0]}, grid(2, 2)
        elif self.model_type == "gemma4":
            inputs = {"num_soft_tokens_per_image": [rows * columns]}
        elif self.model_type in ("pixtral", "mistral3"):
            inputs = {"image_sizes": [(16 * 2 * rows, 16 * 2 * columns)]}
        elif self.model_type in ("idefics3", "smolvlm"):
            rows, columns = TILES[index]
            inputs, plan = {"rows": [[rows]], "cols": [[columns]]}, tiled(rows, columns, 4, 4)
        elif self.model_type == "internvl":
            rows, columns = TILES[index]
            inputs, plan = {"num_patches": [rows * columns + 1]}, tiled(rows, columns, 4, 4)
        elif self.model_type == "lfm2_vl":
            rows, columns = TILES[index]
            processor._get_image_num_tokens = lambda *_, **__: (6, 3)
            inputs, plan = {"image_rows": [rows or 1], "image_cols": [columns or 1], "image_sizes": [(1, 1)]}, tiled(rows, columns, 6, 3)
            return plan, processor.replace_image_token(inputs, 0, use_image_special_tokens=True), processor.image_token
        elif self.model_type == "llava":
            inputs = {"pixel_values": [numpy.zeros((3, rows, columns))]}
        elif self.model_type in ("llava_next", "llava_onevision"):
            # The count of features is compared by `images.py`; here it is the processor's own.
            image.image_grid_pinpoints = [[4, 8], [8, 4], [8, 8]]
            inputs = {"image_sizes": [(3 * rows, 3 * columns)], "pixel_values": [numpy.zeros((1, 3, 4, 4))], "batch_num_images": [1]}
            text = processor.replace_image_token(inputs, 0)
            return grid(1, text.count(processor.image_token)), text, processor.image_token
        elif self.model_type in ("aya_vision", "cohere2_vision"):
            rows, columns = TILES[index]
            inputs, plan = {"num_patches": [rows * columns + 1]}, tiled(rows, columns, 4, 4)
        elif self.model_type == "minicpmv4_6":
            rows, columns = TILES[index]
            count = rows * columns + 1
            inputs = {"grids": [[rows, columns]], "num_patches_per_image": [count], "target_sizes": numpy.array([[4, 12]] + [[8, 8]] * (count - 1))}
            plan = tiled(rows, columns, 4, 3)
            return plan, "IMAGE_ID" + processor.replace_image_token(inputs, 0, image_token_divisor=16), processor.image_token
        elif self.model_type == "multi_modality":
            processor.num_image_tokens = rows * columns
        elif self.model_type == "mllama":
            plan = beside(*[(1, 1), (2, 2), (1, 3)][index])
        elif self.model_type == "hunyuan_vl":
            plan["views"][0]["features"] = rows * (columns + 1) + 2
        text = processor.replace_image_token(inputs, 0)
        return plan, text, processor.image_token


FAMILIES = [
    Family("qwen2_vl", "qwen2_vl.processing_qwen2_vl.Qwen2VLProcessor", qwen("qwen"), ["<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"],
           {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>", "vision_start_token": "<|vision_start|>", "vision_end_token": "<|vision_end|>"}),
    Family("qwen3_vl", "qwen3_vl.processing_qwen3_vl.Qwen3VLProcessor", qwen("qwen"), ["<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"],
           {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>", "vision_start_token": "<|vision_start|>", "vision_end_token": "<|vision_end|>"}),
    Family("gemma3", "gemma3.processing_gemma3.Gemma3Processor", gemma("<start_of_image>"), ["<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>", "<image_soft_token>"],
           {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}, "pieces", image_seq_length=4),
    Family("gemma3n", "gemma3n.processing_gemma3n.Gemma3nProcessor", gemma("<image_soft_token>"),
           ["<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>", "<image_soft_token>", "<audio_soft_token>", "<start_of_audio>", "<end_of_audio>"],
           {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>", "audio_token": "<audio_soft_token>",
            "boa_token": "<start_of_audio>", "eoa_token": "<end_of_audio>"}, "pieces", image_seq_length=4),
    Family("gemma4", "gemma4.processing_gemma4.Gemma4Processor", gemma("<|image|>").replace("<start_of_turn>", "<|turn>").replace("<end_of_turn>", "<turn|>"),
           ["<|turn>", "<turn|>", "<|image>", "<image|>", "<|image|>", "<|video|>", "<|audio|>", "<|audio>", "<audio|>"],
           {"boi_token": "<|image>", "eoi_token": "<image|>", "image_token": "<|image|>", "audio_token": "<|audio|>", "boa_token": "<|audio>", "eoa_token": "<audio|>"}, "pieces"),
    Family("glm4v", "glm4v.processing_glm4v.Glm4vProcessor", plain("<|begin_of_image|><|image|><|end_of_image|>", "<|user|>"),
           ["<|user|>", "<|begin_of_image|>", "<|end_of_image|>", "<|image|>", "<|video|>"], {"image_token": "<|image|>", "video_token": "<|video|>"}),
    Family("pixtral", "pixtral.processing_pixtral.PixtralProcessor", plain("[IMG]", "[INST]", "[/INST]"), ["[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[IMG_END]"],
           patch_size=16, spatial_merge_size=2),
    Family("idefics2", "", qwen("").replace("<|vision_start|><|image_pad|><|vision_end|>", "<image>"), ["<|im_start|>", "<|im_end|>", "<image>", FENCE]),
    Family("idefics3", "idefics3.processing_idefics3.Idefics3Processor", plain("<image>", "<|im_start|>", "<end_of_utterance>\n"),
           ["<|im_start|>", "<end_of_utterance>", "<image>", "<fake_token_around_image>", "<global-img>"] + [f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2, 3)],
           {"image_token": "<image>", "fake_image_token": "<fake_token_around_image>", "global_image_token": "<global-img>", "end_of_utterance_token": "<end_of_utterance>",
            "image_boundary_token": "<fake_token_around_image>"},
           image_seq_len=4),
    Family("internvl", "internvl.processing_internvl.InternVLProcessor", qwen("internvl").replace("<|vision_start|><|image_pad|><|vision_end|>", "<IMG_CONTEXT>\\n"),
           ["<|im_start|>", "<|im_end|>", "<IMG_CONTEXT>", "<img>", "</img>", "<video>"],
           {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>", "video_token": "<video>"}, image_seq_length=4),
    Family("lfm2_vl", "lfm2_vl.processing_lfm2_vl.Lfm2VlProcessor", plain("<image>", "<|im_start|>", "<|im_end|>\n"),
           ["<|im_start|>", "<|im_end|>", "<image>", "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>"] + [f"<|img_row_{row}_col_{column}|>" for row in (1, 2) for column in (1, 2, 3)],
           {"image_token": "<image>", "image_start_token": "<|image_start|>", "image_end_token": "<|image_end|>", "image_thumbnail": "<|img_thumbnail|>",
            "image_thumbnail_token": "<|img_thumbnail|>"}),
    Family("llava", "llava.processing_llava.LlavaProcessor", plain("<image>\\n", "<|im_start|>", "<|im_end|>"), ["<|im_start|>", "<|im_end|>", "<image>"],
           {"image_token": "<image>"}, patch_size=1, num_additional_image_tokens=1, vision_feature_select_strategy="default"),
    Family("llava_next", "llava_next.processing_llava_next.LlavaNextProcessor", plain("<image>\\n", "[INST]", "[/INST]"), ["[INST]", "[/INST]", "<image>"],
           {"image_token": "<image>"}, "pieces", patch_size=1, num_additional_image_tokens=1, vision_feature_select_strategy="default"),
    Family("llava_onevision", "llava_onevision.processing_llava_onevision.LlavaOnevisionProcessor", qwen("").replace("<|vision_start|><|image_pad|><|vision_end|>", "<image>"),
           ["<|im_start|>", "<|im_end|>", "<image>", "<video>"], {"image_token": "<image>", "video_token": "<video>"}, num_image_tokens=16,
           vision_feature_select_strategy="full"),
    Family("aya_vision", "aya_vision.processing_aya_vision.AyaVisionProcessor", qwen("").replace("<|vision_start|><|image_pad|><|vision_end|>", "<image>"),
           ["<|im_start|>", "<|im_end|>", "<|START_OF_IMG|>", "<|END_OF_IMG|>", "<|IMG_PATCH|>", "<|IMG_LINE_BREAK|>"], patch_size=1, img_size=4,
           downsample_factor=2),
    Family("cohere2_vision", "cohere2_vision.processing_cohere2_vision.Cohere2VisionProcessor",
           qwen("").replace("<|vision_start|><|image_pad|><|vision_end|>", "<|IMG_PATCH|>"),
           ["<|im_start|>", "<|im_end|>", "<|START_OF_IMG|>", "<|END_OF_IMG|>", "<|IMG_PATCH|>", "<|IMG_LINE_BREAK|>"],
           {"boi_token": "<|START_OF_IMG|>", "eoi_token": "<|END_OF_IMG|>", "image_token": "<|IMG_PATCH|>", "img_line_break_token": "<|IMG_LINE_BREAK|>"}),
    Family("minicpmv4_6", "minicpmv4_6.processing_minicpmv4_6.MiniCPMV4_6Processor", qwen("").replace("<|vision_start|><|image_pad|><|vision_end|>", "<|image_pad|>"),
           ["<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|video_pad|>", "<image>", "</image>", "<slice>", "</slice>", "<image_id>", "</image_id>"],
           {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>", "image_start_token": "<image>", "image_end_token": "</image>",
            "slice_start_token": "<slice>", "slice_end_token": "</slice>", "image_id_start_token": "<image_id>", "image_id_end_token": "</image_id>"}),
    Family("llava_qwen2", "", qwen("").replace("<|vision_start|><|image_pad|><|vision_end|>", "<image>\\n"), ["<|endoftext|>", "<|im_end|>", "<|im_start|>"]),
    Family("llava-qwen2", "", qwen("").replace("<|vision_start|><|image_pad|><|vision_end|>", "<image>\\n"), ["<|endoftext|>", "<|im_end|>", "<|im_start|>"]),
    Family("phi3_v", "", plain("<|image|>\\n", "<|user|>", "<|end|>"), ["<|endoftext|>", "<|end|>", "<|user|>"]),
    Family("deepseek_vl_v2", "", plain("<image>\\n", "<|User|>", "<|Assistant|>"), ["<|User|>", "<|Assistant|>", "<image>"]),
    Family("deepseekocr", "", plain("<image>\\n", "", ""), ["<|User|>", "<|Assistant|>", "<image>"]),
    Family("multi_modality", "janus.processing_janus.JanusProcessor", plain("<image_placeholder>\\n", "<|User|>", "<|Assistant|>"),
           ["<|User|>", "<|Assistant|>", "<begin_of_image>", "<image_placeholder>", "<end_of_image>"],
           {"image_token": "<image_placeholder>", "boi_token": "<begin_of_image>", "eoi_token": "<end_of_image>"}),
    Family("phi4-siglip", "", qwen("").replace("<|vision_start|><|image_pad|><|vision_end|>", "<image>\\n"), ["<|endoftext|>", "<|im_end|>", "<|im_start|>"]),
    Family("mllama", "mllama.processing_mllama.MllamaProcessor", llama(),
           ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>", "<|image|>"]),
    Family("paddleocr_vl", "paddleocr_vl.processing_paddleocr_vl.PaddleOCRVLProcessor", plain("<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>", "<|begin|>"),
           ["<|begin|>", "<|IMAGE_START|>", "<|IMAGE_PLACEHOLDER|>", "<|IMAGE_END|>"], {"image_token": "<|IMAGE_PLACEHOLDER|>"}),
    Family("ernie4_5_vl_moe", "ernie4_5_vl_moe.processing_ernie4_5_vl_moe.Ernie4_5_VLMoeProcessor",
           plain("<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>", "<|begin|>"), ["<|begin|>", "<|IMAGE_START|>", "<|IMAGE_PLACEHOLDER|>", "<|IMAGE_END|>"],
           {"image_token": "<|IMAGE_PLACEHOLDER|>", "image_start_token": "<|IMAGE_START|>", "image_end_token": "<|IMAGE_END|>",
            "video_token": "<|IMAGE_PLACEHOLDER|>", "video_start_token": "<|IMAGE_START|>", "video_end_token": "<|IMAGE_END|>"}),
    Family("hunyuan_vl", "hunyuan_vl.processing_hunyuan_vl.HunYuanVLProcessor",
           plain("<｜hy_place▁holder▁no▁100｜><｜hy_place▁holder▁no▁102｜><｜hy_place▁holder▁no▁101｜>", "<｜hy_User｜>"),
           ["<｜hy_User｜>", "<｜hy_place▁holder▁no▁100｜>", "<｜hy_place▁holder▁no▁101｜>", "<｜hy_place▁holder▁no▁102｜>", "<pad>"],
           {"image_token": "<｜hy_place▁holder▁no▁102｜>", "image_start_token": "<｜hy_place▁holder▁no▁100｜>", "image_end_token": "<｜hy_place▁holder▁no▁101｜>"}),
]


def between(made, text, plans):
    """The ids of the texts between images as mlx-vlm's processor of Phi 4 makes them, and the first token wherever a feature is."""
    from mlx_vlm.models.phi4_siglip.processing_phi4_siglip import IMAGE_TOKEN_INDEX, tokenizer_image_token

    counts = iter(plan["views"][0]["features"] for plan in plans)
    return sum(([0] * next(counts) if token == IMAGE_TOKEN_INDEX else [token] for token in tokenizer_image_token(text, made)), [])


def tokenizer(folder, family):
    """A small tokenizer that joins line ends."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["\n" * count for count in range(2, 8)]
    if family.spelling == "byte level":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
        made.train_from_iterator([PROSE] * 50, trainer)
    else:
        made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        made.normalizer = normalizers.Replace(" ", "▁")
        made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=["<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)], show_progress=False)
        made.train_from_iterator([PROSE] * 50, trainer)
        described = json.loads(made.to_str())
        described["added_tokens"] = [token for token in described["added_tokens"] if token["content"] == "<unk>"]
        made = Tokenizer.from_str(json.dumps(described))
        # As Gemma's: runs of line ends are tokens that are no control tokens.
        made.add_tokens([AddedToken(line, normalized=False) for line in lines])
    made.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in family.special])
    made.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, "chat_template": family.template,
              "pad_token": family.special[0], "bos_token": family.special[0], "eos_token": family.special[1], "extra_special_tokens": family.named}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "config.json").write_text(json.dumps({"model_type": family.model_type}))
    return AutoTokenizer.from_pretrained(str(folder))


def main(out):
    # Some read the first two parts that they are made of.
    processing_utils.ProcessorMixin.__init__ = lambda self, *parts, **__: vars(self).update(zip(("image_processor", "video_processor"), parts))
    chance = random.Random(7)
    for family in FAMILIES:
        made = tokenizer(out / family.model_type, family)
        cases = []
        for number in range(40):
            messages, plans, texts = [], [], []
            for turn in range(chance.randint(1, 2)):
                images = chance.randint(0 if turn else 1, 2)
                parts = [{"type": "image"}] * images
                words = chance.choice(TEXTS)
                if words or not parts:
                    parts = parts + [{"type": "text", "text": words}]
                messages += [{"role": "user", "content": parts if images else words}, {"role": "assistant", "content": chance.choice(TEXTS)}]
                for _ in range(images):
                    plan, text, placeholder = family.make(made, chance.randrange(3))
                    plans.append(plan)
                    texts.append(text)
            messages.pop()
            rendered = made.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            pieces = rendered.split(placeholder)
            assert len(pieces) == len(texts) + 1, (family.model_type, rendered)
            widened = pieces[0] + "".join(text + piece for text, piece in zip(texts, pieces[1:]))
            if family.model_type == "idefics2":
                # As the call of its processor does, which wants a tokenizer of its own.
                widened = re.sub(rf"{FENCE}(?=[^\s<])", f"{FENCE} ", widened.replace(FENCE * 2, FENCE))
            # As MiniCPM-V's `_prepend_local_ids` numbers the images of a prompt.
            for index in range(len(texts)):
                widened = widened.replace("IMAGE_ID", f"<image_id>{index}</image_id>", 1)
            ids = between(made, widened, plans) if family.model_type in ADDED else made(widened, add_special_tokens=False)["input_ids"]
            cases.append({"messages": messages, "plans": plans, "ids": ids})
        (out / f"{family.model_type}.json").write_text(json.dumps(cases))


main(Path(sys.argv[1]))
