//! SmolLM 3: Llama's shape, in which every fourth layer knows nothing of positions.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::Family;
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("SmolLM 3", &["smollm3"], parse)];

/// SmolLM 3.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    const FIELD: &str = "no_rope_layers";
    let mut config = llama::decoder(source.text)?;
    let every = source.text.number("no_rope_layer_interval")?.unwrap_or(4u32).max(1) as usize;
    let turns = match source.text.numbers(FIELD)? {
        Some(turns) if turns.len() != config.layers.len() => {
            let reason = format!("it has {} entries for {} layers", turns.len(), config.layers.len());
            return unusable(FIELD, reason);
        }
        Some(turns) => turns.iter().map(|turn| *turn != 0.0).collect(),
        None => (1..=config.layers.len())
            .map(|layer| !layer.is_multiple_of(every))
            .collect::<Vec<_>>(),
    };
    for (attention, turns) in config.attention().zip(turns) {
        attention.rope = attention.rope.filter(|_| turns);
    }
    config.family()
}
