//! Names of tensors whose layers are two here.

/// The name of a tensor of a layer that is two here: `layers.3.self_attn.1.…` is `layers.7.self_attn.…`, and what both
/// halves share belongs to the first.
pub(super) fn of_half(name: &str) -> Option<String> {
    let (layer, rest) = name.strip_prefix("layers.")?.split_once('.')?;
    let (first, (part, inner)) = (layer.parse::<u32>().ok()?.checked_mul(2)?, rest.split_once('.')?);
    match (part, inner.split_once('.')) {
        ("mlps", Some((half, inner))) => Some(format!("layers.{}.mlp.{inner}", first + half.parse::<u32>().ok()?)),
        (_, Some((half, inner))) if matches!(half, "0" | "1") => {
            let half = u32::from(half == "1");
            Some(format!("layers.{}.{part}.{inner}", first + half))
        }
        _ => Some(format!("layers.{first}.{rest}")),
    }
}

/// The same if `attn` and its norm are the first half, and `ffn` and its norm the second.
pub(super) fn of_named_half(name: &str) -> Option<String> {
    let (layer, rest) = name.strip_prefix("layers.")?.split_once('.')?;
    let (first, (part, inner)) = (layer.parse::<u32>().ok()?.checked_mul(2)?, rest.split_once('.')?);
    let (half, part) = match part {
        "attn_norm" => (0, "input_layernorm"),
        "ffn_norm" => (1, "input_layernorm"),
        "ffn" => (1, part),
        _ => (0, part),
    };
    Some(format!("layers.{}.{part}.{inner}", first + half))
}
