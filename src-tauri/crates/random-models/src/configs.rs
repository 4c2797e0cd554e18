//! The `config.json` of each shape, as published, without what a forward pass does not read.

use std::sync::LazyLock;

use serde_json::{json, Map, Value};

/// The shapes by name. One with a `base` is that shape with its own fields put over it.
static SHAPES: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("shapes.json")).expect("shapes.json is an object"));

/// The config of a shape; `None` for other names.
pub fn config(name: &str) -> Option<Value> {
    let mut config = Value::Null;
    put_over(&mut config, SHAPES.get(name)?);
    write_layers(&mut config);
    config.get_mut("text_config").into_iter().for_each(write_layers);
    if !name.ends_with("-small") {
        let bits = match name {
            "gpt-oss-20b" => json!({"group_size": 32, "bits": 4, "mode": "mxfp4"}),
            _ => json!({"group_size": 64, "bits": 4, "mode": "affine"}),
        };
        config["quantization"] = bits.clone();
        config["quantization_config"] = bits;
    }
    config["torch_dtype"] = json!("bfloat16");
    config["eos_token_id"] = json!(1);
    Some(config)
}

/// Puts a shape over a config, after its base if it has one.
fn put_over(config: &mut Value, shape: &Value) {
    let Value::Object(fields) = shape else {
        return *config = shape.clone();
    };
    if let Some(base) = fields.get("base").and_then(Value::as_str) {
        put_over(config, &SHAPES[base]);
    }
    for (field, value) in fields.iter().filter(|(field, _)| *field != "base") {
        put_over(&mut config[field.as_str()], value);
    }
}

/// Gemma 4 names the kind of each layer: one in several sees everything.
fn write_layers(config: &mut Value) {
    let Some(every) = config["full_attention_every"].as_u64() else {
        return;
    };
    let kind = |layer: u64| match layer.is_multiple_of(every) {
        true => "full_attention",
        false => "sliding_attention",
    };
    let layers = config["num_hidden_layers"].as_u64().unwrap_or_default();
    config["layer_types"] = (1..=layers).map(kind).collect();
    config
        .as_object_mut()
        .and_then(|fields| fields.remove("full_attention_every"));
}
