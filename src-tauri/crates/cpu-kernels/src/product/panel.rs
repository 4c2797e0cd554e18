//! The size of what is multiplied at once if there are many rows.

use crate::isa::{for_isa, Isa};
use crate::lanes::Lanes;

/// Rows of a panel.
pub fn rows(isa: Isa) -> usize {
    tile(isa).0
}

/// Outputs that are multiplied with a panel at once.
pub fn outputs(isa: Isa) -> usize {
    tile(isa).1
}

fn tile(isa: Isa) -> (usize, usize) {
    fn of<L: Lanes>() -> (usize, usize) {
        (L::TILE.0 * L::COUNT, L::TILE.1)
    }
    for_isa!(isa, of())
}
