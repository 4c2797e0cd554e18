//! The tensors of models that attend to pooled positions.

use crate::entry::{Kind, Tensors};
use crate::error::Result;

impl Tensors<'_> {
    /// The compressor of keys of this width, each of so many positions.
    fn compressor(&mut self, path: &str, width: u64, ratio: u64) -> Result<()> {
        let hidden = self.number("hidden_size")?;
        let numbers = if ratio == 4 { 2 * width } else { width };
        self.matrix(&format!("{path}.wkv"), numbers, hidden);
        self.matrix(&format!("{path}.wgate"), numbers, hidden);
        self.add(format!("{path}.ape"), &[ratio, numbers], Kind::Offsets);
        self.norm(&format!("{path}.norm"), width);
        Ok(())
    }

    fn pooled_attention(&mut self, path: &str, ratio: u64) -> Result<()> {
        let [hidden, heads, width] = self.numbers(["hidden_size", "num_attention_heads", "head_dim"])?;
        let [rank, groups, made] = self.numbers(["q_lora_rank", "o_groups", "o_lora_rank"])?;
        for (name, outputs, inputs) in [
            ("wq_a", rank, hidden),
            ("wq_b", heads * width, rank),
            ("wkv", width, hidden),
            ("wo_a", groups * made, heads * width / groups),
            ("wo_b", hidden, groups * made),
        ] {
            self.matrix(&format!("{path}.{name}"), outputs, inputs);
        }
        self.norm(&format!("{path}.q_norm"), rank);
        self.norm(&format!("{path}.kv_norm"), width);
        self.add(format!("{path}.attn_sink"), &[heads], Kind::Offsets);
        if ratio == 0 {
            return Ok(());
        }
        self.compressor(&format!("{path}.compressor"), width, ratio)?;
        if ratio != 4 {
            return Ok(());
        }
        let [heads, width] = self.numbers(["index_n_heads", "index_head_dim"])?;
        self.matrix(&format!("{path}.indexer.wq_b"), heads * width, rank);
        self.matrix(&format!("{path}.indexer.weights_proj"), heads, hidden);
        self.compressor(&format!("{path}.indexer.compressor"), width, ratio)
    }

    /// Without layers whose experts are chosen by the token.
    pub(crate) fn deepseek_v4(&mut self) -> Result<()> {
        let [hidden, streams] = self.numbers(["hidden_size", "hc_mult"])?;
        self.ends("")?;
        self.streams("model.hc_head", [streams, streams * hidden, 1]);
        for layer in 0..self.number("num_hidden_layers")? {
            let path = format!("model.layers.{layer}");
            let ratio = self.config["compress_ratios"][layer as usize].as_u64();
            self.pooled_attention(&format!("{path}.attn"), ratio.unwrap_or(0))?;
            let names = ["gate", "gate.e_score_correction_bias", "switch_mlp"];
            self.corrected_experts(&format!("{path}.ffn"), names)?;
            for part in ["attn", "ffn"] {
                let numbers = (2 + streams) * streams;
                self.streams(&format!("{path}.hc_{part}"), [numbers, streams * hidden, 3]);
                self.norm(&format!("{path}.{part}_norm"), hidden);
            }
        }
        Ok(())
    }
}
