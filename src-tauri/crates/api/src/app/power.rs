//! What windows are told of the computer's memory, heat and power.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What was given back because the computer's memory got short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct MemoryRelease {
    /// How much, in bytes.
    #[ts(type = "number")]
    pub bytes: u64,
    /// The references of the models that were put out of memory; the next question loads its model again. If there are none, what was kept
    /// of earlier questions went.
    pub unloaded: Vec<String>,
}

/// What slows this computer down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Slowdown {
    /// It saves power.
    LowPower,
    /// It has become hot.
    Heat,
}
