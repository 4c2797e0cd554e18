//! The options of the engine.

use std::path::PathBuf;
use std::sync::Arc;

use protocol::{ComputeDevice, MemoryGuard};

/// The options that a host starts its engine with.
#[derive(Debug, Clone, Default)]
pub struct EngineOptions {
    /// Is asked before a model is loaded and before a chunk is read.
    pub memory_guard: Option<Arc<dyn MemoryGuard>>,
    /// A folder for verdicts and kernels that are computed once for this computer's device; everything in it can be
    /// created again.
    pub cache_dir: Option<PathBuf>,
    /// MLX's compiled Metal kernels, if they come with the app; MLX looks for them itself otherwise. Only Macs have
    /// them.
    pub metal_library: Option<PathBuf>,
    /// When answers are drafted from what they repeat.
    pub prompt_lookup: Drafting,
    /// When the draft model of a request drafts.
    pub draft_model: Drafting,
    /// The device that computes, whichever is set later; `None` for the best one until another is set.
    pub device: Option<ComputeDevice>,
}

/// When answers are drafted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Drafting {
    /// If a pass over a draft takes so little longer than a step on this device that drafts pay, and not for a while
    /// after drafts that were wrong.
    #[default]
    Auto,
    /// Never.
    Off,
    /// Wherever it can be; for tests.
    Always,
}
