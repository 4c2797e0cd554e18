//! Mistral, Ministral 3, and the wrapper that puts eyes on them: Llama's shape, with windows or with queries that grow.

use super::deepseek;
use super::llama;
use super::mistral4;
use super::row::{FamilyRow, VisionRow};
use super::source::Source;
use super::vision::pixtral;
use crate::config::decoder::QueryScaling;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("Mistral", &["mistral"], mistral),
    FamilyRow::text("Ministral 3, text only", &["ministral3"], ministral3),
    FamilyRow::vision(
        "Mistral Large 3",
        &["mistral_large3"],
        deepseek::deepseek,
        VisionRow {
            encoder: pixtral::mistral3,
            ..pixtral::VISION
        },
    ),
    FamilyRow::vision(
        "Mistral 3 and Ministral 3",
        &["mistral3"],
        wrapper,
        VisionRow {
            encoder: pixtral::mistral3,
            ..pixtral::VISION
        },
    ),
];

/// Mistral, whose first version has a window in every layer.
pub(super) fn mistral(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    if text.texts("layer_types")?.is_none() {
        let window = text.number("sliding_window")?;
        config.each_attention(|attention| attention.window = window);
    }
    config.family()
}

/// Ministral 3.
pub(super) fn ministral3(source: Source<'_>) -> Result<Family, Error> {
    let mut config = llama::decoder(source.text)?;
    if let Some(rope) = source.text.object("rope_parameters")? {
        if let Some(beta) = rope.number("llama_4_scaling_beta")? {
            let original_context = rope.required("original_max_position_embeddings")?;
            let scaling = QueryScaling {
                beta,
                original_context,
                from_one: false,
            };
            config.each_attention(|attention| attention.query_scaling = Some(scaling));
        }
    }
    config.family()
}

/// `mistral3`: a language model of one of several types beside a vision tower.
pub(super) fn wrapper(source: Source<'_>) -> Result<Family, Error> {
    match source.text.text("model_type")?.as_deref() {
        Some("ministral3") => ministral3(source),
        Some("mistral4") => mistral4::parse(source),
        Some("mistral" | "llama") | None => mistral(source),
        Some(other) => Err(super::unknown(&format!("mistral3 with {other}"))),
    }
}
