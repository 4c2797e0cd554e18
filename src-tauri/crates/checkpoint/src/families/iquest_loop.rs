//! IQuest Loop Coder: Llama's shape, whose layers a stream goes through twice. The second time attention sees a few of
//! its own keys and all of the first time's. Defaults are those of mlx-lm's `iquestloopcoder.py`.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::rope::Defaults;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("IQuest Loop Coder", &["iquestloopcoder"], parse)];

/// IQuest Loop Coder of 40 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let loops: u32 = text.number("loop_num")?.unwrap_or(2);
    if loops != 2 {
        return Err(Error::Unsupported(format!(
            "layers that are gone through {loops} times"
        )));
    }
    let mut config = llama::activated(text, llama::activation(text)?, Defaults::new(500_000.0))?;
    config.loops = loops;
    config.loop_window = Some(text.number("loop_window_size")?.unwrap_or(64));
    config.family()
}
