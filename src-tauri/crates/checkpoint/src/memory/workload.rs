//! A request for an estimate, and its result.

use protocol::KvBits;

/// The device that a model runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The CPU: 32 bit floats, weights as they are stored.
    Cpu,
    /// Apple's GPUs: in the weights' own type.
    Metal,
    /// NVIDIA's GPUs: the same, with kernels of our own.
    Cuda,
}

impl Backend {
    /// The one that a model's information names so.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "cpu" => Some(Self::Cpu),
            "metal" => Some(Self::Metal),
            "cuda" => Some(Self::Cuda),
            _ => None,
        }
    }

    /// Prompt tokens that are read at once. Server cards are fast enough for more.
    pub const fn prefill_chunk(self) -> u32 {
        match self {
            Self::Cuda => 1024,
            Self::Cpu | Self::Metal => 512,
        }
    }
}

/// The workload of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Tokens of prompt and answer together.
    pub context: u32,
    /// Bits of the keys and values of full attention; `None` for the model's own type.
    pub kv_bits: Option<KvBits>,
    /// The device.
    pub backend: Backend,
    /// True if keys are cached for the next turn as well, as in a chat: there are two copies then.
    pub prefix_cached: bool,
}

/// Bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// The weights, as they lie in memory.
    pub weights: u64,
    /// Keys, values and states of the context.
    pub kv: u64,
    /// The most that loading or reading the prompt needs besides, for a moment.
    pub working: u64,
}

impl MemoryEstimate {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.kv).saturating_add(self.working)
    }
}
