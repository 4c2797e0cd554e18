//! Which tensors a config asks for.

use serde_json::Value;

use crate::entry::{Entry, Kind, Tensors};
use crate::error::{Error, Result};
use crate::towers;

/// The tensors of a model, in the order of its layers.
pub fn entries(config: &Value) -> Result<Vec<Entry>> {
    let mut layout = Tensors::new(config.get("text_config").unwrap_or(config), "a shape");
    match config["model_type"].as_str() {
        Some("gemma4_text" | "gemma4") => layout.gemma4()?,
        Some("qwen3" | "llama" | "qwen3_moe" | "gpt_oss" | "qwen3_vl") => layout.decoder()?,
        Some("qwen3_5") => layout.qwen3_5()?,
        Some("afmoe") => layout.afmoe()?,
        Some("deepseek_v32" | "hy_v4") => layout.deepseek_v32()?,
        Some("deepseek_v4") => layout.deepseek_v4()?,
        Some("minimax_m3") => layout.minimax_m3()?,
        Some("granitemoehybrid") => layout.granite_hybrid()?,
        Some("nemotron_h") => layout.nemotron_h()?,
        Some("falcon_h1") => layout.falcon_h1()?,
        Some("phi3small") => layout.phi3small()?,
        Some("longcat_flash_ngram") => layout.longcat_lite()?,
        Some("rwkv7") => layout.rwkv7()?,
        Some("mamba") => layout.mamba()?,
        Some("recurrent_gemma") => layout.recurrent_gemma()?,
        other => return Err(Error::UnsupportedConfig(format!("a shape of type {other:?}"))),
    }
    let Some(vision) = config.get("vision_config") else {
        return Ok(layout.entries);
    };
    for entry in &mut layout.entries {
        entry.name = format!("language_model.{}", entry.name);
    }
    let tower = towers::entries(vision, layout.number("hidden_size")?)?;
    layout.entries.extend(tower);
    Ok(layout.entries)
}

impl Tensors<'_> {
    pub(crate) fn flag(&self, field: &str) -> bool {
        self.config[field].as_bool() == Some(true)
    }

    pub(crate) fn matrix(&mut self, path: &str, outputs: u64, inputs: u64) {
        self.weight(path, &[outputs, inputs], Kind::Matrix);
    }

    /// Tables and the last norm; `prefix` ends before `model`.
    pub(crate) fn ends(&mut self, prefix: &str) -> Result<()> {
        let [hidden, vocabulary] = self.numbers(["hidden_size", "vocab_size"])?;
        self.matrix(&format!("{prefix}model.embed_tokens"), vocabulary, hidden);
        self.norm(&format!("{prefix}model.norm"), hidden);
        if !self.flag("tie_word_embeddings") {
            self.matrix(&format!("{prefix}lm_head"), vocabulary, hidden);
        }
        Ok(())
    }

    pub(crate) fn mlp(&mut self, path: &str, inter: u64) -> Result<()> {
        let hidden = self.number("hidden_size")?;
        self.matrix(&format!("{path}.gate_proj"), inter, hidden);
        self.matrix(&format!("{path}.up_proj"), inter, hidden);
        self.matrix(&format!("{path}.down_proj"), hidden, inter);
        Ok(())
    }

    fn experts(&mut self, path: &str, experts: u64, inter: u64, bias: bool) -> Result<()> {
        let hidden = self.number("hidden_size")?;
        for (name, outputs, inputs) in [
            ("gate_proj", inter, hidden),
            ("up_proj", inter, hidden),
            ("down_proj", hidden, inter),
        ] {
            let path = format!("{path}.{name}");
            // Experts of gpt-oss count less than attention, as it has few: a rounding that chooses another changes less.
            let small = bias && name == "down_proj";
            let kind = if small { Kind::Small } else { Kind::Matrix };
            self.weight(&path, &[experts, outputs, inputs], kind);
            if bias {
                self.bias(&path, &[experts, outputs]);
            }
        }
        Ok(())
    }

    /// Query, key, value and output projections; `queries` counts a query head's outputs in head widths.
    pub(crate) fn attention(&mut self, path: &str, queries: u64, bias: bool) -> Result<()> {
        let [hidden, width] = self.numbers(["hidden_size", "head_dim"])?;
        let [heads, key_heads] = self.numbers(["num_attention_heads", "num_key_value_heads"])?;
        let projections = [
            ("q_proj", queries * heads * width, hidden),
            ("k_proj", key_heads * width, hidden),
            ("v_proj", key_heads * width, hidden),
            ("o_proj", hidden, heads * width),
        ];
        for (name, outputs, inputs) in projections {
            let path = format!("{path}.{name}");
            // Nothing norms the heads of gpt-oss: a softmax would be nearly that of one key, and a rounding would change
            // which.
            let small = bias && matches!(name, "q_proj" | "k_proj");
            let kind = if small { Kind::Small } else { Kind::Matrix };
            self.weight(&path, &[outputs, inputs], kind);
            if bias {
                self.bias(&path, &[outputs]);
            }
        }
        Ok(())
    }

    pub(crate) fn head_norms(&mut self, path: &str) -> Result<()> {
        let width = self.number("head_dim")?;
        self.norm(&format!("{path}.q_norm"), width);
        self.norm(&format!("{path}.k_norm"), width);
        Ok(())
    }

    fn decoder(&mut self) -> Result<()> {
        let hidden = self.number("hidden_size")?;
        let family = self.config["model_type"].as_str().unwrap_or_default().to_owned();
        self.ends("")?;
        for layer in 0..self.number("num_hidden_layers")? {
            let path = format!("model.layers.{layer}");
            let attention = format!("{path}.self_attn");
            self.attention(&attention, 1, family == "gpt_oss")?;
            if family.starts_with("qwen3") {
                self.head_norms(&attention)?;
            }
            match family.as_str() {
                "gpt_oss" => {
                    let fields = ["num_attention_heads", "num_local_experts", "intermediate_size"];
                    let [heads, experts, inter] = self.numbers(fields)?;
                    self.add(format!("{attention}.sinks"), &[heads], Kind::Offsets);
                    self.weight(&format!("{path}.mlp.router"), &[experts, hidden], Kind::Router);
                    self.bias(&format!("{path}.mlp.router"), &[experts]);
                    self.experts(&format!("{path}.mlp.experts"), experts, inter, true)?;
                }
                "qwen3_moe" => {
                    let [experts, inter] = self.numbers(["num_experts", "moe_intermediate_size"])?;
                    self.weight(&format!("{path}.mlp.gate"), &[experts, hidden], Kind::Router);
                    self.experts(&format!("{path}.mlp.switch_mlp"), experts, inter, false)?;
                }
                _ => self.mlp(&format!("{path}.mlp"), self.number("intermediate_size")?)?,
            }
            self.norm(&format!("{path}.input_layernorm"), hidden);
            self.norm(&format!("{path}.post_attention_layernorm"), hidden);
        }
        Ok(())
    }

    /// Experts of which a correction helps to choose, `correction` by name, and a network beside them.
    pub(crate) fn corrected_experts(&mut self, path: &str, [router, correction, stack]: [&str; 3]) -> Result<()> {
        let fields = ["hidden_size", "num_experts", "moe_intermediate_size"];
        let [hidden, experts, inter] = self.numbers(fields)?;
        self.weight(&format!("{path}.{router}"), &[experts, hidden], Kind::Router);
        self.add(format!("{path}.{correction}"), &[experts], Kind::Offsets);
        self.experts(&format!("{path}.{stack}"), experts, inter, false)?;
        self.mlp(&format!("{path}.shared_experts"), inter)
    }

    fn afmoe(&mut self) -> Result<()> {
        let [hidden, heads, width] = self.numbers(["hidden_size", "num_attention_heads", "head_dim"])?;
        self.ends("")?;
        for layer in 0..self.number("num_hidden_layers")? {
            let path = format!("model.layers.{layer}");
            let attention = format!("{path}.self_attn");
            self.attention(&attention, 1, false)?;
            self.head_norms(&attention)?;
            self.matrix(&format!("{attention}.gate_proj"), heads * width, hidden);
            match layer < self.number("num_dense_layers")? {
                true => self.mlp(&format!("{path}.mlp"), self.number("intermediate_size")?)?,
                false => self.corrected_experts(&format!("{path}.mlp"), ["router.gate", "expert_bias", "experts"])?,
            }
            for norm in ["input", "post_attention", "pre_mlp", "post_mlp"] {
                self.norm(&format!("{path}.{norm}_layernorm"), hidden);
            }
        }
        Ok(())
    }

    fn indexer(&mut self, path: &str) -> Result<()> {
        let fields = ["hidden_size", "q_lora_rank", "index_n_heads", "index_head_dim"];
        let [hidden, queries, heads, width] = self.numbers(fields)?;
        self.matrix(&format!("{path}.wq_b"), heads * width, queries);
        self.matrix(&format!("{path}.wk"), width, hidden);
        self.matrix(&format!("{path}.weights_proj"), heads, hidden);
        self.norm(&format!("{path}.k_norm"), width);
        self.bias(&format!("{path}.k_norm"), &[width]);
        Ok(())
    }

    /// Numbers that all streams make, and their factors.
    pub(crate) fn streams(&mut self, place: &str, [numbers, inputs, factors]: [u64; 3]) {
        self.add(format!("{place}_fn"), &[numbers, inputs], Kind::Matrix);
        self.add(format!("{place}_base"), &[numbers], Kind::Offsets);
        self.add(format!("{place}_scale"), &[factors], Kind::Factors);
    }

    /// The projections of latents, and their norms.
    fn latents(&mut self, path: &str) -> Result<()> {
        let [hidden, heads, queries, rank] =
            self.numbers(["hidden_size", "num_attention_heads", "q_lora_rank", "kv_lora_rank"])?;
        let [still, turning, value] = self.numbers(["qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"])?;
        for (name, outputs, inputs) in [
            ("q_a_proj", queries, hidden),
            ("q_b_proj", heads * (still + turning), queries),
            ("kv_a_proj_with_mqa", rank + turning, hidden),
            ("kv_b_proj", heads * (still + value), rank),
            ("o_proj", hidden, heads * value),
        ] {
            self.matrix(&format!("{path}.{name}"), outputs, inputs);
        }
        self.norm(&format!("{path}.q_a_layernorm"), queries);
        self.norm(&format!("{path}.kv_a_layernorm"), rank);
        Ok(())
    }

    fn deepseek_v32(&mut self) -> Result<()> {
        let [hidden, heads, value] = self.numbers(["hidden_size", "num_attention_heads", "v_head_dim"])?;
        self.ends("")?;
        if let Some(streams) = self.config["hc_mult"].as_u64() {
            self.streams("model.hc_head.hc_head", [streams, streams * hidden, 1]);
        }
        for layer in 0..self.number("num_hidden_layers")? {
            let path = format!("model.layers.{layer}");
            self.latents(&format!("{path}.self_attn"))?;
            if self.config["indexer_types"][layer as usize] != "shared" {
                self.indexer(&format!("{path}.self_attn.indexer"))?;
            }
            if let Some(streams) = self.config["hc_mult"].as_u64() {
                self.matrix(&format!("{path}.self_attn.linear_gate"), heads * value, hidden);
                self.add(
                    format!("{path}.self_attn.learnable_sink_param"),
                    &[heads],
                    Kind::Offsets,
                );
                for part in ["attn", "mlp"] {
                    let place = format!("{path}.hc_{part}_layer.hc_pre.hc");
                    self.streams(&place, [2 * streams, streams * hidden, 2]);
                }
            }
            match layer < self.number("first_k_dense_replace")? {
                true => self.mlp(&format!("{path}.mlp"), self.number("intermediate_size")?)?,
                false => {
                    let names = ["gate", "gate.e_score_correction_bias", "switch_mlp"];
                    self.corrected_experts(&format!("{path}.mlp"), names)?;
                }
            }
            self.norm(&format!("{path}.input_layernorm"), hidden);
            self.norm(&format!("{path}.post_attention_layernorm"), hidden);
        }
        Ok(())
    }

    fn phi3small(&mut self) -> Result<()> {
        let [hidden, inter] = self.numbers(["hidden_size", "ff_intermediate_size"])?;
        let [heads, key_heads] = self.numbers(["num_attention_heads", "num_key_value_heads"])?;
        let joined = (heads + 2 * key_heads) * (hidden / heads);
        self.ends("")?;
        self.bias("model.norm", &[hidden]);
        for layer in 0..self.number("num_hidden_layers")? {
            let path = format!("model.layers.{layer}");
            for (name, outputs, inputs) in [
                ("self_attn.query_key_value", joined, hidden),
                ("self_attn.dense", hidden, hidden),
                ("mlp.up_proj", 2 * inter, hidden),
                ("mlp.down_proj", hidden, inter),
            ] {
                self.matrix(&format!("{path}.{name}"), outputs, inputs);
                self.bias(&format!("{path}.{name}"), &[outputs]);
            }
            for norm in ["input_layernorm", "post_attention_layernorm"] {
                self.norm(&format!("{path}.{norm}"), hidden);
                self.bias(&format!("{path}.{norm}"), &[hidden]);
            }
        }
        Ok(())
    }

    fn longcat_lite(&mut self) -> Result<()> {
        let [hidden, vocabulary, inter] = self.numbers(["hidden_size", "vocab_size", "ffn_hidden_size"])?;
        let [ratio, neighbors, splits] =
            self.numbers(["ngram_vocab_size_ratio", "emb_neighbor_num", "emb_split_num"])?;
        let [experts, of_expert, passing] =
            self.numbers(["n_routed_experts", "expert_ffn_hidden_size", "zero_expert_num"])?;
        self.ends("")?;
        let tables = (neighbors - 1) * splits;
        for table in 0..tables {
            let rows = ratio * vocabulary + 2 * table + 1;
            self.matrix(
                &format!("model.ngram_embeddings.embedders.{table}"),
                rows,
                hidden / tables,
            );
            self.matrix(
                &format!("model.ngram_embeddings.post_projs.{table}"),
                hidden,
                hidden / tables,
            );
        }
        for layer in 0..self.number("num_layers")? {
            let path = format!("model.layers.{layer}");
            self.weight(
                &format!("{path}.mlp.router.classifier"),
                &[experts + passing, hidden],
                Kind::Router,
            );
            let correction = format!("{path}.mlp.router.e_score_correction_bias");
            self.add(correction, &[experts + passing], Kind::Offsets);
            self.experts(&format!("{path}.mlp.switch_mlp"), experts, of_expert, false)?;
            for half in 0..2 {
                self.latents(&format!("{path}.self_attn.{half}"))?;
                self.mlp(&format!("{path}.mlps.{half}"), inter)?;
                self.norm(&format!("{path}.input_layernorm.{half}"), hidden);
                self.norm(&format!("{path}.post_attention_layernorm.{half}"), hidden);
            }
        }
        Ok(())
    }

    fn rwkv7(&mut self) -> Result<()> {
        let [hidden, width, inter] = self.numbers(["hidden_size", "head_dim", "intermediate_size"])?;
        let [decay, rate, value] = self.numbers(["decay_low_rank_dim", "a_low_rank_dim", "v_low_rank_dim"])?;
        let gate = self.number("gate_low_rank_dim")?;
        self.ends("")?;
        self.norm("model.embed_norm", hidden);
        let mut norms = vec!["model.embed_norm".to_owned(), "model.norm".to_owned()];
        for layer in 0..self.number("num_hidden_layers")? {
            let part = |name: &str| format!("model.layers.{layer}.{name}");
            for share in [
                "attn.x_r", "attn.x_w", "attn.x_k", "attn.x_v", "attn.x_a", "attn.x_g", "ffn.x_k",
            ] {
                self.add(part(share), &[hidden], Kind::Offsets);
            }
            for factor in ["attn.k_k", "attn.k_a", "attn.r_k"] {
                self.add(part(factor), &[hidden / width, width], Kind::Factors);
            }
            self.norm(&part("attn.g_norm"), hidden);
            for name in ["attn.r_proj", "attn.k_proj", "attn.v_proj", "attn.o_proj"] {
                self.matrix(&part(name), hidden, hidden);
            }
            for (name, rank) in [("w", decay), ("a", rate), ("v", value), ("g", gate)] {
                let place = part(&format!("attn.{name}_lora.lora"));
                self.matrix(&format!("{place}.0"), rank, hidden);
                self.matrix(&format!("{place}.2"), hidden, rank);
            }
            self.matrix(&part("ffn.key"), inter, hidden);
            self.matrix(&part("ffn.value"), hidden, inter);
            norms.push(part("attn.g_norm"));
            for name in ["attn_norm", "ffn_norm"] {
                self.norm(&part(name), hidden);
                norms.push(part(name));
            }
        }
        norms.iter().for_each(|norm| self.bias(norm, &[hidden]));
        Ok(())
    }

    fn minimax_m3(&mut self) -> Result<()> {
        let fields = ["hidden_size", "index_n_heads", "index_head_dim"];
        let [hidden, heads, width] = self.numbers(fields)?;
        let dense = self.number("dense_intermediate_size")?;
        self.ends("")?;
        for layer in 0..self.number("num_hidden_layers")? {
            let path = format!("model.layers.{layer}");
            let attention = format!("{path}.self_attn");
            self.attention(&attention, 1, false)?;
            self.head_norms(&attention)?;
            if self.config["layer_types"][layer as usize] != "full_attention" {
                self.matrix(&format!("{attention}.index_q_proj"), heads * width, hidden);
                self.matrix(&format!("{attention}.index_k_proj"), width, hidden);
                self.norm(&format!("{attention}.index_q_norm"), width);
                self.norm(&format!("{attention}.index_k_norm"), width);
            }
            match self.config["mlp_layer_types"][layer as usize] == "dense" {
                true => self.mlp(&format!("{path}.mlp"), dense)?,
                false => {
                    let names = ["gate", "e_score_correction_bias", "switch_mlp"];
                    self.corrected_experts(&format!("{path}.block_sparse_moe"), names)?;
                }
            }
            self.norm(&format!("{path}.input_layernorm"), hidden);
            self.norm(&format!("{path}.post_attention_layernorm"), hidden);
        }
        Ok(())
    }

    fn gemma4(&mut self) -> Result<()> {
        let [hidden, layers] = self.numbers(["hidden_size", "num_hidden_layers"])?;
        self.ends("")?;
        let per_layer = self.config["hidden_size_per_layer_input"].as_u64();
        if let Some(width) = per_layer {
            let tokens = self.number("vocab_size_per_layer_input")?;
            self.matrix("model.embed_tokens_per_layer", tokens, layers * width);
            self.matrix("model.per_layer_model_projection", layers * width, hidden);
            self.norm("model.per_layer_projection_norm", width);
        }
        let own = layers - self.number("num_kv_shared_layers")?;
        for layer in 0..layers {
            let path = format!("model.layers.{layer}");
            let full = self.config["layer_types"][layer as usize] == "full_attention";
            self.gemma4_attention(&format!("{path}.self_attn"), full, layer < own)?;
            let wide = self.flag("use_double_wide_mlp") && layer >= own;
            let inter = self.number("intermediate_size")? * if wide { 2 } else { 1 };
            self.mlp(&format!("{path}.mlp"), inter)?;
            let mut norms = vec![
                "input_layernorm",
                "post_attention_layernorm",
                "pre_feedforward_layernorm",
                "post_feedforward_layernorm",
            ];
            if self.flag("enable_moe_block") {
                norms.extend([
                    "post_feedforward_layernorm_1",
                    "post_feedforward_layernorm_2",
                    "pre_feedforward_layernorm_2",
                ]);
                let [experts, inter] = self.numbers(["num_experts", "moe_intermediate_size"])?;
                self.weight(&format!("{path}.router.proj"), &[experts, hidden], Kind::Wide);
                self.add(format!("{path}.router.scale"), &[hidden], Kind::Factors);
                self.add(format!("{path}.router.per_expert_scale"), &[experts], Kind::Factors);
                self.experts(&format!("{path}.experts.switch_glu"), experts, inter, false)?;
            }
            for norm in norms {
                self.norm(&format!("{path}.{norm}"), hidden);
            }
            if let Some(width) = per_layer {
                self.matrix(&format!("{path}.per_layer_input_gate"), width, hidden);
                self.matrix(&format!("{path}.per_layer_projection"), hidden, width);
                self.norm(&format!("{path}.post_per_layer_input_norm"), hidden);
            }
            self.add(format!("{path}.layer_scalar"), &[1], Kind::Factors);
        }
        Ok(())
    }

    fn gemma4_attention(&mut self, path: &str, full: bool, own: bool) -> Result<()> {
        let [hidden, heads] = self.numbers(["hidden_size", "num_attention_heads"])?;
        let width = self.number(if full { "global_head_dim" } else { "head_dim" })?;
        let shared = full && self.flag("attention_k_eq_v");
        let key_heads = match self.config["num_global_key_value_heads"].as_u64() {
            Some(global) if shared => global,
            _ => self.number("num_key_value_heads")?,
        };
        self.matrix(&format!("{path}.q_proj"), heads * width, hidden);
        self.matrix(&format!("{path}.o_proj"), hidden, heads * width);
        // Nothing else scales its scores: with factors around 1 a softmax would be as good as all of one key, and a rounding
        // would change which.
        let factors = Kind::Constant((width as f32).powf(-0.25));
        self.weight(&format!("{path}.q_norm"), &[width], factors);
        if own {
            self.matrix(&format!("{path}.k_proj"), key_heads * width, hidden);
            self.weight(&format!("{path}.k_norm"), &[width], factors);
            if !shared {
                self.matrix(&format!("{path}.v_proj"), key_heads * width, hidden);
            }
        }
        Ok(())
    }

    fn qwen3_5(&mut self) -> Result<()> {
        let [hidden, interval] = self.numbers(["hidden_size", "full_attention_interval"])?;
        let [key_heads, key_width] = self.numbers(["linear_num_key_heads", "linear_key_head_dim"])?;
        let [value_heads, value_width] = self.numbers(["linear_num_value_heads", "linear_value_head_dim"])?;
        let (values, kernel) = (value_heads * value_width, self.number("linear_conv_kernel_dim")?);
        let channels = 2 * key_heads * key_width + values;
        self.ends("language_model.")?;
        for layer in 0..self.number("num_hidden_layers")? {
            let path = format!("language_model.model.layers.{layer}");
            if (layer + 1).is_multiple_of(interval) {
                self.attention(&format!("{path}.self_attn"), 2, false)?;
                self.head_norms(&format!("{path}.self_attn"))?;
            } else {
                let part = |name: &str| format!("{path}.linear_attn.{name}");
                self.matrix(&part("in_proj_qkv"), channels, hidden);
                self.matrix(&part("in_proj_z"), values, hidden);
                self.matrix(&part("in_proj_b"), value_heads, hidden);
                self.matrix(&part("in_proj_a"), value_heads, hidden);
                self.matrix(&part("out_proj"), hidden, values);
                self.weight(&part("conv1d"), &[channels, kernel, 1], Kind::Wide);
                self.add(part("dt_bias"), &[value_heads], Kind::Factors);
                self.add(part("A_log"), &[value_heads], Kind::Factors);
                self.norm(&part("norm"), value_width);
            }
            self.mlp(&format!("{path}.mlp"), self.number("intermediate_size")?)?;
            self.norm(&format!("{path}.input_layernorm"), hidden);
            self.norm(&format!("{path}.post_attention_layernorm"), hidden);
        }
        Ok(())
    }
}
