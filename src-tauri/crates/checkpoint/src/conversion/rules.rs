//! How the names and the layout of published files become those of mlx-lm, family by family.

use crate::files::{is_unused_tensor, without_wrappers};

/// The rules of a family.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// True if the language part stands in `language_model`.
    pub inside: bool,
    /// The folder of stacked experts, instead of `experts`.
    pub stack: &'static str,
    /// True if joined experts are stored as transposes.
    pub turned: bool,
    /// True if the projections of all networks are called `w1`, `w2` and `w3`.
    pub short_names: bool,
    /// True if the projection of latents to keys and values is taken apart for each head.
    pub latents: bool,
    /// True if norms of files whose convolutions are torch's are stored as their difference from 1.
    pub norms_from_one: bool,
    /// True for GPT-NeoX' names.
    pub neox: bool,
    /// True if a missing output layer is a copy of the embedding.
    pub copied_head: bool,
    /// Ends of paths that are kept finer.
    pub finer: &'static [&'static str],
    /// Ends of paths of matrices that are never quantized.
    pub plain: &'static [&'static str],
    /// Parts of the names of numbers that keep their type.
    pub uncast: &'static [&'static str],
}

/// The rules of most.
const MOST: Rules = Rules {
    inside: false,
    stack: "switch_mlp",
    turned: false,
    short_names: false,
    latents: false,
    norms_from_one: false,
    neox: false,
    copied_head: false,
    finer: &[],
    plain: &[],
    uncast: &[],
};

/// Types whose copies tests compare with mlx-lm's, byte by byte; others have names and layouts that no rule tells yet.
#[rustfmt::skip]
const COMPARED: &[&str] = &[
    "cohere", "cohere2", "deepseek_v2", "deepseek_v3", "dots1", "ernie4_5", "exaone", "exaone4", "gemma",
    "gemma2", "gemma3", "gemma3_text", "gemma4", "gemma4_text", "gemma4_unified", "glm4", "glm4_moe",
    "glm4_moe_lite", "gpt_neox", "gpt_oss", "granite", "granitemoe", "helium", "hunyuan_v1_dense", "internlm2",
    "internlm3", "kimi_k2", "lfm2", "lfm2-vl", "lfm2_moe", "llama", "mimo", "minicpm", "ministral3", "mistral",
    "mistral3", "mixtral", "nemotron", "olmo2", "olmo3", "olmoe", "phi", "phi3", "pixtral", "qwen2",
    "qwen2_5_vl", "qwen2_moe", "qwen2_vl", "qwen3", "qwen3_5", "qwen3_5_moe", "qwen3_moe", "qwen3_next",
    "qwen3_vl", "qwen3_vl_moe", "seed_oss", "smollm3", "stablelm", "starcoder2", "telechat3",
];

/// True if the rules hold for models of this type.
pub fn are_known(model_type: &str) -> bool {
    COMPARED.contains(&model_type)
}

/// Routers that mlx-lm keeps as plain numbers.
const PLAIN_ROUTER: &[&str] = &["mlp.gate"];

impl Rules {
    /// The rules of a `model_type`.
    pub fn of(model_type: &str) -> Self {
        let inside = Self { inside: true, ..MOST };
        let hybrid = Self {
            norms_from_one: true,
            uncast: &["A_log"],
            ..MOST
        };
        let routers = &["mlp.gate", "shared_expert_gate"];
        let latent = Self {
            latents: true,
            plain: PLAIN_ROUTER,
            uncast: &["e_score_correction_bias"],
            ..MOST
        };
        let granite = &["self_attn.o_proj", "mlp.down_proj", "lm_head"];
        match model_type {
            "gemma3" | "mistral3" | "pixtral" | "qwen2_vl" | "qwen2_5_vl" | "qwen3_vl" | "lfm2_vl" | "lfm2-vl" => {
                inside
            }
            "qwen3_vl_moe" => Self {
                turned: true,
                finer: &["mlp.gate"],
                ..inside
            },
            "qwen3_moe" => Self {
                finer: &["mlp.gate"],
                ..MOST
            },
            "qwen3_5" => Self { inside: true, ..hybrid },
            "qwen3_5_moe" => Self {
                inside: true,
                finer: routers,
                ..hybrid
            },
            "qwen3_next" => Self {
                finer: routers,
                uncast: &[],
                ..hybrid
            },
            "gemma4" | "gemma4_unified" => Self {
                inside: true,
                stack: "experts.switch_glu",
                finer: &["router.proj"],
                ..MOST
            },
            "gemma4_text" => Self {
                stack: "experts.switch_glu",
                finer: &["router.proj"],
                ..MOST
            },
            "gpt_oss" => Self {
                finer: &["router"],
                ..MOST
            },
            "granite" => Self { finer: granite, ..MOST },
            "granitemoe" => Self {
                finer: &[
                    "block_sparse_moe.router.layer",
                    "self_attn.o_proj",
                    "mlp.down_proj",
                    "lm_head",
                ],
                ..MOST
            },
            "lfm2_moe" => Self {
                short_names: true,
                finer: &["feed_forward.gate"],
                uncast: &["expert_bias"],
                ..MOST
            },
            "deepseek_v2" | "glm4v_moe" => Self {
                plain: PLAIN_ROUTER,
                ..MOST
            },
            "dots1" => Self {
                stack: "experts",
                plain: PLAIN_ROUTER,
                ..MOST
            },
            "glm4_moe" => Self {
                latents: false,
                ..latent
            },
            "deepseek_v3" | "joyai_llm_flash" | "kimi_k2" | "glm4_moe_lite" => latent,
            "gpt_neox" => Self { neox: true, ..MOST },
            "minicpm" => Self {
                copied_head: true,
                ..MOST
            },
            _ => MOST,
        }
    }

    /// mlx-lm's name of a tensor of the language part.
    pub fn name(&self, name: &str) -> String {
        let mut name = if self.inside {
            match without_wrappers(name) {
                head if head.starts_with("lm_head") => format!("language_model.{head}"),
                rest => format!("language_model.model.{rest}"),
            }
        } else {
            name.to_owned()
        };
        if self.neox {
            if !name.starts_with("model.") {
                name.insert_str(0, "model.");
            }
            name = name.replace(".gpt_neox.layers.", ".h.").replace(".gpt_neox.", ".");
        }
        if self.short_names {
            name = EXPERT_NAMES.iter().fold(name, |name, (short, long)| {
                name.replace(&format!(".{short}."), &format!(".{long}."))
            });
        }
        name
    }
}

/// Mixtral's names of an expert's projections, and everybody else's.
const EXPERT_NAMES: [(&str, &str); 3] = [("w1", "gate_proj"), ("w2", "down_proj"), ("w3", "up_proj")];

/// Experts as published files have them.
pub(super) enum Experts {
    /// One matrix of one expert: the name of the stack, and its place there.
    One(String, u64),
    /// Gate and up projections of all in one tensor: the names of the two stacks.
    Joined(String, String),
    /// The down projections of all: the stack's name.
    Down(String),
}

impl Rules {
    /// Experts behind a name; `None` for everything else, and for stacks.
    pub fn experts(&self, name: &str) -> Option<Experts> {
        if let Some((before, after)) = name.split_once(".experts.") {
            let stack = format!("{before}.{}", self.stack);
            if let Some((number, part)) = after.split_once('.') {
                let expert = number.parse().ok()?;
                let (projection, rest) = part.split_once('.')?;
                let named = EXPERT_NAMES.iter().find(|(short, _)| *short == projection);
                let projection = named.map_or(projection, |(_, long)| long);
                return Some(Experts::One(format!("{stack}.{projection}.{rest}"), expert));
            }
            return match after {
                "gate_up_proj" => Some(joined(&stack)),
                "down_proj" => Some(Experts::Down(format!("{stack}.down_proj.weight"))),
                _ => None,
            };
        }
        // Granite's.
        if let Some(before) = name.strip_suffix(".block_sparse_moe.input_linear.weight") {
            return Some(joined(&format!("{before}.block_sparse_moe.switch_mlp")));
        }
        let before = name.strip_suffix(".block_sparse_moe.output_linear.weight")?;
        Some(Experts::Down(format!(
            "{before}.block_sparse_moe.switch_mlp.down_proj.weight"
        )))
    }
}

fn joined(stack: &str) -> Experts {
    Experts::Joined(format!("{stack}.gate_proj.weight"), format!("{stack}.up_proj.weight"))
}

/// True for tensors that no language part of mlx-lm's has: buffers of torch, and layers that draft.
pub(super) fn is_left_out(name: &str) -> bool {
    is_unused_tensor(name)
        || [".inv_freq", ".attention.bias", ".attention.masked_bias"]
            .iter()
            .any(|end| name.ends_with(end))
        || name.starts_with("mtp.")
        || [".mtp.", "mtp_layers."].iter().any(|part| name.contains(part))
}

/// True for the path of a matrix of a projection, an embedding or experts. Norms and convolutions are called `weight`,
/// too.
pub(super) fn is_matrix(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    !last.contains("norm") && !last.starts_with("conv")
}
