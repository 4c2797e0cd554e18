//! EXAONE 4: norms after each half of a layer and of each head; in the large one three sliding layers for each full
//! one, which knows nothing of positions.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{NormPlacement, QkNorm};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("EXAONE 4", &["exaone4"], parse)];

/// EXAONE 4 of 1.2 and 32 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    // Either one letter per layer, repeated, or a list by name, as newer configs have it.
    let pattern = match text.has("layer_types") {
        true => None,
        false => text
            .text("sliding_window_pattern")?
            .filter(|pattern| !pattern.is_empty()),
    };
    if let Some(pattern) = pattern {
        let window = Some(text.required("sliding_window")?);
        for (attention, letter) in config.attention().zip(pattern.chars().cycle()) {
            attention.window = window.filter(|_| letter == 'L');
        }
    }
    let slides = config.attention().any(|attention| attention.window.is_some());
    for attention in config.attention() {
        attention.qk_norm = QkNorm::PerHead;
        attention.rope = attention.rope.filter(|_| !slides || attention.window.is_some());
    }
    config.each_layer(|layer| layer.norms = NormPlacement::Post);
    config.family()
}
