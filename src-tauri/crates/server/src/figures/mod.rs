//! Counts of what the server does and for whom.

pub(crate) mod clients;
pub(crate) mod metrics;
pub(crate) mod tokens;
