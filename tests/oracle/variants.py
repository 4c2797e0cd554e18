"""Every model that the engine is compared on: families, kinds of rope, quantization, number formats and file layouts."""
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import layouts
import repairs
from dense_shapes import (
    apertus, baichuan_m1, bitnet, deepseek, glm, gpt2, gpt_bigcode, gptj, iquest_loop, lille, minicpm3, nanbeige, nanochat, nemotron_nas,
    olmo1, openelm, phi3small, plamo, plamo3, qwen1, talkie, youtu_llm,
)
from expert_shapes import (
    afmoe, bailing_moe, dbrx, deepseek_v32, ernie4_5_moe, exaone_moe, glm_moe_dsa, hunyuan_moe, klear, laguna, llama4, llama4_text, longcat_flash, longcat_lite,
    mellum, mimo_v2_flash, minimax_m2, minimax_m3, mistral4, muse_glimmer, phimoe, phixtral, solar_open, spark2_5, step3p5,
)
from further_shapes import (
    afm7, cohere, cohere2, exaone, gemma, gemma2, gpt_neox, granitemoe, helium, internlm2, internlm3, minicpm, nemotron, phi, stablelm, starcoder2,
    telechat3,
)
from recurrent_shapes import (
    bailing_hybrid, bailing_moe_linear, bailing_moe_v3, falcon_h1, gear, granite_hybrid, granite_hybrid_experts, jamba, kimi_linear, mamba, mamba2,
    nemotron_h, nemotron_h_experts, olmo_hybrid, plamo2, recurrent_gemma, rwkv7,
)
from shapes import (
    WINDOW, deepseek_v2, deepseek_v3, dots1, ernie4_5, exaone4, gemma3, gemma3_text, gemma4, gemma4_26b, gemma4_31b, glm4, glm4_moe,
    glm4_moe_lite, gpt_oss, granite, hunyuan, lfm2, lfm2_moe, llama, mimo, ministral3, mistral, mistral3, mixtral, olmo2, olmo3, olmoe, phi3,
    qwen2, qwen2_moe, qwen3, qwen3_5, qwen3_5_moe, qwen3_moe, qwen3_next, seed_oss, smollm3,
)

from vlm_shapes import (
    BLOCKS, HY_V4_STREAMS, QWEN4_TWO_STREAMS, cohere2_moe, deepseek_v4, hrm_text, hy_v4, k2_horizon, kolibri1, longcat_sparse,
    minimax_m3_text, qwen4_exp, xing4_0,
)


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


def rope(kind, **values):
    return {"rope_scaling": {"rope_type": kind, **values}}


LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
YARN = rope("yarn", factor=4.0, beta_fast=32.0, beta_slow=1.0, original_max_position_embeddings=1024)


def long_factors(half):
    return {
        "long_factor": [1.0 + 0.37 * index for index in range(half)],
        "short_factor": [1.0 + 0.05 * index for index in range(half)],
    }


Q = Quantization
BF16, F16, F32 = "bfloat16", "float16", "float32"

GEMMA4 = [
    Variant("gemma4-e2b", gemma4(), layout=(layouts.inside_model,), towers=("model.vision_tower", "model.audio_tower", "model.embed_vision")),
    Variant("gemma4-e2b-4bit", gemma4(), BF16, Q(4, 64)),
    Variant("gemma4-e4b-8bit", gemma4(num_key_value_heads=2, use_double_wide_mlp=False), BF16, Q(8, 32), towers=("vision_tower", "audio_tower")),
    Variant("gemma4-text-f16", gemma4("gemma4_text"), F16),
    Variant("gemma4-unified", gemma4("gemma4_unified"), BF16, layout=(layouts.inside_model,), towers=("model.vision_embedder",)),
    Variant("gemma4-31b", gemma4_31b(), layout=(layouts.inside_model,), towers=("model.vision_tower",)),
    Variant("gemma4-31b-4bit", gemma4_31b(), BF16, Q(4, 32)),
    Variant("gemma4-26b", gemma4_26b(), layout=(layouts.gemma4_experts, layouts.inside_model), towers=("model.vision_tower",)),
    Variant("gemma4-26b-4bit", gemma4_26b(), F32, Q(4, 64)),
    Variant("gemma4-26b-mxfp4", gemma4_26b(), F32, Q(4, 32, "mxfp4")),
]

LLAMA = [
    Variant("llama-llama3", llama(**LLAMA3)),
    Variant("llama-linear", llama(**rope("linear", factor=4.0), tie_word_embeddings=True)),
    Variant("llama-dynamic", llama(**rope("dynamic", factor=4.0), max_position_embeddings=64), steps_alike=False),
    Variant("llama-yarn-bf16", llama(**YARN), BF16),
    Variant("llama-longrope", llama(**rope("longrope", original_max_position_embeddings=64, **long_factors(16)))),
    Variant("llama-bias-f16", llama(attention_bias=True, mlp_bias=True, head_dim=64), F16),
    Variant("llama-sliding-4bit", llama(layer_types=["sliding_attention", "full_attention"] * 2, sliding_window=WINDOW, num_hidden_layers=4), BF16, Q(4, 32)),
    Variant("llama-2bit", llama(), F32, Q(2, 32)),
    Variant("llama-3bit", llama(), BF16, Q(3, 64)),
    Variant("llama-5bit", llama(tie_word_embeddings=True), BF16, Q(5, 32)),
    Variant("llama-6bit", llama(intermediate_size=256), F16, Q(6, 128)),
    Variant("llama-4bit-128", llama(intermediate_size=256), BF16, Q(4, 128)),
    Variant("llama-mixed", llama(), BF16, Q(4, 64, mixed=True)),
    Variant("llama-nvfp4", llama(tie_word_embeddings=True), BF16, Q(4, 16, "nvfp4")),
    Variant("mistral-sharded", mistral(), BF16, shards=3),
    Variant("mistral-8bit-no-index", mistral(), BF16, Q(8, 64), shards=2, index=False),
    Variant("ministral3", ministral3()),
    Variant("ministral3-4bit", ministral3(tie_word_embeddings=True), BF16, Q(4, 32)),
    Variant("mistral3-ministral3", mistral3(ministral3()), layout=(layouts.inside_model,), towers=("model.vision_tower", "model.multi_modal_projector")),
    Variant("mistral3-mistral-4bit", mistral3(mistral()), BF16, Q(4, 64), towers=("vision_tower",)),
]

QWEN = [
    Variant("qwen2", qwen2()),
    Variant("qwen2-tied-6bit", qwen2(tie_word_embeddings=True), F16, Q(6, 64)),
    Variant("qwen3", qwen3(tie_word_embeddings=True)),
    Variant("qwen3-4bit", qwen3(tie_word_embeddings=True), BF16, Q(4, 64), shards=2),
    Variant("qwen3-mxfp8", qwen3(), BF16, Q(8, 32, "mxfp8")),
    Variant("qwen3-yarn", qwen3(**YARN)),
    Variant("qwen3-moe", qwen3_moe(), layout=(layouts.single_experts,)),
    Variant("qwen3-moe-4bit", qwen3_moe(), F32, Q(4, 64)),
    Variant("qwen3-moe-mxfp4", qwen3_moe(tie_word_embeddings=True), F32, Q(4, 32, "mxfp4")),
    Variant("qwen3.5", qwen3_5(), layout=(layouts.raw_delta_net, layouts.inside_model), towers=("model.visual", "mtp.layers.0")),
    Variant("qwen3.5-tied-4bit", qwen3_5(tie_word_embeddings=True), BF16, Q(4, 64), towers=("vision_tower",)),
    Variant("qwen3.5-moe", qwen3_5_moe(), layout=(layouts.joined_experts, layouts.raw_delta_net, layouts.inside_model), towers=("model.visual",)),
    Variant("qwen3.5-moe-4bit", qwen3_5_moe(tie_word_embeddings=True), F32, Q(4, 64)),
    Variant("qwen3-next", qwen3_next(), layout=(layouts.single_experts, layouts.raw_delta_net), towers=("mtp.layers.0",)),
    Variant("qwen3-next-4bit", qwen3_next(linear_num_value_heads=8), BF16, Q(4, 64)),
]

OTHERS = [
    Variant("gemma3-text", gemma3_text(), headless=True),
    Variant("gemma3-text-untied-4bit", gemma3_text(num_hidden_layers=3), BF16, Q(4, 32)),
    Variant("gemma3-4bit", gemma3(gemma3_text(num_hidden_layers=3)), BF16, Q(4, 64), towers=("vision_tower",), headless=True),
    Variant("gpt-oss", gpt_oss()),
    Variant("gpt-oss-mxfp4", gpt_oss(), F32, Q(4, 32, "mxfp4", mixed=True), layout=(layouts.packed_blocks,)),
    Variant("gpt-oss-4bit", gpt_oss(), F32, Q(4, 64)),
    Variant("phi3", phi3()),
    Variant("phi3-su-4bit", phi3(rope_scaling={"type": "su", **long_factors(16)}), BF16, Q(4, 64)),
    Variant("phi3-partial-longrope", phi3(partial_rotary_factor=0.5, rope_scaling={"type": "longrope", **long_factors(8)}, tie_word_embeddings=True)),
    Variant("smollm3", smollm3()),
    Variant("smollm3-4bit", smollm3(), BF16, Q(4, 64)),
    Variant("glm4", glm4()),
    Variant("glm4-4bit", glm4(), BF16, Q(4, 64)),
    Variant("glm4-moe", glm4_moe(), layout=(layouts.single_experts,)),
    Variant("glm4-moe-groups-4bit", glm4_moe(n_group=4, topk_group=2, use_qk_norm=False), F32, Q(4, 64)),
    Variant("lfm2", lfm2(), layout=(layouts.raw_short_conv,)),
    Variant("lfm2-8bit", lfm2(conv_bias=True), BF16, Q(8, 64)),
    Variant("lfm2-moe", lfm2_moe(), layout=(layouts.single_experts, layouts.raw_short_conv)),
    Variant("lfm2-moe-4bit", lfm2_moe(), F32, Q(4, 64)),
    Variant("seed-oss", seed_oss()),
    Variant("hunyuan", hunyuan()),
    Variant("hunyuan-4bit", hunyuan(num_key_value_heads=4), BF16, Q(4, 64)),
    Variant("ernie4.5", ernie4_5()),
    Variant("ernie4.5-bias-4bit", ernie4_5(use_bias=True, tie_word_embeddings=True), BF16, Q(4, 64)),
    Variant("exaone4", exaone4()),
    Variant("exaone4-full-4bit", exaone4(sliding_window=None, sliding_window_pattern=None, tie_word_embeddings=True), BF16, Q(4, 32)),
    Variant("mimo", mimo()),
    Variant("granite", granite()),
    Variant("granite-tied-4bit", granite(tie_word_embeddings=True), BF16, Q(4, 64)),
    Variant("olmo2", olmo2()),
    Variant("olmo2-5bit", olmo2(), BF16, Q(5, 64)),
    Variant("olmo3", olmo3()),
    Variant("olmo3-4bit", olmo3(), BF16, Q(4, 64)),
    Variant("deepseek-v2", deepseek_v2(), layout=(layouts.single_experts,)),
    Variant("deepseek-v2-4bit", deepseek_v2(), F32, Q(4, 64)),
    Variant("deepseek-v3", deepseek_v3(), layout=(layouts.single_experts, layouts.joined_latents)),
    Variant("deepseek-v3-4bit", deepseek_v3(), F32, Q(4, 32)),
    Variant("glm4-moe-lite", glm4_moe_lite()),
    Variant("glm4-moe-lite-mxfp8", glm4_moe_lite(), F32, Q(8, 32, "mxfp8")),
    Variant("dots1", dots1()),
    Variant("mixtral", mixtral(), layout=(layouts.mixtral_experts,)),
    Variant("mixtral-4bit", mixtral(), F32, Q(4, 64)),
    Variant("qwen2-moe", qwen2_moe(), layout=(layouts.single_experts,)),
    Variant("qwen2-moe-4bit", qwen2_moe(), F32, Q(4, 64)),
    Variant("olmoe", olmoe(), layout=(layouts.single_experts,)),
]

FURTHER = [
    Variant("afm7", afm7()),
    Variant("afm7-bf16", afm7(num_kv_reuse_layers=1), BF16),
    Variant("afm7-f16", afm7(num_kv_reuse_layers=1, num_layers=3, num_kv_heads=4), F16),
    Variant("gemma1", gemma(), repair=repairs.gemma_gelu),
    Variant("gemma1-4bit", gemma(num_key_value_heads=4), BF16, Q(4, 64), repair=repairs.gemma_gelu),
    Variant("gemma2", gemma2(), repair=repairs.gemma2_windows),
    Variant("gemma2-f16", gemma2(), F16, repair=repairs.gemma2_windows),
    Variant("gemma2-4bit", gemma2(), BF16, Q(4, 32), repair=repairs.gemma2_windows),
    Variant("starcoder2", starcoder2()),
    Variant("starcoder2-f16", starcoder2(tie_word_embeddings=False), F16),
    Variant("starcoder2-4bit", starcoder2(), BF16, Q(4, 64)),
    Variant("cohere", cohere()),
    Variant("cohere-bias-f16", cohere(attention_bias=True, layer_norm_bias=True), F16),
    Variant("cohere-4bit", cohere(), BF16, Q(4, 64)),
    Variant("cohere2", cohere2()),
    Variant("cohere2-8bit", cohere2(num_hidden_layers=4, sliding_window_pattern=4), BF16, Q(8, 32)),
    Variant("cohere2-4bit", cohere2(), BF16, Q(4, 64)),
    Variant("phi", phi()),
    Variant("phi-f16", phi(num_key_value_heads=2, partial_rotary_factor=0.5), F16),
    Variant("phi-4bit", phi(), BF16, Q(4, 64)),
    Variant("stablelm", stablelm()),
    Variant("stablelm-parallel", stablelm(use_parallel_residual=True, use_qkv_bias=False)),
    Variant("stablelm-4bit", stablelm(), BF16, Q(4, 64)),
    Variant("internlm2", internlm2()),
    Variant("internlm2-bias-f16", internlm2(bias=True, num_key_value_heads=1), F16),
    Variant("internlm2-4bit", internlm2(tie_word_embeddings=True), BF16, Q(4, 64)),
    Variant("internlm3", internlm3()),
    Variant("internlm3-bias-f16", internlm3(bias=True, qkv_bias=True), F16),
    Variant("internlm3-4bit", internlm3(), BF16, Q(4, 64)),
    Variant("minicpm", minicpm()),
    Variant("minicpm-f16", minicpm(num_hidden_layers=5), F16),
    Variant("minicpm-4bit", minicpm(), BF16, Q(4, 32)),
    Variant("helium", helium()),
    Variant("helium-bias-f16", helium(attention_bias=True), F16),
    Variant("helium-4bit", helium(), BF16, Q(4, 64)),
    Variant("nemotron", nemotron()),
    Variant("nemotron-bias-f16", nemotron(attention_bias=True, mlp_bias=True, partial_rotary_factor=0.25), F16),
    Variant("nemotron-4bit", nemotron(), BF16, Q(4, 64)),
    Variant("exaone", exaone()),
    Variant("exaone-llama3-f16", exaone(**LLAMA3), F16),
    Variant("exaone-4bit", exaone(tie_word_embeddings=False), BF16, Q(4, 64)),
    Variant("gpt_neox", gpt_neox(), layout=(layouts.neox,)),
    Variant("gpt_neox-in-turn-f16", gpt_neox(use_parallel_residual=False, rotary_pct=0.5), F16),
    Variant("gpt_neox-4bit", gpt_neox(), BF16, Q(4, 64)),
    Variant("granitemoe", granitemoe(), layout=(layouts.granite_experts,)),
    Variant("granitemoe-untied", granitemoe(tie_word_embeddings=False, attention_bias=True)),
    Variant("granitemoe-4bit", granitemoe(), F32, Q(4, 64)),
    Variant("telechat3", telechat3()),
    Variant("telechat3-f16", telechat3(tie_word_embeddings=True, rope_scaling=None), F16),
    Variant("telechat3-4bit", telechat3(), BF16, Q(4, 64)),
]

NARROW = {"n_embd": 192, "n_head": 6}

DENSE = [
    Variant("minicpm3", minicpm3()),
    Variant("minicpm3-f16", minicpm3(hidden_size=192, num_attention_heads=6, num_key_value_heads=6, num_hidden_layers=5), F16),
    Variant("minicpm3-4bit", minicpm3(), BF16, Q(4, 32)),
    Variant("youtu-llm", youtu_llm()),
    Variant("youtu-llm-direct-f16", youtu_llm(q_lora_rank=None, mlp_bias=True, tie_word_embeddings=False), F16),
    Variant("youtu-llm-4bit", youtu_llm(), BF16, Q(4, 32)),
    Variant("glm", glm(), repair=repairs.glm_half_turns),
    Variant("glm-plain-f16", glm(attention_bias=False, num_key_value_heads=1, tie_word_embeddings=True), F16, repair=repairs.glm_half_turns),
    Variant("glm-4bit", glm(), BF16, Q(4, 64), repair=repairs.glm_half_turns),
    Variant("qwen1", qwen1()),
    Variant("qwen1-bias-f16", qwen1(no_bias=False, hidden_size=192, num_attention_heads=6), F16),
    Variant("qwen1-4bit", qwen1(), BF16, Q(4, 64)),
    Variant("iquest-loop", iquest_loop()),
    Variant("iquest-loop-bias-f16", iquest_loop(attention_bias=True, mlp_bias=True, num_key_value_heads=1, loop_window_size=9), F16),
    Variant("iquest-loop-4bit", iquest_loop(tie_word_embeddings=True), BF16, Q(4, 64)),
    Variant("lille", lille()),
    Variant("lille-f16", lille(**NARROW, n_kv_heads=3), F16),
    Variant("lille-4bit", lille(), BF16, Q(4, 64)),
    Variant("openelm", openelm()),
    Variant("openelm-untied-f16", openelm(normalize_qk_projections=False, share_input_output_layers=False), F16),
    Variant("openelm-4bit", openelm(), BF16, Q(4, 32)),
    Variant("deepseek-v1", deepseek(), layout=(layouts.single_experts,)),
    Variant("deepseek-v1-dense-f16", deepseek(n_routed_experts=None, num_key_value_heads=2), F16),
    Variant("deepseek-v1-4bit", deepseek(), F32, Q(4, 64)),
    Variant("gptj", gptj(), layout=(layouts.in_transformer,)),
    Variant("gptj-whole-f16", gptj(**NARROW, rotary_dim=None), F16),
    Variant("gptj-4bit", gptj(), BF16, Q(4, 64)),
    Variant("gpt2", gpt2()),
    Variant("gpt2-conv1d-f16", gpt2(**NARROW), F16, layout=(layouts.conv1d,)),
    Variant("gpt2-4bit", gpt2(), BF16, Q(4, 64)),
    Variant("gpt_bigcode", gpt_bigcode(), repair=repairs.bigcode_heads),
    Variant("gpt_bigcode-by-head-f16", gpt_bigcode(multi_query=False, tie_word_embeddings=False), F16, repair=repairs.bigcode_heads),
    Variant("gpt_bigcode-4bit", gpt_bigcode(**NARROW), BF16, Q(4, 64), repair=repairs.bigcode_heads),
    Variant("nanochat", nanochat()),
    Variant("nanochat-shared-f16", nanochat(num_key_value_heads=2, intermediate_size=320), F16),
    Variant("nanochat-4bit", nanochat(), BF16, Q(4, 64)),
    Variant("apertus", apertus(), layout=(layouts.xielu_factors,)),
    Variant("apertus-bias-f16", apertus(mlp_bias=True, rope_scaling=None, tie_word_embeddings=True), F16),
    Variant("apertus-4bit", apertus(), BF16, Q(4, 64)),
    Variant("olmo1", olmo1(), repair=repairs.olmo1),
    Variant("olmo1-clipped-f16", olmo1(clip_qkv=1.5, d_model=192, n_heads=6), F16, repair=repairs.olmo1_clipped),
    Variant("olmo1-4bit", olmo1(), BF16, Q(4, 64), repair=repairs.olmo1),
    Variant("nanbeige", nanbeige()),
    Variant("nanbeige-thrice-f16", nanbeige(loop_loss_weights=[0.2, 0.3], skip_loop_final_norm=True, tie_word_embeddings=True), F16),
    Variant("nanbeige-4bit", nanbeige(), BF16, Q(4, 64)),
    Variant("nemotron_nas", nemotron_nas()),
    Variant("nemotron_nas-bias-f16", nemotron_nas(attention_bias=True, mlp_bias=True), F16),
    Variant("nemotron_nas-4bit", nemotron_nas(), BF16, Q(4, 64)),
    Variant("plamo", plamo()),
    Variant("plamo-one-key-f16", plamo(n_shared_head=6), F16),
    Variant("plamo-4bit", plamo(hidden_size=256, num_attention_heads=8, num_key_value_heads=8, n_shared_head=4), BF16, Q(4, 64)),
    Variant("baichuan-m1", baichuan_m1()),
    Variant("baichuan-m1-4bit", baichuan_m1(hidden_size=128), BF16, Q(4, 64)),
    Variant("baichuan-m1-alike-f16", baichuan_m1(num_swa_attention_heads=None, num_swa_key_value_heads=None, num_key_value_heads=1, rope_theta=100000.0), F16),
    Variant("plamo3", plamo3(), repair=repairs.plamo3_windows),
    Variant("plamo3-untied-f16", plamo3(tie_word_embeddings=False, sliding_window_pattern=3, num_key_value_heads=1), F16, repair=repairs.plamo3_windows),
    Variant("plamo3-4bit", plamo3(), BF16, Q(4, 64), repair=repairs.plamo3_windows),
    Variant("bitnet", bitnet(), repair=repairs.ternary_products),
    Variant("bitnet-untied", bitnet(tie_word_embeddings=False, num_key_value_heads=1, intermediate_size=160), repair=repairs.ternary_products),
    Variant("bitnet-bf16", bitnet(), BF16, repair=repairs.ternary_products),
    Variant("talkie", talkie()),
    Variant("talkie-f16", talkie(hidden_size=192, num_attention_heads=6, num_key_value_heads=6), F16),
    Variant("talkie-4bit", talkie(), BF16, Q(4, 64)),
]

EXPERTS = [
    Variant("ernie4.5-moe", ernie4_5_moe(), layout=(layouts.single_experts,)),
    Variant("ernie4.5-moe-4bit", ernie4_5_moe(tie_word_embeddings=True), F32, Q(4, 64)),
    Variant("ernie4.5-moe-sigmoid", ernie4_5_moe(moe_gate_act="sigmoid", moe_layer_start_index=0, moe_layer_end_index=1, num_key_value_heads=1)),
    Variant("bailing-moe", bailing_moe(), layout=(layouts.single_experts, layouts.bare_router)),
    Variant("bailing-moe-4bit", bailing_moe(), F32, Q(4, 64)),
    Variant("bailing-moe-softmax", bailing_moe(score_function="softmax", moe_router_enable_expert_bias=False, use_qkv_bias=True, use_qk_norm=False, n_group=1, rotary_dim=20, partial_rotary_factor=0.625, num_shared_experts=2)),
    Variant("exaone-moe", exaone_moe(), layout=(layouts.single_experts, layouts.bias_beside_router)),
    Variant("exaone-moe-4bit", exaone_moe(tie_word_embeddings=True), F32, Q(4, 64)),
    Variant("exaone-moe-full-groups", exaone_moe(layer_types=["full_attention"] * 4, n_group=4, topk_group=2, num_shared_experts=2)),
    Variant("solar-open", solar_open(), layout=(layouts.single_experts,)),
    Variant("solar-open-4bit", solar_open(), F32, Q(4, 32)),
    Variant("solar-open-groups", solar_open(n_group=4, topk_group=2, use_qk_norm=True, attention_bias=True)),
    Variant("mellum", mellum(), layout=(layouts.single_experts,)),
    Variant("mellum-4bit", mellum(tie_word_embeddings=True), F32, Q(4, 64)),
    Variant("mellum-unnormalised", mellum(norm_topk_prob=False, num_key_value_heads=1)),
    Variant("minimax-m2", minimax_m2(), layout=(layouts.mixtral_experts,)),
    Variant("minimax-m2-4bit", minimax_m2(), F32, Q(4, 64)),
    Variant("minimax-m2-early", {**minimax_m2(tie_word_embeddings=True, rotary_dim=32), "model_type": "minimax"}),
    Variant("hunyuan-moe", hunyuan_moe(), layout=(layouts.single_experts,), repair=repairs.hunyuan_shares),
    Variant("hunyuan-moe-4bit", hunyuan_moe(num_key_value_heads=4), F32, Q(4, 64), repair=repairs.hunyuan_shares),
    Variant("hunyuan-moe-single", hunyuan_moe(moe_topk=1, num_shared_expert=2, moe_intermediate_size=64, attention_bias=True), repair=repairs.hunyuan_shares),
    Variant("afmoe", afmoe(), layout=(layouts.single_experts,)),
    Variant("afmoe-4bit", afmoe(), F32, Q(4, 64)),
    Variant("afmoe-groups", afmoe(n_group=4, topk_group=2, mup_enabled=False, num_shared_experts=2, num_dense_layers=2)),
    Variant("laguna", laguna(), layout=(layouts.single_experts, layouts.laguna_router)),
    Variant("laguna-4bit", laguna(), F32, Q(4, 64)),
    Variant("laguna-softplus", laguna(moe_router_score_func="sqrtsoftplus", moe_router_logit_softcapping=1.5, qkv_bias=True, attention_bias=True)),
    Variant("klear", klear(), layout=(layouts.single_experts,)),
    Variant("klear-4bit", klear(), F32, Q(4, 64)),
    Variant("klear-sparse", klear(mlp_only_layers=[], decoder_sparse_step=2, n_shared_experts=2, norm_topk_prob=False)),
    Variant("phimoe", phimoe(), layout=(layouts.mixtral_experts,)),
    Variant("phimoe-4bit", phimoe(num_hidden_layers=2), F32, Q(4, 64)),
    Variant("phimoe-plain", phimoe(rope_scaling=None, num_hidden_layers=2, num_key_value_heads=4)),
    Variant("phixtral-4x", phixtral(), layout=(layouts.phixtral_experts,)),
    Variant("phixtral-4x-4bit", phixtral(num_local_experts=2, rotary_dim=32), F32, Q(4, 64)),
    Variant("phixtral-4x-one", phixtral(num_experts_per_tok=1, num_heads=2)),
    Variant("mistral4", mistral4(), layout=(layouts.single_experts, layouts.joined_latents)),
    Variant("mistral4-4bit", mistral4(tie_word_embeddings=True), F32, Q(4, 32)),
    Variant("mistral4-groups", mistral4(n_group=4, topk_group=2, q_lora_rank=None, first_k_dense_replace=0, rope_interleave=False)),
    Variant("muse-glimmer", muse_glimmer(), layout=(layouts.beside_a_tower,), towers=("vision_tower", "vision_adapter")),
    Variant("muse-glimmer-4bit", muse_glimmer(tie_word_embeddings=True), BF16, Q(4, 64)),
    Variant("muse-glimmer-f16", muse_glimmer(num_key_value_heads=1, layer_types=["sliding_attention", "full_attention"] * 2), F16),
    Variant("spark2.5", spark2_5()),
    Variant("spark2.5-4bit", spark2_5(tie_word_embeddings=False), BF16, Q(4, 64)),
    Variant("spark2.5-bias-f16", spark2_5(attention_bias=True, mlp_bias=True, num_key_value_heads=3), F16),
    Variant("step3.5", step3p5(), layout=(layouts.step_experts,)),
    Variant("step3.5-4bit", step3p5(), F32, Q(4, 64)),
    Variant("step3.5-ungated", step3p5(moe_layers_enum=None, rope_theta=10000.0, yarn_only_types=None, use_head_wise_attn_gate=False)),
    Variant("llama4", llama4(), layout=(layouts.llama4_experts,), towers=("vision_model", "multi_modal_projector")),
    Variant("llama4-4bit", llama4(interleave_moe_layer_step=2), F32, Q(4, 64)),
    Variant("llama4-bare", llama4(use_qk_norm=False, attention_bias=True, rope_scaling=None, attn_temperature_tuning=0, num_key_value_heads=4)),
    Variant("llama4-text", llama4_text()),
    Variant("llama4-text-4bit", llama4_text(tie_word_embeddings=False), BF16, Q(4, 64)),
    Variant("llama4-text-f16", llama4_text(use_qk_norm=False, no_rope_layers=[1, 0, 1, 1], num_key_value_heads=1), F16),
    Variant("mimo-v2-flash", mimo_v2_flash(), layout=(layouts.single_experts,)),
    Variant("mimo-v2-flash-4bit", mimo_v2_flash(), F32, Q(4, 64)),
    Variant("mimo-v2-flash-sinks", mimo_v2_flash(add_full_attention_sink_bias=True, attention_value_scale=None, v_head_dim=64, n_shared_experts=1, n_group=4, topk_group=2, routed_scaling_factor=1.5)),
    Variant("deepseek-v32", deepseek_v32(), layout=(layouts.single_experts, layouts.joined_latents)),
    Variant("deepseek-v32-4bit", deepseek_v32(), F32, Q(4, 32)),
    Variant("deepseek-v32-interleaved", deepseek_v32(indexer_rope_interleave=True, rope_scaling=None, index_topk=60, index_head_dim=32)),
    Variant("glm-moe-dsa", glm_moe_dsa(), layout=(layouts.single_experts,)),
    Variant("glm-moe-dsa-4bit", glm_moe_dsa(), F32, Q(4, 64)),
    Variant("glm-moe-dsa-all", glm_moe_dsa(index_topk=2048, attention_bias=True)),
    Variant("dbrx", dbrx()),
    Variant("dbrx-4bit", dbrx(), F32, Q(4, 64)),
    Variant("dbrx-one-key", dbrx(n_layers=2, attn_config={"clip_qkv": 1.0, "kv_n_heads": 1, "rope_theta": 10000})),
    Variant("phi-3-small", phi3small(), repair=repairs.phi3small),
    Variant("phi-3-small-4bit", phi3small(blocksparse_num_local_blocks=2, ff_intermediate_size=128), F32, Q(4, 64), repair=repairs.phi3small),
    Variant(
        "phi-3-small-scaled",
        phi3small(mup_use_scaling=False, mup_embedding_multiplier=0.0, mup_width_multiplier=0.0, num_hidden_layers=4, dense_attention_every_n_layers=3, num_key_value_heads=4, blocksparse_vert_stride=2),
        repair=repairs.phi3small,
    ),
    Variant("minimax-m3", minimax_m3(), layout=(layouts.minimax_experts,)),
    Variant("minimax-m3-4bit", minimax_m3(head_dim=64, rotary_dim=32), F32, Q(4, 64)),
    Variant(
        "minimax-m3-local",
        minimax_m3(
            num_attention_heads=6, num_key_value_heads=3, tie_word_embeddings=True, use_gemma_norm=False, shared_intermediate_size=96,
            sparse_attention_config=None, layer_types=["minimax_m3_sparse", "full_attention"] * 2, mlp_layer_types=["sparse", "dense"] * 2,
            index_n_heads=3, index_head_dim=64, index_block_size=8, index_topk_blocks=5, index_local_blocks=2,
        ),
    ),
    Variant("longcat-flash", longcat_flash(), layout=(layouts.single_experts, layouts.joined_latents)),
    Variant("longcat-flash-4bit", longcat_flash(hidden_size=128, routed_scaling_factor=1.5), F32, Q(4, 32)),
    Variant("longcat-lite", longcat_lite(), layout=(layouts.single_experts, layouts.joined_latents), repair=repairs.longcat_runs),
    Variant("longcat-lite-4bit", longcat_lite(hidden_size=128, emb_neighbor_num=3, emb_split_num=1), F32, Q(4, 32), repair=repairs.longcat_runs),
    Variant("longcat-lite-long-runs", longcat_lite(emb_neighbor_num=6, emb_split_num=3, ngram_vocab_size_ratio=1, num_layers=1), repair=repairs.longcat_runs),
    Variant("longcat-flash-normalised", longcat_flash(norm_topk_prob=True, router_bias=True, attention_bias=True, zero_expert_num=1, num_layers=3)),
]

RECURRENT = [
    Variant("granite-hybrid", granite_hybrid(), layout=(layouts.raw_scan, layouts.granite_shared)),
    Variant("granite-hybrid-4bit", granite_hybrid(mamba_n_groups=1), BF16, Q(4, 64)),
    Variant("granite-hybrid-experts", granite_hybrid_experts(), layout=(layouts.raw_scan, layouts.granite_experts)),
    Variant("granite-hybrid-experts-8bit", granite_hybrid_experts(time_step_limit=[0.4, 1.5]), F32, Q(8, 32)),
    Variant("granite-hybrid-attention", granite_hybrid(layer_types=["attention"] * 4, position_embedding_type="rope"), F16),
    Variant("nemotron-h", nemotron_h(), layout=(layouts.raw_scan,)),
    Variant("nemotron-h-4bit", nemotron_h(mamba_head_dim=32, time_step_limit=[0.3, 1.1]), BF16, Q(4, 64)),
    Variant("nemotron-h-bias-f16", nemotron_h(attention_bias=True, mlp_bias=True, mamba_proj_bias=True, n_groups=1), F16),
    Variant("nemotron-h-experts", nemotron_h_experts(), layout=(layouts.raw_scan, layouts.single_ungated_experts), towers=("mtp.layers.0",)),
    Variant("nemotron-h-experts-4bit", nemotron_h_experts(mamba_head_dim=32, n_group=4, topk_group=2), F32, Q(4, 64)),
    Variant("nemotron-h-latents", nemotron_h_experts(moe_latent_size=64, hidden_size=128), layout=(layouts.raw_scan, layouts.single_ungated_experts)),
    Variant("falcon-h1", falcon_h1(), layout=(partial(layouts.falcon_h1, falcon_h1()),), repair=repairs.falcon_h1_keys),
    Variant("falcon-h1-4bit", falcon_h1(), BF16, Q(4, 64), repair=repairs.falcon_h1_keys),
    Variant("falcon-h1-tied-norm-f16", falcon_h1(tie_word_embeddings=True, mamba_rms_norm=True, mamba_n_groups=1), F16, repair=repairs.falcon_h1_keys),
    Variant("falcon-h1-norm-first", falcon_h1(mamba_rms_norm=True, mamba_norm_before_gate=True, mamba_n_groups=1), repair=repairs.falcon_h1_keys),
    Variant("mamba2", mamba2(), layout=(layouts.raw_scan,)),
    Variant("mamba2-4bit", mamba2(n_groups=1), BF16, Q(4, 64)),
    Variant("mamba2-tied-bias-f16", mamba2(tie_word_embeddings=True, use_bias=True, use_conv_bias=False, time_step_limit=[0.2, 1.3]), F16),
    Variant("olmo-hybrid", olmo_hybrid(), layout=(layouts.raw_convs,)),
    Variant("olmo-hybrid-4bit", olmo_hybrid(linear_value_head_dim=64, linear_num_key_heads=6), BF16, Q(4, 64)),
    Variant(
        "olmo-hybrid-turned-f16",
        olmo_hybrid(linear_allow_neg_eigval=False, attention_bias=True, rope_parameters={"rope_theta": 500000.0, "rope_type": "default"}),
        F16,
    ),
    Variant("mamba", mamba(), layout=(layouts.raw_scan,)),
    Variant("mamba-4bit", mamba(time_step_rank=64), BF16, Q(4, 64)),
    Variant("mamba-bias-f16", mamba(tie_word_embeddings=False, use_bias=True, use_conv_bias=False, time_step_rank="auto"), F16),
    Variant("falcon-mamba", mamba(model_type="falcon_mamba", tie_word_embeddings=False, mixer_rms_eps=1e-3)),
    Variant("jamba", jamba(), layout=(layouts.raw_scan,)),
    Variant("jamba-8bit", jamba(mamba_dt_rank=32, tie_word_embeddings=True, mamba_proj_bias=True), BF16, Q(8, 32)),
    Variant(
        "jamba-experts",
        jamba(num_experts=8, num_experts_per_tok=2, intermediate_size=64),
        layout=(layouts.raw_scan, layouts.single_experts),
        repair=repairs.jamba_shares,
    ),
    Variant("recurrent-gemma", recurrent_gemma(), layout=(layouts.raw_units,), headless=True),
    Variant("recurrent-gemma-4bit", recurrent_gemma(), BF16, Q(4, 64), headless=True),
    Variant("recurrent-gemma-untied-f16", recurrent_gemma(block_types=None, _block_types=["attention", "recurrent"]), F16),
    Variant("kimi-linear", kimi_linear(), layout=(layouts.kimi_linear, layouts.joined_latents)),
    Variant("kimi-linear-4bit", kimi_linear(hidden_size=128, linear_attn_config={"num_heads": 2, "head_dim": 64, "kda_layers": [1, 2, 4]}), F32, Q(4, 32)),
    Variant("kimi-linear-softmax", kimi_linear(moe_router_activation_func="softmax", num_expert_group=1, num_shared_experts=2, moe_layer_freq=2, tie_word_embeddings=True)),
    Variant("ring-linear", bailing_moe_linear(), layout=(layouts.single_experts,)),
    Variant("ring-linear-4bit", bailing_moe_linear(num_attention_heads=6, head_dim=32, hidden_size=192, num_key_value_heads=3), F32, Q(4, 64)),
    Variant("ring-linear-bias", bailing_moe_linear(use_qkv_bias=True, use_qk_norm=False, score_function="softmax", moe_router_enable_expert_bias=False, n_group=1, partial_rotary_factor=1.0)),
    Variant("ling-2.5", bailing_hybrid(), layout=(layouts.single_experts, layouts.joined_latents)),
    Variant("ling-2.5-4bit", bailing_hybrid(tie_word_embeddings=True), F32, Q(4, 32)),
    Variant("ling-2.5-bias", bailing_hybrid(use_qkv_bias=True, use_qk_norm=False, q_lora_rank=None, rope_interleave=False, num_attention_heads=3, num_shared_experts=2)),
    Variant("ling-3", bailing_moe_v3(), layout=(layouts.single_experts, layouts.raw_convs, layouts.joined_latents)),
    Variant("ling-3-4bit", bailing_moe_v3(), F32, Q(4, 32)),
    Variant("ling-3-direct", bailing_moe_v3(q_lora_rank=None, kda_lower_bound=-2.0, tie_word_embeddings=True, first_k_dense_replace=0)),
    Variant("plamo2-1b", plamo2(), layout=(layouts.raw_scan,)),
    Variant("plamo2-1b-4bit", plamo2(num_hidden_layers=3, mamba_step=4, hidden_size_per_head=64, mamba_num_heads=3), BF16, Q(4, 64)),
    Variant("plamo2-1b-untied-f16", plamo2(tie_word_embeddings=False, num_key_value_heads=1, mamba_step=3, full_attention_idx=[1]), F16),
    Variant("rwkv7-g1", rwkv7(), layout=(layouts.flat_heads,)),
    Variant("rwkv7-g1-4bit", rwkv7(hidden_size=128, head_dim=64, decay_low_rank_dim=64, gate_low_rank_dim=128), BF16, Q(4, 64)),
    Variant("rwkv7-g1-tied-f16", rwkv7(tie_word_embeddings=True, num_hidden_layers=1, intermediate_size=80), F16),
    Variant("gear-full", gear(), layout=(layouts.raw_key_convs,)),
    Variant("gear-4bit", gear(hidden_size=128, final_logit_softcapping=8.0), BF16, Q(4, 64)),
    Variant("gear-bias-f16", gear(attention_bias=True, attn_logit_softcapping=3.0, tie_word_embeddings=False, hidden_activation="silu", num_key_value_heads=1, conv_L_cache=4), F16),
]

# Compared with mlx-vlm.
OF_MLX_VLM = [
    Variant("k2-horizon", k2_horizon()),
    Variant("k2-horizon-4bit", k2_horizon(tie_word_embeddings=True), BF16, Q(4, 64)),
    Variant("k2-horizon-yarn-f16", k2_horizon(attention_bias=True, rope_parameters={**YARN["rope_scaling"], "rope_theta": 50000.0}), F16),
    Variant("cohere2-moe", cohere2_moe(), layout=(layouts.single_experts,)),
    Variant("cohere2-moe-4bit", cohere2_moe(shared_expert_combination_strategy="sum", first_k_dense_replace=0), F32, Q(4, 64)),
    Variant("cohere2-moe-softmax", cohere2_moe(expert_selection_fn="softmax", norm_topk_prob=False, attention_bias=True, rms_norm_eps=1e-3, prefix_dense_sliding_window_pattern=2, layer_types=["full_attention", "sliding_attention"] * 2)),
    Variant("kolibri-1", kolibri1(), layout=(layouts.single_experts,)),
    Variant("kolibri-1-4bit", kolibri1(tie_word_embeddings=True), F32, Q(4, 64)),
    Variant("hy-v4", hy_v4(), repair=repairs.hy_v4),
    Variant("hy-v4-4bit", hy_v4(hidden_size=128, index_head_dim=64), F32, Q(4, 32), repair=repairs.hy_v4),
    Variant("hy-v4-two-streams", hy_v4(**HY_V4_STREAMS), repair=repairs.hy_v4),
    Variant("deepseek-v4", deepseek_v4(), layout=(layouts.deepseek_v4,), repair=repairs.deepseek_v4),
    Variant("deepseek-v4-4bit", deepseek_v4(), BF16, Q(4, 32), repair=repairs.deepseek_v4),
    Variant(
        "deepseek-v4-two-streams",
        deepseek_v4(hc_mult=2, hc_sinkhorn_iters=3, hc_eps=1e-3, rms_norm_eps=1e-4, n_shared_experts=2, index_topk=400, num_hash_layers=0, rope_scaling=None, scoring_func="sigmoid", swiglu_limit=0.0),
        repair=repairs.deepseek_v4,
    ),
    Variant("longcat-sparse", longcat_sparse(), layout=(layouts.single_experts, layouts.joined_latents, layouts.single_runs)),
    Variant("longcat-sparse-4bit", longcat_sparse(hidden_size=192, oe_neighbor_num=3, oe_split_num=1), F32, Q(4, 32)),
    Variant("longcat-sparse-halves", longcat_sparse(indexer_rope_interleave=False, index_k_norm_type="layer", index_init_tokens=0, oe_vocab_size_ratio=0, num_layers=1)),
    Variant("hrm-text", hrm_text(), layout=(layouts.hrm_text,), repair=repairs.hrm_text),
    Variant("hrm-text-4bit", hrm_text(tie_word_embeddings=True, num_key_value_heads=2), BF16, Q(4, 32), repair=repairs.hrm_text),
    Variant("hrm-text-bias-f16", hrm_text(attention_bias=True, mlp_bias=True, H_cycles=3, L_cycles=1, num_layers_per_stack=1, num_hidden_layers=6), F16, repair=repairs.hrm_text),
    # One head of the index: mlx-vlm chooses for all heads of an index together, transformers and mlx-lm for each.
    Variant("minimax-m3-text", minimax_m3_text(num_key_value_heads=1, sparse_attention_config={**BLOCKS, "sparse_num_index_heads": 1})),
    Variant("qwen4-exp", qwen4_exp(), layout=(layouts.inside_language_model, layouts.single_experts, layouts.qwen4)),
    Variant("qwen4-exp-4bit", qwen4_exp(hidden_size=128, ple_embed_dim=128, hc_lowrank=32), BF16, Q(4, 32)),
    Variant("qwen4-exp-two-streams", qwen4_exp(**QWEN4_TWO_STREAMS)),
    Variant("xing-4", xing4_0(), layout=(layouts.single_experts, layouts.joined_latents)),
    Variant("xing-4-4bit", xing4_0(hidden_size=128), F32, Q(4, 32)),
    Variant("xing-4-two-streams", xing4_0(hc_mult=2, hc_sinkhorn_iters=3, mhc_h_res_clamp_max=0.5, mhc_h_res_clamp_min=-0.25, n_group=1, topk_group=1)),
    Variant("kolibri-1-shares", kolibri1(norm_topk_prob=False, attention_bias=True, num_key_value_heads=4)),
]

VARIANTS = GEMMA4 + LLAMA + QWEN + OTHERS + FURTHER + DENSE + EXPERTS + RECURRENT + OF_MLX_VLM
