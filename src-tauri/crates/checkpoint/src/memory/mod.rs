//! How much memory a model takes, told from its config alone: the weights as they lie in memory, the keys and values of a
//! context, and what reading that context needs besides.
//!
//! Everything follows from the layers that the config describes: [`shapes`] brings both kinds of families to one form,
//! [`cache`] counts what caches keep, [`weights`] what the weights are, and [`prefill`] plays through what a chunk of the prompt
//! allocates on its way through the layers. `engine/tests/estimate.rs` compares the sums with what MLX measured.

mod cache;
mod feed_forward;
mod mixers;
mod prefill;
mod shapes;
mod tower;
mod weights;

use protocol::KvBits;

pub use cache::{CACHE_STEP, KV_GROUP_SIZES};
pub use feed_forward::dequantises_experts;
pub use prefill::{dequantises_rows, MAX_DEQUANTIZED_AHEAD};
pub use tower::MAX_TOWER_SCORES;
pub use weights::{MAX_DEQUANTIZED_EMBEDDING, MAX_DEQUANTIZED_EXPERTS};

use crate::{ModelConfig, VisionConfig};
use prefill::Prefill;
use shapes::Shapes;

/// Where a model computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The CPU: in 32 bit floats, quantised weights widened at load if they are not too large for that.
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

/// What is asked for beside the model itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Tokens of prompt and answer together.
    pub context: u32,
    /// Bits of the keys and values of full attention; `None` for the model's own type.
    pub kv_bits: Option<KvBits>,
    /// Where it computes.
    pub backend: Backend,
    /// Whether keys are kept for the next turn as well, as answering in a chat does: they are there twice then.
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

impl ModelConfig {
    /// What a model takes whose weight files have `stored` bytes, those alone that the text model reads.
    pub fn estimate_memory(&self, stored: u64, workload: &Workload) -> MemoryEstimate {
        let shapes = Shapes::of(self);
        let weights = match workload.backend {
            Backend::Cpu => weights::widened(&shapes),
            Backend::Metal | Backend::Cuda => stored,
        };
        let caches = cache::bytes(&shapes, workload);
        let reading = Prefill::of(&shapes, workload).peak();
        let tower = |of: fn(&VisionConfig, Backend) -> u64| self.vision.as_ref().map_or(0, |vision| of(vision, workload.backend));
        MemoryEstimate {
            weights: weights.saturating_add(tower(tower::weights)),
            kv: caches.saturating_mul(if workload.prefix_cached { 2 } else { 1 }),
            working: reading
                .max(weights::loading(&shapes, workload.backend))
                .max(tower(tower::encoding_memory)),
        }
    }

    /// The bytes that reading on from a position up to the context of the workload takes: what caches grow by and the working space.
    pub fn additional_memory(&self, from: u32, workload: &Workload) -> u64 {
        let working = Prefill::of(&Shapes::of(self), workload).peak();
        self.cache_growth(from, workload).saturating_add(working)
    }

    /// The bytes that caches grow by from a position up to the context of the workload.
    pub fn cache_growth(&self, from: u32, workload: &Workload) -> u64 {
        let shapes = Shapes::of(self);
        let kv = |context: u32| cache::bytes(&shapes, &Workload { context, ..*workload });
        kv(workload.context).saturating_sub(kv(from))
    }

    /// The most tokens of context with which all that is needed stays within `bytes`, up to the model's own; `None` if
    /// none does.
    pub fn max_context(&self, stored: u64, workload: &Workload, bytes: u64) -> Option<u32> {
        /// Contexts are told in these steps.
        const STEP: u32 = 256;
        let fits = |context: u32| self.estimate_memory(stored, &Workload { context, ..*workload }).total() <= bytes;
        if fits(self.context) {
            return Some(self.context);
        }
        let (mut most, mut least) = (0, self.context.div_ceil(STEP));
        while most + 1 < least {
            let middle = most + (least - most) / 2;
            if fits(middle * STEP) {
                most = middle;
            } else {
                least = middle;
            }
        }
        (most > 0).then_some(most * STEP)
    }

    /// The bytes that encoding a view of so many patches takes beside the weights; 0 if the model does not see.
    pub fn image_encoding_memory(&self, patches: u64, backend: Backend) -> u64 {
        self.vision
            .as_ref()
            .map_or(0, |vision| tower::encoding_memory_of(vision, backend, patches))
    }

    /// How many numbers the weights are, those of a tower included.
    pub fn parameters(&self) -> u64 {
        weights::parameters(&Shapes::of(self)) + self.vision.as_ref().map_or(0, tower::parameters)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
