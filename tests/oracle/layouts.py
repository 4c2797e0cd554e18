"""From mlx-lm's names of weights to those of the repositories that models are first published in.

Each function takes and gives a dictionary of arrays by name; mlx-lm's own loader turns them back, which checks them.
"""
import re

import mlx.core as mx


def inside_model(weights):
    """`language_model.model.X` is `model.language_model.X` in files of transformers; the output layer stands outside."""
    renamed = {}
    for name, value in weights.items():
        name = name.replace("language_model.model.", "model.language_model.")
        renamed[name.removeprefix("language_model.")] = value
    return renamed


def single_experts(weights):
    """One tensor per expert instead of one for all."""
    renamed = {}
    for name, value in weights.items():
        if ".switch_mlp." in name:
            for expert in range(value.shape[0]):
                renamed[name.replace(".switch_mlp.", f".experts.{expert}.")] = value[expert]
        else:
            renamed[name] = value
    return renamed


def phixtral_experts(weights):
    """One network per expert, as `moe.mlp` of the published files has it."""
    return {name.replace(".moe.experts.", ".moe.mlp."): value for name, value in single_experts(weights).items()}


def mixtral_experts(weights):
    """As `single_experts`, in Mixtral's names."""
    names = {".gate_proj.": ".w1.", ".down_proj.": ".w2.", ".up_proj.": ".w3."}
    renamed = {}
    for name, value in single_experts(weights).items():
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        renamed[name] = value
    return renamed


def minimax_experts(weights):
    """As `mixtral_experts` for the experts alone: a network beside them keeps its names."""
    names = {".gate_proj.": ".w1.", ".down_proj.": ".w2.", ".up_proj.": ".w3."}
    renamed = {}
    for name, value in single_experts(weights).items():
        for ours, theirs in (names if ".experts." in name else {}).items():
            name = name.replace(ours, theirs)
        renamed[name] = value
    return renamed


def joined_latents(weights):
    """The projection of the latents to the keys and values of each head, as one matrix."""
    renamed = {}
    for name, value in weights.items():
        if ".embed_q." in name:
            rows = mx.concatenate([value.swapaxes(1, 2), weights[name.replace("embed_q", "unembed_out")]], axis=1)
            renamed[name.replace("embed_q", "kv_b_proj")] = rows.flatten(0, 1)
        elif ".unembed_out." not in name:
            renamed[name] = value
    return renamed


def _gate_and_up(weights, marker, joined):
    """Joins the gates and ups of all experts by `joined(gate, up)`."""
    renamed = {}
    for name, value in weights.items():
        if f"{marker}.gate_proj." in name:
            up = weights[name.replace("gate_proj", "up_proj")]
            renamed[name.replace("gate_proj", "gate_up_proj")] = joined(value, up)
        elif f"{marker}.up_proj." not in name:
            renamed[name] = value
    return renamed


def joined_experts(weights):
    """Gates and ups of all experts in one tensor, one after the other."""
    joined = _gate_and_up(weights, "switch_mlp", lambda gate, up: mx.concatenate([gate, up], axis=-2))
    return {re.sub(r"\.switch_mlp\.(\w+)\.weight$", r".experts.\1", name): value for name, value in joined.items()}


def granite_experts(weights):
    """Gates and ups of all experts in one tensor, in Granite's names."""
    joined = _gate_and_up(weights, "switch_mlp", lambda gate, up: mx.concatenate([gate, up], axis=-2))
    names = {"switch_mlp.gate_up_proj": "input_linear", "switch_mlp.down_proj": "output_linear"}
    for ours, theirs in names.items():
        joined = {name.replace(ours, theirs): value for name, value in joined.items()}
    return joined


def gemma4_experts(weights):
    """As `joined_experts`, in Gemma's names."""
    joined = _gate_and_up(weights, "switch_glu", lambda gate, up: mx.concatenate([gate, up], axis=-2))
    return {re.sub(r"\.switch_glu\.(\w+)\.weight$", r".\1", name): value for name, value in joined.items()}


def _interleave(gate, up):
    """Gates and ups by turns, along the rows of matrices and the elements of biases."""
    axis = 1
    return mx.stack([gate, up], axis=axis + 1).reshape(gate.shape[0], 2 * gate.shape[axis], *gate.shape[axis + 1 :])


def packed_blocks(weights):
    """gpt-oss as published: gates and ups by turns, and the experts in mxfp4 as bytes, `_blocks` and `_scales`."""
    joined = _gate_and_up(weights, "experts", _interleave)
    renamed = {}
    for name, value in joined.items():
        name = re.sub(r"(experts\.\w+)\.(bias|scales)$", r"\1_\2", name)
        if re.search(r"experts\.\w+\.weight$", name):
            experts, rows, _ = value.shape
            value = mx.contiguous(value).view(mx.uint8).reshape(experts, rows, -1, 16)
            name = name.replace(".weight", "_blocks")
        renamed[name] = value
    return renamed


def raw_delta_net(weights):
    """Qwen 3.5 as published: the convolution's axes as in torch, and norms whose weights count from 1."""
    norms = ("input_layernorm.weight", "post_attention_layernorm.weight", "model.norm.weight", "q_norm.weight", "k_norm.weight")
    renamed = {}
    for name, value in weights.items():
        if name.endswith("conv1d.weight"):
            value = value.moveaxis(2, 1)
        elif name.endswith(norms):
            value = value - 1.0
        renamed[name] = value
    return renamed


def neox(weights):
    """GPT-NeoX as published: its layers have another name, and the output layer stands outside."""
    names = {"model.h.": "gpt_neox.layers.", "model.embed_out": "embed_out", "model.": "gpt_neox."}
    renamed = {}
    for name, value in weights.items():
        ours = next(ours for ours in names if name.startswith(ours))
        renamed[names[ours] + name.removeprefix(ours)] = value
    return renamed


def raw_short_conv(weights):
    """LFM2 as published: the convolution's axes as in torch."""
    return {name: value.moveaxis(2, 1) if name.endswith("conv.weight") else value for name, value in weights.items()}


def conv1d(weights):
    """GPT-2 as published: projections have their inputs first, and no name begins with `model`."""
    turned = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    return {name.removeprefix("model."): value.T if name.endswith(turned) else value for name, value in weights.items()}


def in_transformer(weights):
    """GPT-J as published."""
    return {name.replace("model.", "transformer."): value for name, value in weights.items()}


def xielu_factors(weights):
    """Apertus as published: each learned factor of its activation is a list of one."""
    learned = ("alpha_p", "alpha_n")
    return {name: value.reshape(1) if name.endswith(learned) else value for name, value in weights.items()}


def _renamed(weights, names):
    """With other words for parts of names."""
    changed = {}
    for name, value in weights.items():
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        changed[name] = value
    return changed


def bare_router(weights):
    """Ling as published: a router without a name of its own inside."""
    return _renamed(weights, {".gate.gate_proj.": ".gate."})


def bias_beside_router(weights):
    """K-EXAONE as published."""
    return _renamed(weights, {".gate.e_score_correction_bias": ".e_score_correction_bias"})


def laguna_router(weights):
    """Laguna as published: the correction stands with the experts."""
    return _renamed(weights, {".gate.proj.": ".gate.", ".gate.e_score_": ".experts.e_score_"})


def beside_a_tower(weights):
    """The text part as it stands in a model that sees."""
    return {f"language_model.{name}": value for name, value in weights.items()}


def step_experts(weights):
    """Step 3.5 as published: experts beside the dense network, and norms whose weights count from 1."""
    names = {
        ".mlp.switch_mlp.": ".moe.",
        ".mlp.gate.gate.": ".moe.gate.",
        ".mlp.gate.router_bias": ".moe.router_bias",
        ".mlp.share_expert.": ".share_expert.",
    }
    return {name: value - 1.0 if "norm" in name else value for name, value in _renamed(weights, names).items()}


def llama4_experts(weights):
    """Llama 4 as published: gates and ups of all experts side by side, and matrices turned."""
    joined = _gate_and_up(weights, "feed_forward.experts", lambda gate, up: mx.concatenate([gate, up], axis=1))
    turned = {}
    for name, value in joined.items():
        bare = re.sub(r"(experts\.\w+)\.weight$", r"\1", name)
        turned[bare] = value if bare == name else value.swapaxes(1, 2)
    return turned


def raw_convs(weights):
    """OLMo Hybrid as published: the axes of its three convolutions as in torch."""
    return {name: value.moveaxis(2, 1) if name.endswith("_conv1d.weight") else value for name, value in weights.items()}


def kimi_linear(weights):
    """Kimi Linear as published: Mixtral's names of experts, and those of its convolutions, with axes as in torch."""
    names = {".gate_proj.": ".w1.", ".down_proj.": ".w2.", ".up_proj.": ".w3."}
    parts = {".mlp.e_score": ".block_sparse_moe.gate.e_score", "_conv.conv.": "_conv1d."}
    parts |= {f".mlp.{part}.": f".block_sparse_moe.{part}." for part in ("experts", "shared_experts", "gate")}
    renamed = {}
    for name, value in single_experts(weights).items():
        if "_conv.conv." in name:
            value = value.moveaxis(2, 1)
        for ours, theirs in (names if ".mlp.experts." in name else {}).items():
            name = name.replace(ours, theirs)
        for ours, theirs in parts.items():
            name = name.replace(ours, theirs)
        renamed[name] = value
    return renamed


def raw_key_convs(weights):
    """Gear as published: the axes of its convolutions as in torch."""
    ends = ("key_conv.weight", "value_conv.weight")
    return {name: value.moveaxis(2, 1) if name.endswith(ends) else value for name, value in weights.items()}


def raw_units(weights):
    """RecurrentGemma as published: the convolution's axes as in torch."""
    return {name: value.moveaxis(2, 1) if name.endswith("conv_1d.weight") else value for name, value in weights.items()}


def raw_scan(weights):
    """Mamba as published: the convolution's axes as in torch."""
    return {name: value.moveaxis(2, 1) if name.endswith("conv1d.weight") else value for name, value in weights.items()}


def granite_shared(weights):
    """The network of Granite 4.0 H for all tokens: gate and up in one tensor."""
    joined = _gate_and_up(weights, "mlp", lambda gate, up: mx.concatenate([gate, up], axis=0))
    names = {".mlp.gate_up_proj.": ".shared_mlp.input_linear.", ".mlp.down_proj.": ".shared_mlp.output_linear."}
    for ours, theirs in names.items():
        joined = {name.replace(ours, theirs): value for name, value in joined.items()}
    return joined


def falcon_h1(config, weights):
    """Falcon-H1 as published: its factors stand in the config alone."""
    spans = [config["mamba_d_ssm"]] * 2 + [config["mamba_n_groups"] * config["mamba_d_state"]] * 2 + [config["mamba_n_heads"]]
    rows = mx.concatenate([mx.full((span, 1), factor) for span, factor in zip(spans, config["ssm_multipliers"])])
    gate, down = config["mlp_multipliers"]
    factors = {
        "embed_tokens": config["embedding_multiplier"],
        "lm_head": config["lm_head_multiplier"],
        "o_proj": config["attention_out_multiplier"],
        "out_proj": config["ssm_out_multiplier"],
        "in_proj": config["ssm_in_multiplier"] * rows,
        "gate_proj": gate,
        "down_proj": down,
    }
    ends = {f".{name}.weight": factor for name, factor in factors.items()}
    renamed = {}
    for name, value in raw_scan(weights).items():
        factor = next((factor for end, factor in ends.items() if f".{name}".endswith(end)), 1.0)
        renamed[name] = value / factor
    return renamed


def single_ungated_experts(weights):
    """One tensor per expert without a gate instead of one for all."""
    names = {".fc1.": ".up_proj.", ".fc2.": ".down_proj."}
    renamed = {}
    for name, value in single_experts(weights).items():
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        renamed[name] = value
    return renamed


def flat_heads(weights):
    """RWKV 7 as published: factors of heads side by side."""
    ends = (".k_k", ".k_a", ".g_norm.weight", ".g_norm.bias")
    return {name: value.reshape(-1) if name.endswith(ends) else value for name, value in weights.items()}


def deepseek_v4(weights):
    """DeepSeek V4 as its own repository names it: no wrapper, experts one by one, groups of heads below one another."""
    outer = {"embed_tokens": "embed", "lm_head": "head"}
    projections = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"}
    named = {}
    for name, value in weights.items():
        parts = name.removeprefix("model.").split(".")
        parts[0] = outer.get(parts[0], parts[0])
        if parts[-2] in ("attn_hc", "ffn_hc", "hc_head"):
            half = parts[-2].removesuffix("_hc")
            parts[-2:] = [f"hc_{half}_{parts[-1]}" if half != "hc_head" else f"hc_head_{parts[-1]}"]
        elif parts[-1] == "e_score_correction_bias":
            parts[-1] = "bias"
        elif parts[-2] in projections:
            parts[-2] = projections[parts[-2]]
        elif parts[-2] == "wo_a":
            value = value.reshape(-1, value.shape[-1])
        if "switch_mlp" in parts:
            place = parts.index("switch_mlp")
            for expert in range(value.shape[0]):
                named[".".join([*parts[:place], "experts", str(expert), *parts[place + 1 :]])] = value[expert]
        else:
            named[".".join(parts)] = value
    return named


def single_runs(weights):
    """LongCat Flash with an index as published: tables of runs and their projections by numbers."""
    tables = [name for name in weights if ".ngram_embeddings.embedders." in name]
    renamed = {}
    for name, value in weights.items():
        if name.endswith(".ngram_embeddings.word_embeddings.weight"):
            renamed["model.embed_tokens.weight"] = value
        elif name in tables:
            renamed[f"model.oe_embed_tokens{name.split('.')[-2]}.weight"] = value
        elif name.endswith(".ngram_embeddings.post_proj.weight"):
            for table, part in enumerate(mx.split(value, len(tables), axis=1)):
                renamed[f"model.oe_embed_proj{table}.weight"] = part
        else:
            renamed[name] = value
    return renamed


def hrm_text(weights):
    """HRM Text as published: gates and projections of a part joined."""
    joined = {"gqkv_proj": ("gate_proj", "q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
    renamed = {}
    for name, value in weights.items():
        *place, projection, end = name.split(".")
        kind = "gqkv_proj" if "self_attn" in place else "gate_up_proj" if "mlp" in place else None
        if kind is None or projection not in joined[kind]:
            renamed[name.replace(".self_attn.", ".attn.")] = value
        elif projection == joined[kind][0]:
            parts = [weights[".".join([*place, part, end])] for part in joined[kind]]
            renamed[".".join([*place, kind, end]).replace(".self_attn.", ".attn.")] = mx.concatenate(parts)
    return renamed


def inside_language_model(weights):
    """A language part alone as files with a tower beside it have it."""
    return {f"model.language_model.{name.removeprefix('model.')}" if name.startswith("model.") else name: value for name, value in weights.items()}


def qwen4(weights):
    """Qwen 4 as published: convolutions with their axes as in torch, and other names of the tables' parts."""
    turned = {name: value.moveaxis(2, 1) if name.endswith("conv1d.weight") else value for name, value in weights.items()}
    return {name.replace(".ngram_embedding.shards.", ".ngram_embedding.shard_"): value for name, value in turned.items()}


def joined_attention(weights):
    """Queries, keys and values of a layer in one matrix."""
    joined = {}
    for name, value in weights.items():
        if ".self_attn.q_proj." in name:
            parts = [value] + [weights[name.replace("q_proj", part)] for part in ("k_proj", "v_proj")]
            joined[name.replace("q_proj", "qkv_proj")] = mx.concatenate(parts)
        elif not any(part in name for part in (".self_attn.k_proj.", ".self_attn.v_proj.")):
            joined[name] = value
    return joined
