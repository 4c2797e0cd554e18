//! config.json out of the metadata.

use serde_json::{json, Map, Value as Json};

use super::architecture::{Architecture, Biases, ARCHITECTURES};
use super::blocks::Half;
use super::file::{GgufFile, Value};
use super::hybrid::LayerKinds;
use super::metadata::Metadata;
use crate::error::{Error, Result};

/// The widths that the layout of tensors depends on.
#[derive(Debug, Clone)]
pub struct Widths {
    /// How many layers there are.
    pub layers: u64,
    /// Heads of queries.
    pub heads: u64,
    /// Heads of keys and values.
    pub key_heads: u64,
    /// Layers after them that draft and are left out.
    pub drafting: u64,
    /// Experts of a layer.
    pub experts: u64,
    /// The kinds of layers.
    pub kinds: LayerKinds,
}

/// The row of a file's architecture.
pub fn architecture(file: &GgufFile) -> Result<&'static Architecture> {
    let name = file.text("general.architecture");
    let name = name.ok_or_else(|| file.broken("it does not name its architecture"))?;
    if name == "clip" || file.text("general.type") == Some("mmproj") {
        return Err(Error::Unsupported(
            "the language model beside its vision part (`mmproj`)".into(),
        ));
    }
    if file.text("general.type").is_some_and(|of| of != "model") {
        return Err(Error::Unsupported("GGUF files of adapters".into()));
    }
    let experts = file.count(&format!("{name}.expert_count")).unwrap_or(0) > 0;
    let found = ARCHITECTURES
        .iter()
        .find(|row| row.name == name && row.experts == experts);
    found.ok_or_else(|| {
        let kind = if experts { " with experts" } else { "" };
        Error::Unsupported(format!("GGUF files of the architecture `{name}`{kind}"))
    })
}

/// config.json without `quantization`, and the widths of layers.
pub fn config(file: &GgufFile, row: &Architecture, half: Option<Half>) -> Result<(Map<String, Json>, Widths)> {
    let metadata = Metadata::new(file, row.name, row.hybrid.is_some());
    let drafting = metadata.count("nextn_predict_layers")?.unwrap_or(0);
    let layers = metadata.required("block_count")?.checked_sub(drafting);
    let layers = layers.filter(|layers| *layers > 0);
    let mut widths = Widths {
        layers: layers.ok_or_else(|| file.broken("it has not as many layers as it tells"))?,
        drafting,
        experts: metadata.count("expert_count")?.unwrap_or(0),
        kinds: LayerKinds::default(),
        heads: metadata.required("attention.head_count")?,
        key_heads: match metadata.count("attention.head_count_kv")?.filter(|count| *count > 0) {
            Some(count) => count,
            None => metadata.required("attention.head_count")?,
        },
    };
    let hidden = metadata.required("embedding_length")?;
    let head_dim = metadata.count("attention.key_length")?.unwrap_or(hidden / widths.heads);
    if metadata
        .count("attention.value_length")?
        .is_some_and(|width| width != head_dim)
    {
        return Err(Error::Unsupported("values of another width than keys".into()));
    }
    let embedding = file.tensor("token_embd.weight");
    let embedding = embedding.ok_or_else(|| file.broken("it lacks `token_embd.weight`"))?;
    // Layers are counted below, so that there are no more of them than tensors.
    if widths.layers > file.tensors().len() as u64 {
        return Err(file.broken("it has not as many layers as it tells"));
    }
    let tied = file.tensor("output.weight").is_none();
    let has = |name: &str| file.tensor(name).is_some();
    let mut config = Map::new();
    let mut set = |field: &str, value: Json| config.insert(field.to_owned(), value);
    set("architectures", json!([row.class]));
    set("model_type", json!(row.model_type));
    set("hidden_size", json!(hidden));
    set("num_hidden_layers", json!(widths.layers));
    set("num_attention_heads", json!(widths.heads));
    set("num_key_value_heads", json!(widths.key_heads));
    set("head_dim", json!(head_dim));
    set("vocab_size", json!(embedding.rows()));
    set("tie_word_embeddings", json!(tied));
    set("attention_bias", json!(attention_bias(file, row)?));
    set("mlp_bias", json!(has("blk.0.ffn_up.bias")));
    set("hidden_act", json!("silu"));
    // Cohere's field; other families have such norms or not.
    set("use_qk_norm", json!(has("blk.0.attn_q_norm.weight")));
    set(
        "torch_dtype",
        json!(match half {
            Some(Half::F16) => "float16",
            Some(Half::BF16) => "bfloat16",
            None => "float32",
        }),
    );
    for (field, key) in [
        ("intermediate_size", "feed_forward_length"),
        ("max_position_embeddings", "context_length"),
        ("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
        ("rope_theta", "rope.freq_base"),
    ] {
        if let Some(value) = metadata.json(key)? {
            set(field, value);
        }
    }
    if let Some(turning) = metadata
        .count("rope.dimension_count")?
        .filter(|turning| *turning != head_dim)
    {
        set("partial_rotary_factor", json!(turning as f64 / head_dim.max(1) as f64));
    }
    if let Some(layers) = row.shared_width {
        let width = if widths.layers == layers {
            hidden / widths.heads
        } else {
            head_dim
        };
        set("query_pre_attn_scalar", json!(width));
    }
    let constants: Map<String, Json> = serde_json::from_str(row.constants).unwrap_or_default();
    for (field, value) in constants {
        set(&field, value);
    }
    for (field, key) in row.fields {
        if let Some(value) = metadata.json(key)? {
            set(field, value);
        }
    }
    if let Some(hybrid) = row.hybrid {
        widths.kinds = hybrid(&metadata, widths.layers, &mut config)?;
    } else if let Some(mut scaling) = rope_scaling(&metadata)? {
        // Ministral's queries grow with the position, which stands among the parameters of its rope.
        if let Some(growth) = metadata.number("attention.temperature_scale") {
            scaling["llama_4_scaling_beta"] = json!(growth);
            config.insert("rope_parameters".to_owned(), scaling.clone());
        }
        config.insert("rope_scaling".to_owned(), scaling);
    }
    Ok((config, widths))
}

/// `attention_bias`, by the biases that the first layer has.
fn attention_bias(file: &GgufFile, row: &Architecture) -> Result<bool> {
    let has = |name: &str| file.tensor(&format!("blk.0.{name}.bias")).is_some();
    let (inputs, output) = (has("attn_q") || has("attn_qkv"), has("attn_output"));
    match row.biases {
        Biases::All if inputs != output => Err(Error::Unsupported(
            "biases of some of the projections of attention alone".into(),
        )),
        Biases::All | Biases::Inputs => Ok(inputs),
        Biases::Fixed => Ok(false),
    }
}

/// The `rope_scaling` that metadata and tensors tell of.
fn rope_scaling(metadata: &Metadata<'_>) -> Result<Option<Json>> {
    let kind = metadata.value("rope.scaling.type").and_then(Value::text);
    let factor = metadata.number("rope.scaling.factor").filter(|factor| *factor != 0.0);
    let amplitude = metadata.number("rope.scaling.attn_factor");
    let original = metadata.count("rope.scaling.original_context_length")?;
    let context = metadata.count("context_length")?;
    let tensor = |name: &str| metadata.tensor(name);
    let factors = tensor("rope_factors_long.weight").or(tensor("rope_freqs.weight"));
    match (kind, factors) {
        (None | Some("none" | "longrope"), Some(factors)) => {
            let loud = amplitude.unwrap_or(1.0);
            Ok(Some(json!({
                "rope_type": "longrope", "type": "longrope", "long_factor": metadata.small(factors)?,
                "short_factor": metadata.small(tensor("rope_factors_short.weight").unwrap_or(factors))?,
                "original_max_position_embeddings": original.or(context), "long_mscale": loud, "short_mscale": loud,
            })))
        }
        (None | Some("none"), None) => Ok(None),
        (Some("linear"), None) => {
            let factor = factor.ok_or_else(|| metadata.broken("its rope is scaled by nothing"))?;
            Ok(Some(json!({"rope_type": "linear", "type": "linear", "factor": factor})))
        }
        (Some("yarn"), None) if amplitude.is_none_or(|amplitude| amplitude == 1.0) => {
            let factor = factor.ok_or_else(|| metadata.broken("its rope is scaled by nothing"))?;
            let mut yarn = json!({"rope_type": "yarn", "type": "yarn", "factor": factor});
            let turns = |key| metadata.number(key);
            for (field, value) in [
                ("original_max_position_embeddings", original.map(Json::from)),
                ("beta_fast", turns("rope.scaling.yarn_beta_fast").map(Json::from)),
                ("beta_slow", turns("rope.scaling.yarn_beta_slow").map(Json::from)),
                ("mscale", turns("rope.scaling.yarn_log_multiplier").map(Json::from)),
                (
                    "mscale_all_dim",
                    turns("rope.scaling.yarn_log_multiplier").map(Json::from),
                ),
            ] {
                if let Some(value) = value {
                    yarn[field] = value;
                }
            }
            Ok(Some(yarn))
        }
        (Some(kind), _) => Err(Error::Unsupported(format!(
            "rotary positions of type `{kind}` as this GGUF file has them"
        ))),
    }
}
