//! The tensors of models whose layers carry states.

use crate::entry::{Kind, Tensors};
use crate::error::Result;

impl Tensors<'_> {
    /// Mamba 2 by the names that a family has for `[heads, head width, groups, state width, kernel]`.
    fn mamba2(&mut self, path: &str, names: [&'static str; 5]) -> Result<()> {
        let hidden = self.number("hidden_size")?;
        let [heads, head_width, groups, state_width, kernel] = self.numbers(names)?;
        let inner = heads * head_width;
        let channels = inner + 2 * groups * state_width;
        self.matrix(&format!("{path}.in_proj"), inner + channels + heads, hidden);
        self.matrix(&format!("{path}.out_proj"), hidden, inner);
        self.convolution(&format!("{path}.conv1d"), channels, kernel);
        for name in ["dt_bias", "A_log", "D"] {
            self.add(format!("{path}.{name}"), &[heads], Kind::Factors);
        }
        self.norm(&format!("{path}.norm"), inner);
        Ok(())
    }

    fn convolution(&mut self, path: &str, channels: u64, kernel: u64) {
        self.weight(path, &[channels, kernel, 1], Kind::Wide);
        self.bias(path, &[channels]);
    }

    /// Without experts.
    pub(crate) fn granite_hybrid(&mut self) -> Result<()> {
        let hidden = self.number("hidden_size")?;
        self.ends("")?;
        for layer in 0..self.number("num_hidden_layers")? {
            let path = format!("model.layers.{layer}");
            if self.config["layer_types"][layer as usize] == "attention" {
                self.attention(&format!("{path}.self_attn"), 1, false)?;
            } else {
                self.mamba2(&format!("{path}.mamba"), PREFIXED)?;
            }
            self.mlp(&format!("{path}.mlp"), self.number("shared_intermediate_size")?)?;
            self.norm(&format!("{path}.input_layernorm"), hidden);
            self.norm(&format!("{path}.post_attention_layernorm"), hidden);
        }
        Ok(())
    }

    pub(crate) fn falcon_h1(&mut self) -> Result<()> {
        let hidden = self.number("hidden_size")?;
        self.ends("")?;
        for layer in 0..self.number("num_hidden_layers")? {
            let path = format!("model.layers.{layer}");
            self.attention(&format!("{path}.self_attn"), 1, false)?;
            self.mamba2(&format!("{path}.mamba"), PREFIXED)?;
            self.mlp(&format!("{path}.feed_forward"), self.number("intermediate_size")?)?;
            self.norm(&format!("{path}.input_layernorm"), hidden);
            self.norm(&format!("{path}.pre_ff_layernorm"), hidden);
        }
        Ok(())
    }

    /// Tables and the last norm of models without a `model`.
    fn backbone_ends(&mut self) -> Result<()> {
        let [hidden, vocabulary] = self.numbers(["hidden_size", "vocab_size"])?;
        self.matrix("backbone.embeddings", vocabulary, hidden);
        self.norm("backbone.norm_f", hidden);
        if self.config["tie_word_embeddings"] != true {
            self.matrix("lm_head", vocabulary, hidden);
        }
        Ok(())
    }

    /// Without experts.
    pub(crate) fn nemotron_h(&mut self) -> Result<()> {
        let hidden = self.number("hidden_size")?;
        self.backbone_ends()?;
        let pattern = self.config["hybrid_override_pattern"].as_str().unwrap_or_default();
        for (layer, part) in pattern.chars().enumerate() {
            let path = format!("backbone.layers.{layer}.mixer");
            match part {
                'M' => self.mamba2(
                    &path,
                    [
                        "mamba_num_heads",
                        "mamba_head_dim",
                        "n_groups",
                        "ssm_state_size",
                        "conv_kernel",
                    ],
                )?,
                '*' => self.attention(&path, 1, false)?,
                _ => {
                    let width = self.number("intermediate_size")?;
                    self.matrix(&format!("{path}.up_proj"), width, hidden);
                    self.matrix(&format!("{path}.down_proj"), hidden, width);
                }
            }
            self.norm(&format!("backbone.layers.{layer}.norm"), hidden);
        }
        Ok(())
    }

    pub(crate) fn mamba(&mut self) -> Result<()> {
        let [hidden, inner, rank] = self.numbers(["hidden_size", "intermediate_size", "time_step_rank"])?;
        let [state_width, kernel] = self.numbers(["state_size", "conv_kernel"])?;
        self.backbone_ends()?;
        for layer in 0..self.number("num_hidden_layers")? {
            let path = format!("backbone.layers.{layer}.mixer");
            self.matrix(&format!("{path}.in_proj"), 2 * inner, hidden);
            self.matrix(&format!("{path}.out_proj"), hidden, inner);
            self.matrix(&format!("{path}.x_proj"), rank + 2 * state_width, inner);
            self.matrix(&format!("{path}.dt_proj"), inner, rank);
            self.bias(&format!("{path}.dt_proj"), &[inner]);
            self.convolution(&format!("{path}.conv1d"), inner, kernel);
            self.add(format!("{path}.A_log"), &[inner, state_width], Kind::Factors);
            self.add(format!("{path}.D"), &[inner], Kind::Factors);
            self.norm(&format!("backbone.layers.{layer}.norm"), hidden);
        }
        Ok(())
    }

    pub(crate) fn recurrent_gemma(&mut self) -> Result<()> {
        let [hidden, width, kernel] = self.numbers(["hidden_size", "lru_width", "conv1d_width"])?;
        let [heads, inter] = self.numbers(["num_attention_heads", "intermediate_size"])?;
        let head = width / heads;
        self.ends("")?;
        for layer in 0..self.number("num_hidden_layers")? {
            let path = format!("model.layers.{layer}");
            let block = format!("{path}.temporal_block");
            if layer % 3 == 2 {
                self.attention(&block, 1, false)?;
                self.bias(&format!("{block}.o_proj"), &[hidden]);
            } else {
                for name in ["linear_x", "linear_y"] {
                    self.matrix(&format!("{block}.{name}"), width, hidden);
                    self.bias(&format!("{block}.{name}"), &[width]);
                }
                self.matrix(&format!("{block}.linear_out"), hidden, width);
                self.bias(&format!("{block}.linear_out"), &[hidden]);
                self.convolution(&format!("{block}.conv_1d"), width, kernel);
                for gate in ["input", "recurrent"] {
                    let gate = format!("{block}.rg_lru.{gate}_gate");
                    self.add(format!("{gate}_weight"), &[heads, head, head], Kind::Wide);
                    self.add(format!("{gate}_bias"), &[heads, head], Kind::Offsets);
                }
                self.add(format!("{block}.rg_lru.recurrent_param"), &[width], Kind::Offsets);
            }
            self.mlp(&format!("{path}.mlp_block"), inter / 2)?;
            for (name, outputs) in [("gate_proj", inter / 2), ("up_proj", inter / 2), ("down_proj", hidden)] {
                self.bias(&format!("{path}.mlp_block.{name}"), &[outputs]);
            }
            self.norm(&format!("{path}.temporal_pre_norm"), hidden);
            self.norm(&format!("{path}.channel_pre_norm"), hidden);
        }
        Ok(())
    }
}

/// The fields of Mamba 2 as Granite and Falcon-H1 call them.
const PREFIXED: [&str; 5] = [
    "mamba_n_heads",
    "mamba_d_head",
    "mamba_n_groups",
    "mamba_d_state",
    "mamba_d_conv",
];
