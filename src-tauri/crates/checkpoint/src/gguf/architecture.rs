//! The architectures of GGUF files, a row each: the family that they are here, the names of tensors, and what the
//! converter of llama.cpp changed in the numbers.

use super::blocks::Half;
use super::hybrid::{gemma4, qwen35, LayerReader};

/// Pairs of names: in GGUF files, then in those of Hugging Face.
pub type Names = &'static [(&'static str, &'static str)];

/// The meaning of `attention_bias` in a family's config.json.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Biases {
    /// All four projections have biases, or none has.
    All,
    /// Queries, keys and values have biases; the output has none, or its own field.
    Inputs,
    /// Nothing: the family has those that it has.
    Fixed,
}

/// An architecture.
#[derive(Debug, Clone, Copy)]
pub struct Architecture {
    /// `general.architecture`.
    pub name: &'static str,
    /// True if it is about files with experts.
    pub experts: bool,
    /// `model_type` of config.json.
    pub model_type: &'static str,
    /// The class in `architectures`.
    pub class: &'static str,
    /// Names of a layer's parts that differ from [`LAYER`], and whole names of tensors that Hugging Face's files have
    /// without an end.
    pub names: Names,
    /// Tensors outside of layers beside [`TOP`].
    pub top: Names,
    /// True if rows of queries and keys have the halves of a head's rotation side by side, by turns.
    pub turned: bool,
    /// The meaning of `attention_bias`.
    pub biases: Biases,
    /// Added to the numbers of norms.
    pub norms: f32,
    /// The format of scales and plain numbers of quantized files. Models whose activations leave the range of IEEE's
    /// half are computed in the other one.
    pub half: Half,
    /// True if texts begin with a blank for SentencePiece, unless the file says otherwise.
    pub blank_first: bool,
    /// Fields of config.json and the metadata that they come from, without the architecture's name before it.
    pub fields: Names,
    /// Fields of config.json that no file tells, as a JSON object.
    pub constants: &'static str,
    /// The number of layers for which scores are scaled by the width of a head as if heads shared the model's.
    pub shared_width: Option<u64>,
    /// Tells of layers of several kinds, if there are.
    pub hybrid: Option<LayerReader>,
}

const NONE: Names = &[];

const fn row(name: &'static str, model_type: &'static str, class: &'static str) -> Architecture {
    Architecture {
        name,
        experts: false,
        model_type,
        class,
        names: NONE,
        top: NONE,
        turned: false,
        biases: Biases::All,
        norms: 0.0,
        half: Half::F16,
        blank_first: true,
        fields: NONE,
        constants: "{}",
        shared_width: None,
        hybrid: None,
    }
}

/// Tensors outside of layers.
pub const TOP: Names = &[
    ("token_embd", "model.embed_tokens"),
    ("output_norm", "model.norm"),
    ("output", "lm_head"),
];

/// Tensors that config.json stands for, or nothing.
pub const UNUSED: [&str; 4] = [
    "rope_freqs.weight",
    "rope_factors_long.weight",
    "rope_factors_short.weight",
    "attn_rot_embd.weight",
];

/// Tensors of a layer.
pub const LAYER: Names = &[
    ("attn_norm", "input_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_qkv", "self_attn.qkv_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("ffn_norm", "post_attention_layernorm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
    ("ffn_gate_inp", "mlp.gate"),
    ("ffn_gate_exps", "mlp.switch_mlp.gate_proj"),
    ("ffn_up_exps", "mlp.switch_mlp.up_proj"),
    ("ffn_down_exps", "mlp.switch_mlp.down_proj"),
    ("ffn_gate_shexp", "mlp.shared_expert.gate_proj"),
    ("ffn_up_shexp", "mlp.shared_expert.up_proj"),
    ("ffn_down_shexp", "mlp.shared_expert.down_proj"),
    ("ffn_gate_inp_shexp", "mlp.shared_expert_gate"),
];

/// Matrices of one row, which GGUF files have as a list.
pub const ROWS: [&str; 1] = ["mlp.shared_expert_gate"];

/// Filters of one channel, of which GGUF files leave out that axis.
pub const FILTERS: [&str; 1] = ["linear_attn.conv1d"];

/// Qwen 3.5's delta nets beside its attention.
const DELTA_NET: Names = &[
    ("post_attention_norm", "post_attention_layernorm"),
    ("attn_qkv", "linear_attn.in_proj_qkv"),
    ("attn_gate", "linear_attn.in_proj_z"),
    ("ssm_beta", "linear_attn.in_proj_b"),
    ("ssm_alpha", "linear_attn.in_proj_a"),
    ("ssm_conv1d", "linear_attn.conv1d"),
    ("ssm_norm", "linear_attn.norm"),
    ("ssm_out", "linear_attn.out_proj"),
    ("ssm_a", "linear_attn.A_log"),
    ("ssm_dt.bias", "linear_attn.dt_bias"),
];

/// Gemma 4's tensors beside those of [`SANDWICH`].
const GEMMA4: Names = &[
    SANDWICH[0],
    SANDWICH[1],
    SANDWICH[2],
    ("layer_output_scale.weight", "layer_scalar"),
    ("inp_gate", "per_layer_input_gate"),
    ("proj", "per_layer_projection"),
    ("post_norm", "post_per_layer_input_norm"),
    ("pre_ffw_norm_2", "pre_feedforward_layernorm_2"),
    ("post_ffw_norm_1", "post_feedforward_layernorm_1"),
    ("post_ffw_norm_2", "post_feedforward_layernorm_2"),
    ("ffn_gate_inp", "router.proj"),
    ("ffn_gate_inp.scale", "router.scale"),
    ("ffn_gate_exps", "experts.switch_glu.gate_proj"),
    ("ffn_up_exps", "experts.switch_glu.up_proj"),
    ("ffn_down_exps", "experts.switch_glu.down_proj"),
    ("ffn_down_exps.scale", "router.per_expert_scale"),
];

/// Norms around both halves of a layer.
const SANDWICH: Names = &[
    ("ffn_norm", "pre_feedforward_layernorm"),
    ("post_attention_norm", "post_attention_layernorm"),
    ("post_ffw_norm", "post_feedforward_layernorm"),
];

const EXPERTS: Names = &[
    ("num_experts", "expert_count"),
    ("num_experts_per_tok", "expert_used_count"),
    ("moe_intermediate_size", "expert_feed_forward_length"),
];

const GEMMA4_FIELDS: Names = &[
    ("final_logit_softcapping", "final_logit_softcapping"),
    ("sliding_window", "attention.sliding_window"),
    ("num_kv_shared_layers", "attention.shared_kv_layers"),
    ("hidden_size_per_layer_input", "embedding_length_per_layer_input"),
    ("num_experts", "expert_count"),
    ("top_k_experts", "expert_used_count"),
    ("moe_intermediate_size", "expert_feed_forward_length"),
];

const fn qwen3_5(name: &'static str, model_type: &'static str, class: &'static str) -> Architecture {
    Architecture {
        names: DELTA_NET,
        half: Half::BF16,
        hybrid: Some(qwen35),
        ..row(name, model_type, class)
    }
}

const fn gemma_4(experts: bool) -> Architecture {
    Architecture {
        experts,
        names: GEMMA4,
        top: &[
            ("per_layer_token_embd", "model.embed_tokens_per_layer"),
            ("per_layer_model_proj", "model.per_layer_model_projection"),
            ("per_layer_proj_norm", "model.per_layer_projection_norm"),
        ],
        half: Half::BF16,
        blank_first: false,
        fields: GEMMA4_FIELDS,
        constants: r#"{"hidden_activation": "gelu_pytorch_tanh"}"#,
        hybrid: Some(gemma4),
        ..row("gemma4", "gemma4_text", "Gemma4ForCausalLM")
    }
}

/// The architectures.
pub const ARCHITECTURES: &[Architecture] = &[
    Architecture {
        turned: true,
        ..row("llama", "llama", "LlamaForCausalLM")
    },
    Architecture {
        experts: true,
        turned: true,
        names: &[
            ("ffn_gate_inp", "block_sparse_moe.gate"),
            ("ffn_gate_exps", "block_sparse_moe.switch_mlp.gate_proj"),
            ("ffn_up_exps", "block_sparse_moe.switch_mlp.up_proj"),
            ("ffn_down_exps", "block_sparse_moe.switch_mlp.down_proj"),
        ],
        fields: &[
            ("num_local_experts", "expert_count"),
            ("num_experts_per_tok", "expert_used_count"),
        ],
        ..row("llama", "mixtral", "MixtralForCausalLM")
    },
    Architecture {
        turned: true,
        ..row("mistral3", "ministral3", "Ministral3ForCausalLM")
    },
    Architecture {
        half: Half::BF16,
        biases: Biases::Fixed,
        ..row("qwen2", "qwen2", "Qwen2ForCausalLM")
    },
    Architecture {
        experts: true,
        half: Half::BF16,
        fields: &[
            EXPERTS[0],
            EXPERTS[1],
            EXPERTS[2],
            ("shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
        ],
        constants: r#"{"norm_topk_prob": false, "decoder_sparse_step": 1, "mlp_only_layers": []}"#,
        biases: Biases::Fixed,
        ..row("qwen2moe", "qwen2_moe", "Qwen2MoeForCausalLM")
    },
    row("qwen3", "qwen3", "Qwen3ForCausalLM"),
    Architecture {
        experts: true,
        fields: EXPERTS,
        constants: r#"{"norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": []}"#,
        ..row("qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM")
    },
    qwen3_5("qwen35", "qwen3_5_text", "Qwen3_5ForCausalLM"),
    Architecture {
        experts: true,
        fields: &[
            EXPERTS[0],
            EXPERTS[1],
            EXPERTS[2],
            ("shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
        ],
        ..qwen3_5("qwen35moe", "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM")
    },
    Architecture {
        norms: -1.0,
        half: Half::BF16,
        blank_first: false,
        constants: r#"{"hidden_activation": "gelu_pytorch_tanh", "hidden_act": "gelu_pytorch_tanh"}"#,
        ..row("gemma", "gemma", "GemmaForCausalLM")
    },
    Architecture {
        names: SANDWICH,
        norms: -1.0,
        half: Half::BF16,
        blank_first: false,
        fields: &[
            ("attn_logit_softcapping", "attn_logit_softcapping"),
            ("final_logit_softcapping", "final_logit_softcapping"),
            ("sliding_window", "attention.sliding_window"),
        ],
        constants: r#"{"hidden_activation": "gelu_pytorch_tanh"}"#,
        shared_width: Some(46),
        ..row("gemma2", "gemma2", "Gemma2ForCausalLM")
    },
    Architecture {
        names: SANDWICH,
        norms: -1.0,
        half: Half::BF16,
        blank_first: false,
        fields: &[
            ("final_logit_softcapping", "final_logit_softcapping"),
            ("sliding_window", "attention.sliding_window"),
            ("rope_local_base_freq", "rope.freq_base_swa"),
        ],
        constants: r#"{"hidden_activation": "gelu_pytorch_tanh", "sliding_window_pattern": 6}"#,
        shared_width: Some(62),
        ..row("gemma3", "gemma3_text", "Gemma3ForCausalLM")
    },
    gemma_4(false),
    gemma_4(true),
    Architecture {
        names: &[("ffn_up", "mlp.gate_up_proj")],
        fields: &[
            ("sliding_window", "attention.sliding_window"),
            (
                "original_max_position_embeddings",
                "rope.scaling.original_context_length",
            ),
        ],
        ..row("phi3", "phi3", "Phi3ForCausalLM")
    },
    Architecture {
        experts: true,
        names: &[
            ("post_attention_norm", "post_attention_layernorm"),
            ("attn_sinks.weight", "self_attn.sinks"),
            ("ffn_gate_inp", "mlp.router"),
            ("ffn_gate_exps", "mlp.experts.gate_proj"),
            ("ffn_up_exps", "mlp.experts.up_proj"),
            ("ffn_down_exps", "mlp.experts.down_proj"),
        ],
        half: Half::BF16,
        fields: &[
            ("num_local_experts", "expert_count"),
            ("num_experts_per_tok", "expert_used_count"),
            ("intermediate_size", "expert_feed_forward_length"),
            ("sliding_window", "attention.sliding_window"),
        ],
        constants: r#"{"swiglu_limit": 7.0, "attention_bias": true}"#,
        biases: Biases::Fixed,
        ..row("gpt-oss", "gpt_oss", "GptOssForCausalLM")
    },
    Architecture {
        names: &[
            ("ffn_up", "mlp.gate_up_proj"),
            ("post_attention_norm", "post_self_attn_layernorm"),
            ("post_ffw_norm", "post_mlp_layernorm"),
        ],
        biases: Biases::Inputs,
        ..row("glm4", "glm4", "Glm4ForCausalLM")
    },
    Architecture {
        turned: true,
        fields: &[
            ("logits_scaling", "logit_scale"),
            ("embedding_multiplier", "embedding_scale"),
            ("residual_multiplier", "residual_scale"),
            ("attention_multiplier", "attention.scale"),
        ],
        ..row("granite", "granite", "GraniteForCausalLM")
    },
    Architecture {
        names: &[
            ("post_attention_norm", "post_attention_layernorm"),
            ("post_ffw_norm", "post_feedforward_layernorm"),
        ],
        ..row("olmo2", "olmo2", "Olmo2ForCausalLM")
    },
    Architecture {
        experts: true,
        fields: &[EXPERTS[0], EXPERTS[1]],
        constants: r#"{"norm_topk_prob": false}"#,
        ..row("olmoe", "olmoe", "OlmoeForCausalLM")
    },
    Architecture {
        turned: true,
        constants: r#"{"no_rope_layer_interval": 4}"#,
        ..row("smollm3", "smollm3", "SmolLM3ForCausalLM")
    },
    Architecture {
        fields: &[
            ("layer_norm_eps", "attention.layer_norm_epsilon"),
            ("logit_scale", "logit_scale"),
        ],
        ..row("command-r", "cohere", "CohereForCausalLM")
    },
    Architecture {
        fields: &[
            ("layer_norm_eps", "attention.layer_norm_epsilon"),
            ("logit_scale", "logit_scale"),
            ("sliding_window", "attention.sliding_window"),
        ],
        constants: r#"{"sliding_window_pattern": 4}"#,
        ..row("cohere2", "cohere2", "Cohere2ForCausalLM")
    },
    Architecture {
        names: &[("ffn_up", "mlp.c_fc"), ("ffn_down", "mlp.c_proj")],
        fields: &[
            ("norm_epsilon", "attention.layer_norm_epsilon"),
            ("sliding_window", "attention.sliding_window"),
        ],
        constants: r#"{"hidden_act": "gelu_pytorch_tanh", "use_bias": true}"#,
        biases: Biases::Fixed,
        ..row("starcoder2", "starcoder2", "Starcoder2ForCausalLM")
    },
    Architecture {
        names: &[("post_attention_norm", "post_attention_layernorm")],
        biases: Biases::Inputs,
        ..row("seed_oss", "seed_oss", "SeedOssForCausalLM")
    },
];
