//! Names of tensors: which part of a model one belongs to.

/// Parts of a checkpoint that the text model does not use.
const UNUSED: [&str; 42] = [
    "vision_tower.",
    "vision_model.",
    "vision_backbone.",
    "visual.",
    "multi_modal_projector.",
    "mm_projector.",
    "image_newline",
    "vit_merger.",
    "merger.mlp.",
    "resampler_model.",
    "layerwise_projectors.",
    "spatial_projectors.",
    "siglip2.",
    "vit.",
    "img_projector.",
    "audio_tower.",
    "audio_encoder.",
    "speech_embeddings.",
    "embed_audio.",
    "embed_vision.",
    "vision_embedder.",
    "vision_embed_tokens.",
    "embed_tokens_extend.",
    "audio_projection.",
    "sound_encoder.",
    "sound_projection.",
    "vision_final_layernorm.",
    "aligner.",
    "vision.",
    "projector.",
    "view_sep",
    "vl_connector.",
    "sam_model.",
    "gen_embed.",
    "gen_head.",
    "talker.",
    "code2wav.",
    "rotary_emb",
    "input_max",
    "input_min",
    "output_max",
    "output_min",
];

/// True if the text model does not use a tensor of this name; such tensors are never read.
pub fn is_unused_tensor(name: &str) -> bool {
    // Factors of an adapter for images have its name (Phi 4).
    !name.contains(".lora_") && UNUSED.iter().any(|part| name.contains(part))
}

/// Name prefixes of vision encoder and projector tensors.
const PARTS: [&str; 28] = [
    "vision_tower.",
    "vision_model.",
    "vision_backbone.",
    "visual.",
    "multi_modal_projector.",
    "mm_projector.",
    "image_newline",
    "vit_merger.",
    "merger.mlp.",
    "resampler_model.",
    "layerwise_projectors.",
    "spatial_projectors.",
    "embed_vision.",
    "vision_embed_tokens.",
    "embed_tokens_extend.image_embed.",
    "aligner.",
    "vision.",
    "projector.",
    "view_sep",
    "vl_connector.",
    "sam_model.",
    "connector.",
    "mlp1.",
    "vision_final_layernorm.",
    "vision_projector.",
    "mlp_AR.",
    "vit.",
    "img_projector.",
];

/// A tensor's name without what wrappers of the text model and of towers put before it.
pub fn without_wrappers(name: &str) -> &str {
    const WRAPPERS: [&str; 5] = ["language_model.", "language.", "model.", "text_model.", "thinker."];
    let mut short = name;
    while let Some(rest) = WRAPPERS.iter().find_map(|wrapper| short.strip_prefix(wrapper)) {
        short = rest;
    }
    short
}

/// The name of a tower's tensor without what wrappers put before it; `None` for tensors of other parts. Qwen's towers,
/// HunyuanOCR's, Molmo's and Phi 4's are called `vision_tower` as in conversions, whatever the file says, and
/// DeepSeek-VL2's as that of Janus.
pub fn tower_tensor(name: &str) -> Option<String> {
    let short = without_wrappers(name);
    PARTS.iter().find(|part| short.starts_with(**part))?;
    if let Some(rest) = short.strip_prefix("vision.") {
        let rest = rest.strip_prefix("vision_tower.").unwrap_or(rest);
        return Some(format!("vision_model.vision_tower.{rest}"));
    }
    let own = [
        "visual.",
        "vit.",
        "vision_backbone.",
        "embed_tokens_extend.image_embed.",
    ];
    Some(match own.iter().find_map(|prefix| short.strip_prefix(prefix)) {
        Some(rest) => format!("vision_tower.{rest}"),
        None => short.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::tower_tensor;

    #[test]
    fn towers_are_found_whatever_stands_before_their_names() {
        for (name, short) in [
            (
                "vision_tower.blocks.0.norm1.weight",
                Some("vision_tower.blocks.0.norm1.weight"),
            ),
            (
                "model.visual.blocks.0.norm1.weight",
                Some("vision_tower.blocks.0.norm1.weight"),
            ),
            ("visual.merger.ln_q.weight", Some("vision_tower.merger.ln_q.weight")),
            (
                "model.language_model.visual.merger.ln_q.weight",
                Some("vision_tower.merger.ln_q.weight"),
            ),
            (
                "model.vision_tower.patch_embedder.input_proj.weight",
                Some("vision_tower.patch_embedder.input_proj.weight"),
            ),
            (
                "model.embed_vision.embedding_projection.weight",
                Some("embed_vision.embedding_projection.weight"),
            ),
            (
                "vit.layers.0.input_layernorm.weight",
                Some("vision_tower.layers.0.input_layernorm.weight"),
            ),
            (
                "vision.blocks.0.norm1.weight",
                Some("vision_model.vision_tower.blocks.0.norm1.weight"),
            ),
            (
                "vision.vision_tower.pos_embed",
                Some("vision_model.vision_tower.pos_embed"),
            ),
            ("language.model.layers.0.mlp.up_proj.weight", None),
            (
                "model.vision_backbone.image_projector.w1.weight",
                Some("vision_tower.image_projector.w1.weight"),
            ),
            (
                "model.embed_tokens_extend.image_embed.glb_GN",
                Some("vision_tower.glb_GN"),
            ),
            (
                "model.embed_tokens_extend.audio_embed.audio_projection.vision.0.bias",
                None,
            ),
            ("img_projector.weight", Some("img_projector.weight")),
            (
                "language_model.model.img_projector.weight",
                Some("img_projector.weight"),
            ),
            ("language_model.model.layers.0.mlp.up_proj.weight", None),
            ("model.embed_tokens.weight", None),
        ] {
            assert_eq!(tower_tensor(name).as_deref(), short, "{name}");
        }
    }
}
