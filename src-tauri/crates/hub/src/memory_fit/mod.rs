//! The fit of a model into this computer's memory: the memory that it needs, by its config and the sizes of its
//! weights, against the total and the free memory.

mod measured;
mod memory;
mod memory_guard;
mod stored;

use std::path::Path;

use api::{FitVerdict, MemoryFit};
use checkpoint::memory::{Backend, Workload};
use checkpoint::{check_folder, ModelConfig};
use protocol::{KvBits, Reason};

pub use measured::Measured;
pub use memory::Memory;
pub use memory_guard::SystemMemoryGuard;
pub use stored::stored_bytes;

use crate::error::Error;

/// Default context of an estimate, in tokens; a model's own is the limit.
pub const DEFAULT_CONTEXT: u32 = 16_384;

/// The least context with which a chat can begin, in tokens.
const LEAST_CONTEXT: u32 = 1024;

/// The variable that allows models that do not fit.
pub const LOAD_ANYWAY: &str = "PONDER_LOAD_ANYWAY";

/// The parameters of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Tokens of context; `None` for [`DEFAULT_CONTEXT`].
    pub context: Option<u32>,
    /// KV cache quantization; `None` for the model's own type.
    pub kv_bits: Option<KvBits>,
    /// The device.
    pub backend: Backend,
}

impl Question {
    /// The default context on this system's default device.
    pub fn new() -> Self {
        Self {
            context: None,
            kv_bits: None,
            backend: backend(),
        }
    }
}

impl Default for Question {
    fn default() -> Self {
        Self::new()
    }
}

/// MLX's default device: the GPU on Apple's chips, the CPU elsewhere.
pub fn backend() -> Backend {
    if cfg!(all(target_os = "macos", target_arch = "aarch64")) {
        Backend::Metal
    } else {
        Backend::Cpu
    }
}

/// The fit of a model with this config, whose text weights have `stored` bytes in its files.
///
/// Comfortable: the need is free now and at most four fifths of the memory for models. Tight: at most all of that
/// memory, so other programs have to give way. Otherwise it will not fit.
pub fn memory_fit(
    config: &ModelConfig,
    stored: u64,
    question: &Question,
    memory: &Memory,
    measured: Option<u64>,
) -> MemoryFit {
    let workload = workload(config, question);
    let need = config.estimate_memory(stored, &workload);
    let needed = need.total();
    MemoryFit {
        word: if needed <= memory.comfortable() {
            FitVerdict::Comfortable
        } else if needed <= memory.total {
            FitVerdict::Tight
        } else {
            FitVerdict::WillNotFit
        },
        context: workload.context,
        most_context: config.context,
        comfortable_context: config.max_context(stored, &workload, memory.comfortable()),
        weights: need.weights,
        kv: need.kv,
        working: need.working,
        needed,
        free: memory.free,
        total: memory.total,
        measured,
    }
}

/// The fit of the model in a folder.
///
/// # Errors
/// [`Error::WillNotRun`] with the reason, or [`Error::Read`] if a file cannot be read.
pub fn fit_of_folder(
    folder: &Path,
    question: &Question,
    memory: &Memory,
    measured: Option<u64>,
) -> Result<MemoryFit, Error> {
    let config = check_folder(folder)?;
    Ok(memory_fit(&config, stored_bytes(folder)?, question, memory, measured))
}

/// Refuses to load a model that needs more memory than there is, even for a short chat; `PONDER_LOAD_ANYWAY` allows it.
/// If a file cannot be read, the loader decides.
///
/// # Errors
/// [`protocol::ErrorCode::MemoryShort`] with the figures and advice.
pub fn check_before_load(
    folder: &Path,
    kv_bits: Option<KvBits>,
    backend: Backend,
    memory: &Memory,
) -> protocol::Result<()> {
    if is_load_forced() {
        return Ok(());
    }
    let question = Question {
        context: Some(LEAST_CONTEXT),
        kv_bits,
        backend,
    };
    let Ok(fit) = fit_of_folder(folder, &question, memory, None) else {
        return Ok(());
    };
    let most = memory.most_to_be_had();
    // The prefix cache of a short chat is small enough to ignore.
    if fit.needed <= most {
        return Ok(());
    }
    let why = if fit.needed > memory.total {
        format!("a model may use {} on this computer", size(memory.total))
    } else {
        format!("only {} are free; close other programs and try again", size(most))
    };
    Err(protocol::Error::because(
        Reason::ModelMemory,
        format!(
            "this model needs {} of memory even for a short chat ({} for its weights), and {why}; choose a smaller model or one in \
             fewer bits, or set {LOAD_ANYWAY}=1 to load it anyway. Nothing was loaded",
            size(fit.needed),
            size(fit.weights)
        ),
    )
    .with("needed", fit.needed)
    .with("weights", fit.weights)
    .with("free", most)
    .with("total", memory.total))
}

/// Refuses to load a model next to others, which take `kept` bytes, unless it fits comfortably with the default
/// context. If a file cannot be read, the loader decides.
///
/// # Errors
/// [`protocol::ErrorCode::MemoryShort`] with the figures.
pub fn check_beside_others(folder: &Path, backend: Backend, memory: &Memory, kept: u64) -> protocol::Result<()> {
    let question = Question {
        backend,
        ..Question::new()
    };
    let Ok(fit) = fit_of_folder(folder, &question, memory, None) else {
        return Ok(());
    };
    let most = (memory.total / 5 * 4).saturating_sub(kept).min(memory.free);
    if fit.needed <= most {
        return Ok(());
    }
    let (needed, room) = (size(fit.needed), size(most));
    let message = format!("this model needs {needed} of memory, and beside the loaded ones there is room for {room}");
    let error = protocol::Error::because(Reason::MemoryBesideLoaded, message);
    Err(error.with("needed", fit.needed).with("free", most))
}

/// True if [`LOAD_ANYWAY`] is set.
fn is_load_forced() -> bool {
    std::env::var_os(LOAD_ANYWAY).is_some_and(|value| !value.is_empty() && value != "0")
}

fn workload(config: &ModelConfig, question: &Question) -> Workload {
    let context = question.context.unwrap_or(DEFAULT_CONTEXT);
    Workload {
        context: context.clamp(1, config.context.max(1)),
        kv_bits: question.kv_bits,
        backend: question.backend,
        prefix_cached: true,
    }
}

/// A size for display, such as `4.2 GB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1_000_000_000 {
        format!("{} MB", bytes.div_ceil(1_000_000))
    } else {
        format!("{:.1} GB", bytes as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests;
