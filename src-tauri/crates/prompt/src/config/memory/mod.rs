//! How much memory a model takes, told from its config alone: the weights as they lie in memory, the keys and values of a
//! context, and what reading that context needs besides.
//!
//! Everything follows from the layers that the config describes: [`shapes`] brings both kinds of families to one form,
//! [`kept`] counts what caches keep, [`parts`] what the weights are, and [`pass`] plays through what a chunk of the prompt
//! allocates on its way through the layers. `engine/tests/estimate.rs` compares the sums with what MLX measured.

mod feeds;
mod kept;
mod mixers;
mod parts;
mod pass;
mod shapes;

use protocol::KvBits;

use super::ModelConfig;
use pass::Pass;
use shapes::Shapes;

/// Where a model computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The CPU: in 32 bit floats, quantised weights widened at load where they are not too large for that.
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
pub struct Wanted {
    /// Tokens of prompt and answer together.
    pub context: u32,
    /// Bits of the keys and values of full attention; `None` for the model's own type.
    pub kv_bits: Option<KvBits>,
    /// Where it computes.
    pub backend: Backend,
    /// Whether keys are kept for the next turn as well, as answering in a chat does: they are there twice then.
    pub kept: bool,
}

/// Bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The weights, as they lie in memory.
    pub weights: u64,
    /// Keys, values and states of the context.
    pub kv: u64,
    /// The most that loading or reading the prompt needs besides, for a moment.
    pub working: u64,
}

impl Need {
    /// All of it.
    pub fn sum(&self) -> u64 {
        self.weights.saturating_add(self.kv).saturating_add(self.working)
    }
}

impl ModelConfig {
    /// What a model takes whose weight files have `stored` bytes, those alone that the text model reads.
    pub fn need(&self, stored: u64, wanted: &Wanted) -> Need {
        let shapes = Shapes::of(self);
        let weights = match wanted.backend {
            Backend::Cpu => parts::widened(&shapes),
            Backend::Metal | Backend::Cuda => stored,
        };
        let caches = kept::bytes(&shapes, wanted);
        let reading = Pass::of(&shapes, wanted).peak();
        Need {
            weights,
            kv: caches.saturating_mul(if wanted.kept { 2 } else { 1 }),
            working: reading.max(parts::loading(&shapes, wanted.backend)),
        }
    }

    /// The bytes that reading on from a position up to the wanted context takes: what caches grow by and the working space.
    pub fn growth(&self, from: u32, wanted: &Wanted) -> u64 {
        let kv = |context: u32| kept::bytes(&Shapes::of(self), &Wanted { context, ..*wanted });
        let working = Pass::of(&Shapes::of(self), wanted).peak();
        kv(wanted.context).saturating_sub(kv(from)).saturating_add(working)
    }

    /// The most tokens of context with which all that is needed stays within `bytes`, up to the model's own; `None` where
    /// none does.
    pub fn most_context(&self, stored: u64, wanted: &Wanted, bytes: u64) -> Option<u32> {
        /// Contexts are told in these steps.
        const STEP: u32 = 256;
        let fits = |context: u32| self.need(stored, &Wanted { context, ..*wanted }).sum() <= bytes;
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

    /// How many numbers the weights are.
    pub fn parameters(&self) -> u64 {
        parts::parameters(&Shapes::of(self))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
