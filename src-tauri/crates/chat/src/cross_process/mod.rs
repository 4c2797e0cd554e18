//! Answers and processes of other programs that share the history file.

pub(crate) mod answer;
pub(crate) mod owner;
