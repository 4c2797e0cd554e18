//! Architectures whose layers are of several kinds: the fields of config.json that tell them apart.

use serde_json::{json, Map, Value as Json};

use super::file::Value;
use super::metadata::Metadata;
use super::order::ValueHeads;
use crate::error::Result;

/// Adds the fields of such an architecture to config.json.
pub type LayerReader = fn(&Metadata<'_>, u64, &mut Map<String, Json>) -> Result<LayerKinds>;

/// The layers of a file.
#[derive(Debug, Clone, Default)]
pub struct LayerKinds {
    /// The kind of each; layers of one kind have the same tensors. Empty if all are of one.
    pub kinds: Vec<u8>,
    /// The heads of delta nets.
    pub value_heads: Option<ValueHeads>,
}

/// Qwen 3.5: attention in every `full_attention_interval`th layer, delta nets in the others.
pub fn qwen35(metadata: &Metadata<'_>, layers: u64, config: &mut Map<String, Json>) -> Result<LayerKinds> {
    let [kernel, key_width, keys, values, inner] = [
        "conv_kernel",
        "state_size",
        "group_count",
        "time_step_rank",
        "inner_size",
    ]
    .map(|key| metadata.required(&format!("ssm.{key}")));
    let (key_width, keys, values) = (key_width?, keys?, values?);
    let value_width = inner? / values;
    let interval = metadata.count("full_attention_interval")?.unwrap_or(4).max(1);
    for (field, value) in [
        ("linear_conv_kernel_dim", kernel?),
        ("linear_key_head_dim", key_width),
        ("linear_num_key_heads", keys),
        ("linear_num_value_heads", values),
        ("linear_value_head_dim", value_width),
        ("full_attention_interval", interval),
    ] {
        config.insert(field.to_owned(), json!(value));
    }
    let turning = metadata.required("rope.dimension_count")? as f64;
    let width = config.get("head_dim").and_then(Json::as_u64).unwrap_or(1).max(1);
    let mut rope = json!({
        "rope_type": "default", "rope_theta": metadata.number("rope.freq_base"),
        "partial_rotary_factor": turning / width as f64,
    });
    let sections = metadata.value("rope.dimension_sections").and_then(Value::integers);
    if let Some(sections) = sections.and_then(|sections| sections.get(..3)) {
        rope["mrope_section"] = json!(sections);
        rope["mrope_interleaved"] = json!(true);
    }
    config.insert("rope_parameters".to_owned(), rope);
    Ok(LayerKinds {
        kinds: (1..=layers).map(|layer| u8::from(layer % interval == 0)).collect(),
        value_heads: Some(ValueHeads {
            keys,
            each: values / keys,
            key_width,
            width: value_width,
        })
        .filter(|heads| heads.each > 1),
    })
}

/// Gemma 4: layers with a window and full ones, of which the last ones use the keys and values of others.
pub fn gemma4(metadata: &Metadata<'_>, layers: u64, config: &mut Map<String, Json>) -> Result<LayerKinds> {
    let windows = metadata
        .value("attention.sliding_window_pattern")
        .and_then(Value::flags);
    let windows = windows.filter(|windows| windows.len() as u64 == layers);
    let windows = windows.ok_or_else(|| metadata.broken("it does not tell which of its layers have a window"))?;
    let kind = |window: &bool| if *window { "sliding_attention" } else { "full_attention" };
    let full = windows.iter().position(|window| !window);
    let mut set = |field: &str, value: Json| config.insert(field.to_owned(), value);
    set("layer_types", windows.iter().map(kind).collect());
    set("global_head_dim", json!(metadata.required("attention.key_length")?));
    set("head_dim", json!(metadata.required("attention.key_length_swa")?));
    let heads = metadata.value("attention.head_count_kv").and_then(Value::integers);
    if let Some(count) = full.and_then(|layer| heads?.get(layer)) {
        set("num_global_key_value_heads", json!(count));
    }
    if let Some(layer) = full {
        let has = |part: &str| metadata.tensor(&format!("blk.{layer}.{part}.weight")).is_some();
        set("attention_k_eq_v", json!(has("attn_k") && !has("attn_v")));
    }
    let networks = metadata.value("feed_forward_length").and_then(Value::integers);
    set(
        "use_double_wide_mlp",
        json!(networks.is_some_and(|widths| widths.first() != widths.last())),
    );
    if let Some(embedding) = metadata.tensor("per_layer_token_embd.weight") {
        set("vocab_size_per_layer_input", json!(embedding.rows()));
    }
    set(
        "enable_moe_block",
        json!(metadata.count("expert_count")?.is_some_and(|count| count > 0)),
    );
    // The others are turned by nothing.
    let turned = match metadata.tensor("rope_freqs.weight") {
        Some(factors) => {
            let factors = metadata.small(factors)?;
            let turned = factors.iter().filter(|factor| **factor == 1.0).count();
            turned as f64 / factors.len().max(1) as f64
        }
        None => 1.0,
    };
    set(
        "rope_parameters",
        json!({
            "full_attention": {"rope_type": "proportional", "rope_theta": metadata.number("rope.freq_base"),
                "partial_rotary_factor": turned},
            "sliding_attention": {"rope_type": "default", "rope_theta": metadata.number("rope.freq_base_swa")},
        }),
    );
    let own = layers.saturating_sub(metadata.count("attention.shared_kv_layers")?.unwrap_or(0));
    let kinds = windows.iter().zip(0..);
    Ok(LayerKinds {
        kinds: kinds
            .map(|(window, layer)| 2 * u8::from(layer >= own) + u8::from(*window))
            .collect(),
        value_heads: None,
    })
}
