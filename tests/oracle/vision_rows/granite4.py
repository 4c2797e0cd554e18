"""Granite 4 Vision: states at several depths of SigLIP go through windows of queries, and are added before several layers."""
import mlx.core as mx
import numpy as np

from vision_rows.llava import CANVASES, given_by_image, next_config, on_canvas, original, packed, processor, text
from vision_rows.row import IMAGE, VOCABULARY, Row

# Eight patches along a side, in two windows of which each has two tokens along a side: as many tokens as LLaVA's rows have patches.
SIDE, PATCH = 128, 16
FORMER = {"model_type": "blip_2_qformer", "num_hidden_layers": 2, "intermediate_size": 48, "layer_norm_eps": 1e-12}
SCALES = {"embedding_multiplier": 6.0, "attention_multiplier": 0.2, "residual_multiplier": 0.5, "logits_scaling": 2.0}


def granite4(language, **more):
    vision = {"model_type": "siglip_vision_model", "hidden_size": 128, "num_hidden_layers": 4, "intermediate_size": 80,
              "num_attention_heads": 4, "patch_size": PATCH, "image_size": SIDE, "layer_norm_eps": 1e-6, "hidden_act": "gelu_pytorch_tanh"}
    pinpoints = [[SIDE * rows, SIDE * columns] for (rows, columns), _ in CANVASES]
    config = next_config("granite4_vision", {**language, "num_hidden_layers": 7}, vision, vision_feature_select_strategy="full",
                         downsample_rate="2/4", qformer_config=FORMER, use_image_newline_parameter=True, **more)
    return {**config, "image_grid_pinpoints": pinpoints}


HYBRID = granite4(text("granitemoehybrid", shared_intermediate_size=64, num_local_experts=0, layer_types=["attention"] * 7,
                       position_embedding_type="rope", **{**SCALES, "tie_word_embeddings": True}),
                  deepstack_layer_map=[[-2, 2], [1, 5], [-1, 0]], use_spatial_sampling=True, spatial_stride=2, spatial_vision_layer=-3,
                  spatial_target_layers=[1, 3, 4, 6])
# Nothing stands in place of the tokens, and nothing but what is added to them.
PLAIN = granite4(text("granite4_vision_text", **SCALES), deepstack_layer_map=[[-1, 3], [-2, 1]], use_spatial_sampling=False)


def repair():
    """mlx-vlm reads one image, whatever the config says of projectors, with other norms and another GELU than transformers."""
    import mlx.nn as nn
    from mlx_vlm.models.base import InputEmbeddingsFeatures
    from mlx_vlm.models.granite4_vision import downsampling, granite4_vision, vision

    plain, build, former = vision.EncoderLayer.__init__, granite4_vision.Model.__init__, downsampling.QFormerConfig

    def begin(self, *args):
        plain(self, *args)
        self.mlp.activation_fn = nn.GELU(approx="tanh")

    def made(self, config):
        build(self, config)
        for name, module in self.named_modules():
            if "qformer" in name and isinstance(module, nn.LayerNorm):
                module.eps = 1e-12

    def embedded(self, input_ids=None, pixel_values=None, **_):
        embeds = self.language_model.model.embed_tokens(input_ids)
        self.language_model.model._deepstack_target_layers = None
        if pixel_values is None:
            return InputEmbeddingsFeatures(inputs_embeds=embeds)
        config = self.config
        *_, states = self.vision_tower(pixel_values.transpose(0, 2, 3, 1), output_hidden_states=True)
        sets = [(states[layer], target, projector) for (layer, target), projector in zip(config.deepstack_layer_map, self.layerwise_projectors)]
        if config.use_spatial_sampling:
            targets = zip(config.spatial_target_layers, self.spatial_projectors)
            sets += [(states[config.spatial_vision_layer], target, projector) for target, projector in targets]
        places = np.where(np.array(input_ids) == IMAGE)[1].tolist()
        added = []
        for seen, _, projector in sets:
            whole = mx.zeros_like(embeds[0])
            whole[places] = packed(projector(seen), self.image_newline, None).astype(embeds.dtype)
            added.append(whole)
        mask = input_ids == IMAGE
        self.language_model.model._deepstack_target_layers = [target for _, target, _ in sets]
        return InputEmbeddingsFeatures(inputs_embeds=mx.where(mask[..., None], 0, embeds), deepstack_visual_embeds=mx.stack(added),
                                       visual_pos_masks=mask)

    downsampling.QFormerConfig = lambda **more: former(**{**more, "num_hidden_layers": 2, "intermediate_size": 48})
    vision.EncoderLayer.__init__ = begin
    granite4_vision.Model.__init__ = made
    granite4_vision.Model.get_input_embeddings = embedded


def row(name, config, **more):
    look = processor("LlavaNext", size={"height": SIDE, "width": SIDE}, crop_size={"height": SIDE, "width": SIDE}, do_center_crop=True,
                     image_grid_pinpoints=config["image_grid_pinpoints"])
    return Row(name, config, on_canvas(side=SIDE), given_by_image, tokens={IMAGE: "<image>"}, processor=look, prepare=repair, **more)


ROWS = [
    row("granite4_vision", HYBRID),
    row("granite4_vision-original", PLAIN, layout=original),
    row("granite4_vision-4bit", HYBRID, packed="language", bits=4),
    row("granite4_vision-tower8", PLAIN, packed="all"),
]
