//! Nanbeige 4.1 and later: Llama's shape, whose layers a stream goes through several times, each time with keys of its
//! own. Defaults are those of mlx-lm's `nanbeige.py`.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Nanbeige", &["nanbeige"], parse)];

/// Nanbeige with loops.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    for field in ["enable_double_loop_split", "loop_share_kv", "enable_depth_attention"] {
        if text.flag(field)?.unwrap_or(false) {
            return Err(Error::Unsupported(format!(
                "layers that are gone through again with `{field}`"
            )));
        }
    }
    let mut config = llama::decoder(text)?;
    // Models that were trained with a loss after each loop have a weight of it for all but the last one.
    let extra = text.numbers("loop_loss_weights")?.filter(|weights| !weights.is_empty());
    config.loops = match extra {
        Some(weights) => u32::try_from(weights.len()).unwrap_or(u32::MAX).saturating_add(1),
        None => text.number("num_loops")?.unwrap_or(1),
    };
    config.loops_normed = !text.flag("skip_loop_final_norm")?.unwrap_or(false);
    config.family()
}
