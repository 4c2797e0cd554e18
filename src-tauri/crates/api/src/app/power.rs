//! Changes of the computer's memory, heat and power that windows show.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Memory that was freed because the computer ran short of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct MemoryRelease {
    /// The amount, in bytes.
    #[ts(type = "number")]
    pub bytes: u64,
    /// The references of the unloaded models; the next question loads its model again. If there are none, prefix caches
    /// were freed.
    pub unloaded: Vec<String>,
}

/// The cause of a slow computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Slowdown {
    /// It saves power.
    LowPower,
    /// It is hot.
    Heat,
}
