//! An answer while this process writes it.

pub(crate) mod answer;
