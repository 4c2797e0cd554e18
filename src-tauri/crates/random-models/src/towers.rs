//! Models that see: the tensors that the configs of their towers ask for, and how an image is put into a prompt.

use serde_json::{json, Value};

use crate::entry::{Entry, Kind, Tensors};
use crate::error::{Error, Result};

/// How images are put into the prompts of a model.
pub struct ImagePrompts {
    /// The chat template.
    pub template: &'static str,
    /// Control tokens, of which the first takes a feature; their ids follow each other from [`WORDS`](crate::entry::WORDS) on.
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

/// The tensors of a tower, and of what is between it and a language part of this width, as conversions name and lay
/// them out.
pub fn entries(vision: &Value, text_width: u64) -> Result<Vec<Entry>> {
    let mut tower = Tensors::new(vision, "a tower");
    match vision["model_type"].as_str() {
        Some("gemma4_vision") => gemma4(&mut tower, text_width)?,
        Some("qwen3_vl") => qwen3(&mut tower)?,
        other => return Err(Error::UnsupportedConfig(format!("a tower of type {other:?}"))),
    }
    Ok(tower.entries)
}

impl Tensors<'_> {
    /// A matrix that conversions leave unpacked, and its bias.
    fn linear(&mut self, path: &str, outputs: u64, inputs: u64) {
        self.weight(path, &[outputs, inputs], Kind::Wide);
        self.bias(path, &[outputs]);
    }

    /// The factors and offsets of a norm.
    fn layer_norm(&mut self, path: &str, width: u64) {
        self.norm(path, width);
        self.bias(path, &[width]);
    }
}

fn gemma4(tower: &mut Tensors, text_width: u64) -> Result<()> {
    let [hidden, inter, side] = tower.numbers(["hidden_size", "intermediate_size", "patch_size"])?;
    let [heads, width] = tower.numbers(["num_attention_heads", "head_dim"])?;
    let heads = heads * width;
    let embedder = "vision_tower.patch_embedder";
    tower.weight(
        &format!("{embedder}.input_proj"),
        &[hidden, 3 * side * side],
        Kind::Wide,
    );
    let positions = [2, tower.number("position_embedding_size")?, hidden];
    let table = format!("{embedder}.position_embedding_table");
    tower.add(table, &positions, Kind::Offsets);
    for layer in 0..tower.number("num_hidden_layers")? {
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
            tower.weight(&format!("{path}.{name}.linear"), &[outputs, inputs], Kind::Wide);
            for bound in ["input", "output"] {
                let bound = format!("{path}.{name}.{bound}");
                tower.add(format!("{bound}_min"), &[], Kind::Constant(-32.0));
                tower.add(format!("{bound}_max"), &[], Kind::Constant(32.0));
            }
        }
        for (name, width) in [
            ("self_attn.q_norm", width),
            ("self_attn.k_norm", width),
            ("input_layernorm", hidden),
            ("post_attention_layernorm", hidden),
            ("pre_feedforward_layernorm", hidden),
            ("post_feedforward_layernorm", hidden),
        ] {
            tower.norm(&format!("{path}.{name}"), width);
        }
    }
    let projection = "embed_vision.embedding_projection";
    tower.weight(projection, &[text_width, hidden], Kind::Wide);
    Ok(())
}

fn qwen3(tower: &mut Tensors) -> Result<()> {
    let [hidden, inter, side] = tower.numbers(["hidden_size", "intermediate_size", "patch_size"])?;
    let [frames, merge] = tower.numbers(["temporal_patch_size", "spatial_merge_size"])?;
    let (joined, out) = (hidden * merge * merge, tower.number("out_hidden_size")?);
    let projection = "vision_tower.patch_embed.proj";
    tower.weight(projection, &[hidden, frames, side, side, 3], Kind::Wide);
    tower.bias(projection, &[hidden]);
    let positions = [tower.number("num_position_embeddings")?, hidden];
    tower.weight("vision_tower.pos_embed", &positions, Kind::Offsets);
    for layer in 0..tower.number("depth")? {
        let path = format!("vision_tower.blocks.{layer}");
        tower.layer_norm(&format!("{path}.norm1"), hidden);
        tower.layer_norm(&format!("{path}.norm2"), hidden);
        tower.linear(&format!("{path}.attn.qkv"), 3 * hidden, hidden);
        tower.linear(&format!("{path}.attn.proj"), hidden, hidden);
        tower.linear(&format!("{path}.mlp.linear_fc1"), inter, hidden);
        tower.linear(&format!("{path}.mlp.linear_fc2"), hidden, inter);
    }
    let deep = tower.config["deepstack_visual_indexes"].as_array().map_or(0, Vec::len);
    let mergers = (0..deep).map(|set| (format!("vision_tower.deepstack_merger_list.{set}"), joined));
    for (path, normed) in mergers.chain([("vision_tower.merger".to_owned(), hidden)]) {
        tower.layer_norm(&format!("{path}.norm"), normed);
        tower.linear(&format!("{path}.linear_fc1"), joined, joined);
        tower.linear(&format!("{path}.linear_fc2"), out, joined);
    }
    Ok(())
}
