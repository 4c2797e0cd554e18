//! An answer while this process writes it.

pub(crate) mod answer;
pub(crate) mod tool_turn;
