//! Shapes of models that see: what the published files say of their towers, the tensors that these ask for, and how a
//! image is put into a prompt.

use serde_json::{json, Value};

use crate::configs;
use crate::entry::{Entry, Kind, WORDS};
use crate::error::{Error, Result};

/// How images are put into the prompts of a model.
pub struct ImagePrompts {
    /// The chat template.
    pub template: &'static str,
    /// Control tokens, of which the first takes a feature; their ids follow each other from [`WORDS`] on.
    pub tokens: &'static [&'static str],
    /// `preprocessor_config.json`.
    pub processor: Value,
}

macro_rules! template {
    ($image:literal) => {
        concat!(
            "{% for message in messages %}{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}",
            "{% if part.type == 'image' %}",
            $image,
            "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}"
        )
    };
}

/// Those of the model with this `config.json`, if it sees.
pub fn prompts(config: &Value) -> Option<ImagePrompts> {
    let vision = config.get("vision_config")?;
    match config["model_type"].as_str()? {
        "gemma4" => Some(ImagePrompts {
            template: template!("<|image|>"),
            tokens: &["<|image|>", "<|image>", "<image|>"],
            processor: json!({"image_processor_type": "Gemma4ImageProcessor", "do_resize": true, "do_rescale": true, "rescale_factor": 1.0 / 255.0,
                "do_normalize": false, "image_mean": [0.0, 0.0, 0.0], "image_std": [1.0, 1.0, 1.0], "resample": 3, "patch_size": vision["patch_size"],
                "pooling_kernel_size": vision["pooling_kernel_size"], "max_soft_tokens": vision["default_output_length"],
                "image_seq_length": vision["default_output_length"]}),
        }),
        "qwen3_vl" => Some(ImagePrompts {
            template: template!("<|vision_start|><|image_pad|><|vision_end|>"),
            tokens: &["<|image_pad|>", "<|vision_start|>", "<|vision_end|>", "<|video_pad|>"],
            processor: json!({"image_processor_type": "Qwen2VLImageProcessorFast", "size": {"shortest_edge": 65_536, "longest_edge": 16_777_216},
                "patch_size": vision["patch_size"], "temporal_patch_size": vision["temporal_patch_size"], "merge_size": vision["spatial_merge_size"],
                "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}),
        }),
        _ => None,
    }
}

/// The config of a shape that sees; `None` for other shapes.
pub fn config(name: &str, small: bool) -> Option<Value> {
    let (text, mut config) = match name {
        "gemma4-e4b-vision" => (
            if small { "gemma4-e2b-small" } else { "gemma4-e4b" },
            json!({"model_type": "gemma4", "image_token_id": WORDS, "boi_token_id": WORDS + 1, "eoi_token_id": WORDS + 2,
                "audio_token_id": WORDS + 3, "audio_config": null, "vision_soft_tokens_per_image": 280, "tie_word_embeddings": true,
                "vision_config": {"model_type": "gemma4_vision", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 16,
                    "num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64, "global_head_dim": 64, "patch_size": 16,
                    "pooling_kernel_size": 3, "position_embedding_size": 10_240, "default_output_length": 280, "rms_norm_eps": 1e-6,
                    "use_clipped_linears": true, "standardize": false, "hidden_activation": "gelu_pytorch_tanh",
                    "rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}}),
        ),
        "qwen3-vl-4b" => (
            if small { "qwen3-4b-small" } else { "qwen3-4b" },
            json!({"model_type": "qwen3_vl", "image_token_id": WORDS, "vision_start_token_id": WORDS + 1, "vision_end_token_id": WORDS + 2,
                "video_token_id": WORDS + 3, "tie_word_embeddings": true,
                "vision_config": {"model_type": "qwen3_vl", "depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "num_heads": 16,
                    "in_channels": 3, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 2560,
                    "num_position_embeddings": 2304, "deepstack_visual_indexes": [5, 11, 17], "hidden_act": "gelu_pytorch_tanh"}}),
        ),
        _ => return None,
    };
    let mut text = configs::config(text)?;
    let fields = text.as_object_mut()?;
    for name in ["quantization", "quantization_config", "eos_token_id", "torch_dtype"] {
        if let Some(value) = fields.remove(name) {
            config[name] = value;
        }
    }
    if name == "qwen3-vl-4b" {
        text["model_type"] = json!("qwen3_vl_text");
        text["rope_theta"] = json!(5_000_000.0);
        let sections = if small { [12, 10, 10] } else { [24, 20, 20] };
        text["rope_scaling"] = json!({"rope_type": "default", "mrope_interleaved": true, "mrope_section": sections});
        config["vision_config"]["out_hidden_size"] = text["hidden_size"].clone();
    }
    if small {
        // Heads of the same width, a third of the layers, and of Gemma 4 the fewest tokens, which it gives to images
        // of any size.
        let tower = match name {
            "qwen3-vl-4b" => {
                json!({"depth": 8, "hidden_size": 384, "intermediate_size": 1536, "num_heads": 6, "deepstack_visual_indexes": [1, 3, 5]})
            }
            _ => {
                json!({"num_hidden_layers": 6, "hidden_size": 384, "intermediate_size": 1536, "num_attention_heads": 6, "num_key_value_heads": 6,
                "default_output_length": 70})
            }
        };
        for (field, value) in tower.as_object()? {
            config["vision_config"][field] = value.clone();
        }
    }
    config["text_config"] = text;
    Some(config)
}

/// The tensors of a tower, and of what is between it and a language part of this width, as conversions name and lay
/// them out.
pub fn entries(vision: &Value, text_width: u64) -> Result<Vec<Entry>> {
    let mut tower = Tower {
        config: vision,
        entries: Vec::new(),
    };
    match vision["model_type"].as_str() {
        Some("gemma4_vision") => tower.gemma4(text_width)?,
        Some("qwen3_vl") => tower.qwen3()?,
        other => return Err(Error::UnsupportedConfig(format!("a tower of type {other:?}"))),
    }
    Ok(tower.entries)
}

/// Collects the tensors of one tower. Conversions leave them unpacked.
struct Tower<'a> {
    config: &'a Value,
    entries: Vec<Entry>,
}

impl Tower<'_> {
    fn number(&self, field: &'static str) -> Result<u64> {
        let number = self.config[field].as_u64();
        number.ok_or_else(|| Error::UnsupportedConfig(format!("a tower without `{field}`")))
    }

    fn add(&mut self, name: String, shape: &[u64], kind: Kind) {
        let shape = shape.to_vec();
        self.entries.push(Entry { name, shape, kind });
    }

    /// A matrix and its bias.
    fn linear(&mut self, path: &str, outputs: u64, inputs: u64) {
        self.add(format!("{path}.weight"), &[outputs, inputs], Kind::Wide);
        self.add(format!("{path}.bias"), &[outputs], Kind::Offsets);
    }

    /// The factors and offsets of a norm.
    fn layer_norm(&mut self, path: &str, width: u64) {
        self.add(format!("{path}.weight"), &[width], Kind::Factors);
        self.add(format!("{path}.bias"), &[width], Kind::Offsets);
    }

    fn gemma4(&mut self, text_width: u64) -> Result<()> {
        let (hidden, inter, side) = (
            self.number("hidden_size")?,
            self.number("intermediate_size")?,
            self.number("patch_size")?,
        );
        let heads = self.number("num_attention_heads")? * self.number("head_dim")?;
        let embedder = "vision_tower.patch_embedder";
        self.add(
            format!("{embedder}.input_proj.weight"),
            &[hidden, 3 * side * side],
            Kind::Wide,
        );
        let positions = [2, self.number("position_embedding_size")?, hidden];
        self.add(
            format!("{embedder}.position_embedding_table"),
            &positions,
            Kind::Offsets,
        );
        for layer in 0..self.number("num_hidden_layers")? {
            let path = format!("vision_tower.encoder.layers.{layer}");
            for (name, outputs, inputs) in [
                ("self_attn.q_proj", heads, hidden),
                ("self_attn.k_proj", heads, hidden),
                ("self_attn.v_proj", heads, hidden),
                ("self_attn.o_proj", hidden, heads),
                ("mlp.gate_proj", inter, hidden),
                ("mlp.up_proj", inter, hidden),
                ("mlp.down_proj", hidden, inter),
            ] {
                self.add(format!("{path}.{name}.linear.weight"), &[outputs, inputs], Kind::Wide);
                for (bound, number) in [
                    ("input_min", -32.0),
                    ("input_max", 32.0),
                    ("output_min", -32.0),
                    ("output_max", 32.0),
                ] {
                    self.add(format!("{path}.{name}.{bound}"), &[], Kind::Constant(number));
                }
            }
            let width = self.number("head_dim")?;
            for (name, width) in [
                ("self_attn.q_norm", width),
                ("self_attn.k_norm", width),
                ("input_layernorm", hidden),
                ("post_attention_layernorm", hidden),
                ("pre_feedforward_layernorm", hidden),
                ("post_feedforward_layernorm", hidden),
            ] {
                self.add(format!("{path}.{name}.weight"), &[width], Kind::Factors);
            }
        }
        self.add(
            "embed_vision.embedding_projection.weight".into(),
            &[text_width, hidden],
            Kind::Wide,
        );
        Ok(())
    }

    fn qwen3(&mut self) -> Result<()> {
        let (hidden, inter, side) = (
            self.number("hidden_size")?,
            self.number("intermediate_size")?,
            self.number("patch_size")?,
        );
        let (frames, merge) = (self.number("temporal_patch_size")?, self.number("spatial_merge_size")?);
        let (joined, out) = (hidden * merge * merge, self.number("out_hidden_size")?);
        let projection = "vision_tower.patch_embed.proj";
        self.add(
            format!("{projection}.weight"),
            &[hidden, frames, side, side, 3],
            Kind::Wide,
        );
        self.add(format!("{projection}.bias"), &[hidden], Kind::Offsets);
        let positions = [self.number("num_position_embeddings")?, hidden];
        self.add("vision_tower.pos_embed.weight".into(), &positions, Kind::Offsets);
        for layer in 0..self.number("depth")? {
            let path = format!("vision_tower.blocks.{layer}");
            self.layer_norm(&format!("{path}.norm1"), hidden);
            self.layer_norm(&format!("{path}.norm2"), hidden);
            self.linear(&format!("{path}.attn.qkv"), 3 * hidden, hidden);
            self.linear(&format!("{path}.attn.proj"), hidden, hidden);
            self.linear(&format!("{path}.mlp.linear_fc1"), inter, hidden);
            self.linear(&format!("{path}.mlp.linear_fc2"), hidden, inter);
        }
        let deep = self.config["deepstack_visual_indexes"].as_array().map_or(0, Vec::len);
        let mergers = (0..deep).map(|set| (format!("vision_tower.deepstack_merger_list.{set}"), joined));
        for (path, normed) in mergers.chain([("vision_tower.merger".to_owned(), hidden)]) {
            self.layer_norm(&format!("{path}.norm"), normed);
            self.linear(&format!("{path}.linear_fc1"), joined, joined);
            self.linear(&format!("{path}.linear_fc2"), out, joined);
        }
        Ok(())
    }
}
